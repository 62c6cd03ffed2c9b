"""The limits of the server, over HTTP in this process, with a stand-in for the model."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import signal
import socket
import types
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest

from albert_tf.serving import row_characters
from albert_tf.serving.settings import Settings
from tests import fake_server
from tests.serving_fakes import Fake, until

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


class Answer:
    """Status, headers and content of what came."""

    def __init__(self, data: bytes):
        head, _, content = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = dict(line.split(": ", 1) for line in lines)
        self.content = json.loads(content)


async def predict(port: int, *instances: str) -> Answer:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request({"instances": instances}))
        return Answer(await reader.read())
    finally:
        writer.close()


async def queued(port: int) -> float:
    """The rows that wait, as the metrics tell it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    return float(text.partition("\nalbert_tf_queued_rows ")[2].split()[0])


async def ask_until_queued(port: int, rows: int, *instances: str) -> asyncio.Task[Answer]:
    """A request at work, once so many rows wait."""
    task = asyncio.ensure_future(predict(port, *instances))
    for _ in range(500):
        if await queued(port) == rows:
            return task
        await asyncio.sleep(0.01)
    raise AssertionError("it never waited")


def test_a_full_queue_is_told_with_the_time_to_come_again():
    async def run() -> None:
        backend = Fake(7)
        async with serving(backend, max_batch_rows=1, max_rows=2, max_queued_rows=2) as port:
            first = asyncio.ensure_future(predict(port, "at work"))
            await until(lambda: bool(backend.ran))
            second = await ask_until_queued(port, 2, "a", "b")
            refused = await predict(port, "c")
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
            assert refused.content == {"error": "2 rows are waiting already: try again later"}
            backend.may_answer.set()
            assert [(await each).content["predictions"] for each in (first, second)] == [[7], [7, 7]]
            assert (await predict(port, "c")).status == 200

    asyncio.run(run())


def test_who_has_waited_too_long_is_told_so_and_the_model_does_not_work_for_it():
    async def run() -> None:
        backend = Fake(7)
        async with serving(backend, max_batch_rows=1, answer_seconds=0.2) as port:
            at_work = asyncio.ensure_future(predict(port, "at work"))
            await until(lambda: bool(backend.ran))
            late = await predict(port, "late", "too late")
            assert (late.status, late.content) == (504, {"error": "there was no answer within 0.2 s"})
            assert (await at_work).status == 504
            backend.may_answer.set()
            assert (await predict(port, "next")).status == 200 and await queued(port) == 0
        assert backend.ran == [["at work"], ["next"]]

    asyncio.run(run())


def test_the_model_does_not_work_for_who_has_left():
    async def run() -> None:
        backend = Fake(7)
        async with serving(backend, max_batch_rows=1) as port:
            at_work = asyncio.ensure_future(predict(port, "at work"))
            await until(lambda: bool(backend.ran))
            leaving = await ask_until_queued(port, 2, "left", "left too")
            leaving.cancel()
            await asyncio.sleep(0.05)
            stays = await ask_until_queued(port, 1, "stays")
            backend.may_answer.set()
            assert (await at_work).status == (await stays).status == 200
        assert backend.ran == [["at work"], ["stays"]]

    asyncio.run(run())


@pytest.mark.parametrize(
    "instances, columns, characters",
    [
        (["", "ab"], ["", "ab"], (1, 2)),
        ([{"b64": "YWI="}], {"b64": "YWI="}, (4,)),
        ([{"q": "a", "c": "bcd"}, {"q": "é", "c": "😀"}], {"q": ["a", "é"], "c": ["bcd", "😀"]}, (4, 2)),
        ([{"words": ["a", "bc", ""]}], {"words": [["a", "bc", ""]]}, (4,)),
        ([{"p": "abc", "q": "d", "o": ["e", "fg"]}], {"p": ["abc"], "q": ["d"], "o": [["e", "fg"]]}, (11,)),
        ([{"x": "ab", "numbers": [1, 2, 3]}], {"x": ["ab"], "numbers": [[1, 2, 3]]}, (2,)),
    ],
)
def test_the_characters_to_read_are_counted(instances, columns, characters):
    assert row_characters.of_rows(instances) == row_characters.of_columns(columns) == characters


def test_a_row_that_takes_too_long_to_read_is_refused():
    async def run() -> None:
        backend = Fake(7)
        backend.may_answer.set()
        async with serving(backend, max_row_characters=10) as port:
            assert (await predict(port, "a" * 10, "b" * 10)).status == 200
            refused = await predict(port, "a", "b" * 11)
            assert refused.status == 413 and "instance 1 has 11 characters to read, and at most 10 are taken" in str(
                refused.content
            )
        assert backend.ran == [["a" * 10], ["b" * 10]]

    asyncio.run(run())


class Large(Fake):
    """Its answer is larger than what the system keeps for a connection."""

    def run(self, requests):
        return [{"text": ["x" * (16 << 20)] * request.rows} for request in requests]


def test_who_does_not_read_its_answer_is_turned_away():
    async def run() -> None:
        async with serving(Large(1), idle_seconds=0.3) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(request({"instances": ["a"]}))
            for _ in range(100):
                if writer.is_closing():
                    break
                await asyncio.sleep(0.1)
                writer.write(b"G")  # a connection that is gone is only seen by using it
            assert writer.is_closing()

    asyncio.run(run())


class Connection:
    """What the server sees of one: the bytes that it has still to take, one look after the other."""

    def __init__(self, *unsent: int):
        self.unsent = itertools.cycle(unsent)
        self.ended = ""
        self.transport = self

    def get_write_buffer_size(self) -> int:
        return next(self.unsent)

    def abort(self) -> None:
        self.ended = "aborted"

    def force_close(self) -> None:
        self.ended = "closed"


def test_who_reads_slowly_and_who_waits_for_an_answer_stay():
    async def run() -> None:
        idle, stuck, slow, waiting = Connection(0), Connection(9), Connection(9, 8), Connection(0)
        runner = types.SimpleNamespace(server=types.SimpleNamespace(connections=[idle, stuck, slow, waiting]))
        of_busy = types.SimpleNamespace(busy={waiting})
        closing = asyncio.ensure_future(server.close_idle(runner, of_busy, 0.05))
        await until(lambda: bool(idle.ended and stuck.ended))
        closing.cancel()
        assert [each.ended for each in (idle, stuck, slow, waiting)] == ["closed", "aborted", "", ""]

    asyncio.run(run())


def test_a_model_that_is_at_work_does_not_keep_the_process_after_sigterm():
    process, port = fake_server.started("--answers=0", "--stop_seconds=0.3")
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(request({"instances": ["a"]}))
            metrics = b""
            while b"\nalbert_tf_requests_at_work 2.0" not in metrics:
                metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read()
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=8)  # the stand-in is at work for ten
        assert process.returncode == 0 and "stopped" in errors
    finally:
        process.kill()
