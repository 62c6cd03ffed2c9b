"""Checksums of files, and what a server or the file itself tells of them."""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import zlib
from collections.abc import Iterable
from typing import Any

import google_crc32c

BLOCK = 1 << 20
GZIP_SUFFIXES = (".gz", ".tgz")
_GZIP_MAGIC = b"\x1f\x8b"


def digests(path: str, kinds: Iterable[str]) -> dict[str, str]:
    """The checksums of a file in hexadecimal, in one pass.

    Args:
        path: the file.
        kinds: some of sha256, md5, crc32c.
    """
    running: dict[str, Any] = {kind: _new(kind) for kind in kinds}
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            for digest in running.values():
                digest.update(block)
    return {kind: digest.digest().hex() for kind, digest in running.items()}


def _new(kind: str) -> Any:
    if kind == "crc32c":
        return google_crc32c.Checksum()
    return hashlib.new(kind, usedforsecurity=kind != "md5")


def from_goog_hash(values: Iterable[str]) -> dict[str, str]:
    """Reads the headers `x-goog-hash: crc32c=…,md5=…` (base64) of Google Cloud Storage.

    Returns:
        kind to hexadecimal; kinds other than crc32c and md5, and what is no base64, are left out.
    """
    found = {}
    for part in (part for value in values for part in value.split(",")):
        kind, _, encoded = part.strip().partition("=")
        if kind in ("crc32c", "md5"):
            try:
                found[kind] = base64.b64decode(encoded, validate=True).hex()
            except binascii.Error:
                continue
    return found


def is_gzip(path: str) -> bool:
    """Whether a file begins as a gzip file does (RFC 1952)."""
    with open(path, "rb") as file:
        return file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC


def gzip_fault(path: str) -> str | None:
    """What is wrong with a gzip file by its own checksums (RFC 1952: CRC-32 and length), or None."""
    try:
        with gzip.open(path) as file:
            while file.read(BLOCK):
                pass
    except (EOFError, OSError, zlib.error) as error:
        return str(error)
    return None
