"""Runs a server until SIGTERM or SIGINT, and then lets what is at work come to its end."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from aiohttp import web

from albert_tf.errors import InputError
from albert_tf.serving.application import Server
from albert_tf.serving.settings import Settings


async def run(server: Server, settings: Settings, report: Callable[[str], None]) -> None:
    """Serves; `report` is told the address once it listens.

    Raises:
        InputError: it cannot listen there.
    """
    runner = web.AppRunner(
        server.application(),
        access_log=None,
        shutdown_timeout=settings.stop_seconds,
        handler_cancellation=True,  # of a client that has left, so that the model does not work for it
    )
    await runner.setup()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    closer = loop.create_task(close_idle(runner, server, settings.idle_seconds))
    try:
        site = web.TCPSite(runner, settings.host, settings.port, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            raise InputError(f"cannot listen at {settings.host}, port {settings.port}: {error.strerror}") from error
        report(address(*runner.addresses[0][:2]))
        await stop.wait()
        server.is_stopping = True
    finally:
        closer.cancel()
        await asyncio.gather(closer, return_exceptions=True)
        await runner.cleanup()


def address(host: str, port: int) -> str:
    """The URL of a server; an IPv6 address stands in brackets there."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Seen(NamedTuple):
    """Of a connection: the bytes of answers that it has still to take, and since when that has been so."""

    unsent: int
    since: float


async def close_idle(runner: web.AppRunner, server: Server, idle_seconds: float) -> None:
    """Closes connections that have had no request at work for so long.

    Those are idle ones, those whose head comes slowly, and those that take nothing more of their answer.
    """
    seen: dict[Any, _Seen] = {}
    while True:
        await asyncio.sleep(min(1.0, idle_seconds / 4))
        now = time.monotonic()
        connections = runner.server.connections if runner.server else []
        before, seen = seen, {}
        for connection in connections:
            transport = connection.transport
            unsent = 0 if transport is None else transport.get_write_buffer_size()
            found = before.get(connection)
            if found is None or found.unsent != unsent or connection in server.busy:
                found = _Seen(unsent, now)
            seen[connection] = found
            if now - found.since <= idle_seconds:
                continue
            if transport is not None and unsent:
                transport.abort()  # a mere close waits until all is sent
            else:
                connection.force_close()
