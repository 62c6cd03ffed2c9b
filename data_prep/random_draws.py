"""Where every random number of the preparation comes from.

A draw depends on the seed, the document and the pass alone: not on the number of processes, nor on what else is in the
input's other files.
"""

from __future__ import annotations

import hashlib

import numpy as np

_DOCUMENT, _ORDER = 0, 1  # what the draws are for


def document_generator(seed: int, file_index: int, offset: int, pass_index: int) -> np.random.Generator:
    """The generator of one document in one pass."""
    return _generator(seed, _DOCUMENT, file_index, offset, pass_index)


def order_generator(seed: int, file_index: int, offset: int, pass_index: int) -> np.random.Generator:
    """The generator that shuffles the records of a window of documents, named by its first document."""
    return _generator(seed, _ORDER, file_index, offset, pass_index)


def _generator(seed: int, purpose: int, file_index: int, offset: int, pass_index: int) -> np.random.Generator:
    # Six numbers below 2^32, so that no two lists of them are taken for the same.
    words = (seed, purpose, file_index, offset & 0xFFFFFFFF, offset >> 32, pass_index)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def held_out_draw(seed: int, file_index: int, offset: int) -> float:
    """A number in [0, 1) for the document; those below the held-out share go to the eval split."""
    digest = hashlib.blake2b(f"{seed} {file_index} {offset}".encode(), digest_size=7).digest()
    return (int.from_bytes(digest, "big") >> 3) / (1 << 53)
