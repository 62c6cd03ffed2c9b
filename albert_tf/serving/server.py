"""Runs a server until SIGTERM or SIGINT, and then lets what is at work come to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from albert_tf.errors import InputError
from albert_tf.serving.application import Server
from albert_tf.serving.settings import Settings


def run_to_end(server: Server, settings: Settings, report: Callable[[str], None]) -> NoReturn:
    """`run`, and then ends the process with 0; what the model or a new version is still at is left as it is.

    Raises:
        InputError: see `run`.
    """

    async def serve() -> NoReturn:
        await run(server, settings, report)
        print("stopped", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # asyncio and the interpreter would wait for their threads, however long those take

    asyncio.run(serve())
    raise AssertionError("it ends the process")


class _NotOfSenders(logging.Filter):
    """Leaves out what is no HTTP or does not unpack: its sender is told, and must not fill the log with traces."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, (HttpProcessingError, web.RequestPayloadError))


async def run(server: Server, settings: Settings, report: Callable[[str], None]) -> None:
    """Serves; `report` is told the address once it listens.

    Raises:
        InputError: it cannot listen there.
    """
    logging.getLogger("aiohttp.server").addFilter(_NotOfSenders())
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
        # Requests have this time to end by themselves; aiohttp would take it once more to cancel what is left of them.
        await asyncio.wait([loop.create_task(runner.cleanup())], timeout=settings.stop_seconds)


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
