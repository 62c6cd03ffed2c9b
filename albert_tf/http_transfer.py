"""One request for a file over HTTP, which goes on where an earlier one was cut (RFC 9110, section 14)."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import os
import re
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from albert_tf import __version__, checksums, files
from albert_tf.errors import InputError
from albert_tf.progress import Progress

_BLOCK = 1 << 16
_BUSY = (408, 425, 429, 500, 502, 503, 504)


class UnreachableError(Exception):
    """Nobody answers at this address: no network, no such host, or a closed port."""


class CutError(Exception):
    """The connection was cut, or the server is busy: the same request may do better later."""


class RefusedError(Exception):
    """The server, or what it sent, says that trying again is of no use."""


@dataclasses.dataclass(frozen=True)
class RemoteFile:
    """What the server said of the file when its first byte came.

    Attributes:
        url: where it was asked for.
        validator: its strong ETag or its date, which changes with the file; None where the server tells neither.
        size: in bytes, None where the server does not tell.
        hashes: crc32c and md5 in hexadecimal, where the server tells them.
    """

    url: str
    validator: str | None
    size: int | None
    hashes: Mapping[str, str]


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from https to anything else."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        schemes = [urllib.parse.urlsplit(url).scheme for url in (req.full_url, newurl)]
        if schemes[1] not in ("https", schemes[0]):
            fp.close()
            raise RefusedError(f"the server sends on from {schemes[0]} to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def new_opener(*handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """urllib's own opener (proxies from the environment, certificates of the system) with our rule for redirects."""
    opener = urllib.request.build_opener(_Redirects(), *handlers)
    opener.addheaders = [("User-Agent", f"albert_tf/{__version__}")]
    return opener


def transfer(
    url: str,
    partial: str,
    opener: urllib.request.OpenerDirector,
    *,
    timeout: float,
    progress: Callable[..., Progress],
) -> RemoteFile:
    """Asks once for the file, or for the rest of it, and adds what comes to `partial`.

    What a later call needs to go on is kept in `<partial>.json`. The rest alone is asked for if the server told an ETag
    or a date and both are unchanged; a changed file, or a server that sends no parts, starts the file anew.

    Returns:
        what the server said of the file, all of which is in `partial` and on the disk.

    Raises:
        UnreachableError, CutError, RefusedError: as they say. What has come stays in `partial`.
        InputError: `partial` cannot be written.
    """
    known, have = _known(url, partial)
    if known is not None and have == known.size:
        return known
    headers = {"Accept-Encoding": "identity"}
    if known is not None:
        headers.update({"Range": f"bytes={have}-", "If-Range": str(known.validator)})
    response = _open(opener, urllib.request.Request(url, headers=headers), timeout)
    with contextlib.closing(response):
        fits = response.status == 206 and known is not None and _goes_on(response, known, have)
        if known is not None and not fits and response.status in (206, 416):
            forget(partial)
            return transfer(url, partial, opener, timeout=timeout, progress=progress)
        _check_answer(response, fits)
        try:
            if known is None or not fits:
                known, have = _remote_file(url, response), 0
                open(partial, "wb").close()
                files.write_json(_state(partial), dataclasses.asdict(known))
            _receive(response, partial, have, known.size, timeout, progress)
        except OSError as error:
            raise InputError(f"cannot write {partial}: {error.strerror}") from error
    return known


def forget(partial: str) -> None:
    """Removes a partial file and what is known of it."""
    for path in (_state(partial), partial):
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


def _state(partial: str) -> str:
    return f"{partial}.json"


def _known(url: str, partial: str) -> tuple[RemoteFile | None, int]:
    """What is known of the file and how many bytes of it are here; nothing, if it cannot be gone on with."""
    try:
        known = RemoteFile(**files.read_json(_state(partial)))
        have = os.path.getsize(partial)
    except (OSError, InputError, TypeError):  # not there, or not written to the end
        return None, 0
    return (known, have) if known.url == url and known.validator and have else (None, 0)


def _open(opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float) -> Any:
    """The server's answer. One that is no success is an answer too, told by its status."""
    try:
        return opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as answer:
        return answer
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise RefusedError(f"its certificate is not trusted: {error.reason.verify_message}") from error
        raise UnreachableError(str(error.reason)) from error
    except http.client.InvalidURL as error:
        raise RefusedError(str(error)) from error
    except (OSError, http.client.HTTPException) as error:
        _raise_cut(error, timeout)


def _check_answer(response: Any, is_rest: bool) -> None:
    if response.status in _BUSY:
        raise CutError(f"the server answered {response.status} {response.reason}")
    if response.status != 200 and not is_rest:
        raise RefusedError(f"the server answered {response.status} {response.reason}")
    if response.headers.get_content_type() == "text/html":
        raise RefusedError("a web page (text/html) came instead of the file")


def _remote_file(url: str, response: Any) -> RemoteFile:
    length = response.headers.get("Content-Length", "")
    hashes = checksums.from_goog_hash(response.headers.get_all("x-goog-hash", []))
    return RemoteFile(url, _validator(response), int(length) if length.isdecimal() else None, hashes)


def _validator(response: Any) -> str | None:
    tag = response.headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")


def _goes_on(response: Any, known: RemoteFile, have: int) -> bool:
    """Whether an answer 206 holds the rest of the very file. Some servers send a part whatever If-Range says."""
    part = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    return (
        part is not None
        and int(part[1]) == have
        and part[2] in ("*", str(known.size))
        and _validator(response) in (None, known.validator)
    )


def _receive(
    response: Any, partial: str, have: int, size: int | None, timeout: float, progress: Callable[..., Progress]
) -> None:
    name = os.path.basename(partial)[: -len(files.PARTIAL_SUFFIX)]
    with open(partial, "ab") as file, progress(size, name, "B", initial=have, scale=True) as bar:
        while block := _read(response, timeout):
            file.write(block)
            file.flush()
            have += len(block)
            bar.update(len(block))
        os.fsync(file.fileno())
    if size is not None and have < size:
        raise CutError(f"the connection was cut after {have:,} of {size:,} bytes")


def _read(response: Any, timeout: float) -> bytes:
    """The next bytes, as soon as there are some."""
    try:
        return response.read1(_BLOCK)
    except (OSError, http.client.HTTPException) as error:
        _raise_cut(error, timeout)


def _raise_cut(error: Exception, timeout: float) -> NoReturn:
    if isinstance(error, socket.timeout):
        raise CutError(f"the server sent nothing for {timeout:g} s") from error
    raise CutError(f"the connection was cut ({str(error) or type(error).__name__})") from error
