"""A web server on this machine whose answers, and their accidents, a test lays down one by one."""

from __future__ import annotations

import contextlib
import dataclasses
import email.message
import gzip
import http.server
import io
import os
import re
import socket
import ssl
import tarfile
import threading
import unittest.mock
from collections.abc import Iterator, Mapping


@dataclasses.dataclass
class Reply:
    """One answer.

    Attributes:
        body: the file.
        status: other than 200, sent with the body whatever was asked for.
        headers: beside Content-Length and Content-Range; If-Range is held against an ETag or Last-Modified here.
        cut_after: the connection is closed after so many bytes of this answer.
        stall_after: nothing more is sent after so many bytes, but the connection stays.
        ranges: whether a Range is heard.
        heeds_if_range: whether a Range is still heard where If-Range names another file.
        tells_length: otherwise the end of the connection is the end of the body.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cut_after: int | None = None
    stall_after: int | None = None
    ranges: bool = True
    heeds_if_range: bool = True
    tells_length: bool = True


@dataclasses.dataclass
class Asked:
    """One request as it came, and the answer it got."""

    path: str
    headers: email.message.Message
    status: int
    sent: int


class Site:
    """Answers each path with its replies in turn; the last one stays."""

    def __init__(self, scheme: str = "http"):
        self.replies: dict[str, list[Reply]] = {}
        self.asked: list[Asked] = []
        self.scheme = scheme
        self.port = 0
        self.closing = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}"

    def serve(self, path: str, *replies: Reply) -> str:
        """Lays down the replies to a path; its address."""
        self.replies[path] = list(replies)
        return self.url + path

    def next_reply(self, path: str) -> Reply:
        with self._lock:
            replies = self.replies.get(path, [Reply(status=404, body=b"no such file")])
            return replies.pop(0) if len(replies) > 1 else replies[0]


def answer(handler: http.server.BaseHTTPRequestHandler, site: Site) -> None:
    reply = site.next_reply(handler.path)
    body, status, headers = reply.body, reply.status, dict(reply.headers)
    asked_range = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    same = handler.headers.get("If-Range") in (None, headers.get("ETag"), headers.get("Last-Modified"))
    if asked_range and status == 200 and reply.ranges and (same or not reply.heeds_if_range):
        start = int(asked_range[1])
        status = 206 if start < len(body) else 416
        part = f"{start}-{len(body) - 1}" if status == 206 else "*"
        headers["Content-Range"] = f"bytes {part}/{len(body)}"
        body = body[start:]
    stop = min(after for after in (reply.cut_after, reply.stall_after, len(body)) if after is not None)
    # Before it is sent: whoever has got it all may look at once.
    site.asked.append(Asked(handler.path, handler.headers, status, sent=min(stop, len(body))))
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    if reply.tells_length:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    with contextlib.suppress(OSError):
        handler.wfile.write(body[:stop])
        handler.wfile.flush()
    if reply.stall_after is not None:
        site.closing.wait()
    handler.close_connection = True


@contextlib.contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """A site at a free port, for the block; a proxy of the environment is not asked."""
    site = Site("https" if tls else "http")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, site)

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that hangs up is part of the tests

    direct = unittest.mock.patch.dict(os.environ, {"no_proxy": "localhost"})
    with direct, Server(("localhost", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        site.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield site
        finally:
            site.closing.set()
            server.shutdown()
            thread.join()


def archive(name: str, content: bytes) -> bytes:
    """A .tar.gz of one file, the same bytes each time."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return gzip.compress(whole.getvalue(), mtime=0)


def closed_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])
