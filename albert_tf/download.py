"""`fetch`: a file from the web, kept in a directory, whole and checked or not at all."""

from __future__ import annotations

import contextlib
import functools
import os
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging

from albert_tf import checksums, files
from albert_tf.errors import InputError
from albert_tf.file_lock import file_lock
from albert_tf.http_transfer import CutError, RefusedError, RemoteFile, UnreachableError, forget, new_opener, transfer
from albert_tf.progress import Progress

WAITS = (1.0, 2.0, 4.0, 8.0)  # seconds before the second try, the third, …


def fetch(
    url: str,
    directory: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    verify: bool = False,
    progress: Callable[..., Progress] = Progress,
    warn: Callable[[str], None] = logging.warning,
    timeout: float = 30.0,
    waits: Sequence[float] = WAITS,
    sleep: Callable[[float], None] = time.sleep,
    opener: urllib.request.OpenerDirector | None = None,
) -> str:
    """Downloads a file, unless `directory` has one of its name already.

    What came is held against `sha256`; where that is not known, against the server's own checksums (`x-goog-hash`);
    where there are none, a gzip file against those inside it; and always against the length the server told. Its
    SHA-256 is recorded in `<name>.json`. A download that was cut, in this process or another, goes on where it was. Of
    several processes that ask at once, one downloads and the others wait for it.

    A file put there by hand, which has no record, is checked in the same way when it is first asked for.

    Args:
        url: http or https. Its last part is the file's name.
        directory: where the file is kept; made if need be.
        sha256: what the file must be, in hexadecimal.
        verify: reads a file that is there to its end and holds it against its record, not by its length alone.
        progress: makes the progress bar of one try, called as `Progress` is.
        warn: told of a wait, a new try, or a damaged file that is replaced.
        timeout: seconds without any answer after which a connection counts as cut.
        waits: seconds before each new try after one that brought nothing new.
        sleep: waits so many seconds.
        opener: what urllib opens the address with; as it comes, with the proxies of the environment.

    Returns:
        the file's path.

    Raises:
        InputError: nobody answers, the server refuses, the file is not the right one, or it cannot be written. What
            has come is kept for the next call, except a file that is wrong.
    """
    parts = urllib.parse.urlsplit(url)
    name = os.path.basename(urllib.parse.unquote(parts.path))
    if parts.scheme not in ("http", "https") or not name:
        raise InputError(
            f"{url!r} is not the address of a file: it must begin with https:// or http:// and end in a name"
        )
    path = os.path.join(os.path.abspath(directory), name)
    if _is_here(path, sha256, verify, warn):
        return path
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the directory {os.path.dirname(path)}: {error.strerror}") from error
    with file_lock(f"{path}.lock", lambda: warn(f"another process is downloading {name}: waiting for it"), sleep):
        if not _is_here(path, sha256, verify, lambda _: None):
            partial = path + files.PARTIAL_SUFFIX
            once = functools.partial(transfer, url, partial, opener or new_opener(), timeout=timeout, progress=progress)
            remote = _persist(once, url, path, warn, waits, sleep)
            _accept(url, path, {"sha256": sha256.lower()} if sha256 else remote.hashes)
    return path


def _record_path(path: str) -> str:
    return f"{path}.json"


def _is_here(path: str, sha256: str | None, verify: bool, warn: Callable[[str], None]) -> bool:
    """Whether the file is there and right; tells what is wrong with one that is not."""
    if not os.path.isfile(path):
        return False
    expected = {"sha256": sha256.lower()} if sha256 else {}
    try:
        record = files.read_json(_record_path(path))
        known = {"size": int(record["size"]), "sha256": str(record["sha256"])}
    except (InputError, KeyError, TypeError, ValueError):
        fault, found = _fault(path, expected)
        if fault is None:
            with contextlib.suppress(InputError):  # a directory that is only read is right, and is checked each time
                _write_record(path, None, found)
    else:
        size = os.path.getsize(path)
        fault = None
        if size != known["size"]:
            fault = f"has {size:,} bytes where {known['size']:,} are recorded"
        elif expected and known["sha256"] != expected["sha256"]:
            fault = f"has the sha256 {known['sha256']} where {expected['sha256']} is expected"
        elif verify:
            fault, _ = _fault(path, {"sha256": str(known["sha256"])})
    if fault is not None:
        warn(f"{path} {fault}: downloading it anew")
    return fault is None


def _persist(
    once: Callable[[], RemoteFile],
    url: str,
    path: str,
    warn: Callable[[str], None],
    waits: Sequence[float],
    sleep: Callable[[float], None],
) -> RemoteFile:
    """Calls `once` again as long as it brings something new, and a few times after that."""
    name, partial = os.path.basename(path), path + files.PARTIAL_SUFFIX
    by_hand = f"or put the file at {path} by hand"
    most = at_first = _size(partial)
    left = list(waits)
    while True:
        try:
            return once()
        except RefusedError as error:
            raise InputError(f"cannot download {url}: {error}; check the address, {by_hand}") from error
        except (UnreachableError, CutError) as error:
            have = _size(partial)
            if have > most:
                most, left = have, list(waits)
            if isinstance(error, UnreachableError) and most == at_first:
                raise InputError(
                    f"cannot download {url}: no connection ({error}); try again with a network, {by_hand}"
                ) from error
            if not left:
                raise InputError(
                    f"cannot download {url}: {error}; the {have:,} bytes that came are kept for the next try, {by_hand}"
                ) from error
            wait = left.pop(0)
            warn(f"{name}: {error}; trying again in {wait:g} s")
            sleep(wait)


def _accept(url: str, path: str, expected: Mapping[str, str]) -> None:
    """Gives the partial file its name if it is the right one, and removes it if not."""
    partial = path + files.PARTIAL_SUFFIX
    fault, found = _fault(partial, expected)
    if fault is not None:
        forget(partial)
        raise InputError(
            f"what came from {url} {fault}, and was removed: try again, or put the right file at {path} by hand"
        )
    with contextlib.suppress(FileNotFoundError):
        os.remove(_record_path(path))
    os.replace(partial, path)
    forget(partial)
    _write_record(path, url, found)


def _fault(path: str, expected: Mapping[str, str]) -> tuple[str | None, str]:
    """What is wrong with a file, or None; and its SHA-256.

    Args:
        path: the file; a name that ends in .gz or .tgz, before the suffix of a partial file, must hold a gzip file.
        expected: kind of checksum to its hexadecimal value.
    """
    found = checksums.digests(path, {"sha256", *expected})
    wrong = [kind for kind, value in expected.items() if found[kind] != value]
    name = path[: -len(files.PARTIAL_SUFFIX)] if path.endswith(files.PARTIAL_SUFFIX) else path
    fault = None
    if wrong:
        fault = f"has the {wrong[0]} {found[wrong[0]]} where {expected[wrong[0]]} is expected"
    elif name.endswith(checksums.GZIP_SUFFIXES):
        if not checksums.is_gzip(path):
            fault = "is not a gzip file"
        elif not expected:
            damage = checksums.gzip_fault(path)
            fault = damage and f"is a damaged gzip file ({damage})"
    return fault, found["sha256"]


def _write_record(path: str, url: str | None, sha256: str) -> None:
    record: dict[str, Any] = {"url": url, "size": os.path.getsize(path), "sha256": sha256}
    files.write_json(_record_path(path), record)


def _size(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.path.getsize(path)
    return 0
