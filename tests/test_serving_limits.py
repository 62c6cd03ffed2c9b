"""The limits of the server, over HTTP in this process, with a stand-in for the model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import time
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest

from albert_tf.serving.settings import Settings
from tests import fake_server
from tests.serving_fakes import Fake

pytest.importorskip("aiohttp", reason="needs the extra `serve`: aiohttp")
pytest.importorskip("prometheus_client", reason="needs the extra `serve`: prometheus_client")
from albert_tf.serving import server  # noqa: E402
from albert_tf.serving.application import Server  # noqa: E402


@contextlib.asynccontextmanager
async def serving(backend: Fake, **limits: Any) -> AsyncIterator[int]:
    """The port of a server for the block."""
    settings = Settings(port=0, stop_seconds=1, **limits)
    listens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(server.run(Server(backend, "m", settings), settings, listens.set_result))
    try:
        yield int((await listens).rpartition(":")[2])
    finally:
        backend.may_answer.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def request(body: Any) -> bytes:
    """A whole request for predictions, after which the connection ends."""
    data = json.dumps(body)
    head = f"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    return (head + data).encode()


class Large(Fake):
    """Its answer is larger than what the system keeps for a connection."""

    SIZE = 8 << 20

    def run(self, requests):
        return [{"text": ["x" * self.SIZE] * request.rows} for request in requests]


async def taken(port: int, seconds: float, pause: float) -> int:
    """The bytes that a client gets of an answer if it reads nothing at first, and then with pauses."""
    with socket.socket() as client:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, request({"instances": ["a"]}))
        await asyncio.sleep(seconds)
        size = 0
        with contextlib.suppress(ConnectionResetError):
            while size < Large.SIZE and (data := await loop.sock_recv(client, 1 << 20)):
                size += len(data)
                await asyncio.sleep(pause)
        return size


def test_who_does_not_read_its_answer_is_turned_away_and_who_reads_slowly_is_not():
    async def run() -> list[int]:
        async with serving(Large(1), idle_seconds=0.4) as port:
            return await asyncio.gather(taken(port, 1.2, 0), taken(port, 0.1, 0.01))

    never, slowly = asyncio.run(run())
    assert never < Large.SIZE <= slowly


def test_a_model_that_is_at_work_does_not_keep_the_process_after_sigterm():
    process, port = fake_server.started("--answers=0", "--stop_seconds=0.3")
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(request({"instances": ["a"]}))
            metrics = b""
            while b"\nalbert_tf_requests_at_work 2.0" not in metrics:
                metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read()
            start = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=5)
        assert process.returncode == 0 and "stopped" in errors and time.monotonic() - start < 3
    finally:
        process.kill()
