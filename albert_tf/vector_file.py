"""Vectors as a NumPy file that is written block by block, however many there come to be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

import numpy as np

from albert_tf import files


def write_vectors(path: str, width: int, blocks: Iterable[np.ndarray]) -> int:
    """Writes a .npy file of float32 [N, width]; it appears complete or not at all.

    Args:
        path: of the file.
        width: of a row.
        blocks: some rows each, [n, width].

    Returns:
        N.

    Raises:
        InputError: it cannot be written.
    """
    count = 0
    with files.atomic_write(path) as file:
        _write_header(file, count, width)
        begin = file.tell()
        for block in blocks:
            file.write(block.astype("<f4").tobytes())
            count += len(block)
        file.seek(0)
        _write_header(file, count, width)
        assert file.tell() == begin  # NumPy leaves room in the header for the first dimension to grow
    return count


def _write_header(file: IO[Any], count: int, width: int) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, width)}
    np.lib.format.write_array_header_1_0(file, header)
