"""Queries, keys and values as one product.

H hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def joined_qkv(
    kernels: Sequence[np.ndarray], biases: Sequence[np.ndarray], factor: float
) -> tuple[np.ndarray, np.ndarray]:
    """The kernel [H,3H] and the bias [3H] of all three.

    Args:
        kernels, biases: of queries, keys and values, in this order: [H,H] and [H].
        factor: of the scores; it is multiplied into the query's part, where it costs nothing.
    """
    by = np.float32(factor)
    return np.concatenate([kernels[0] * by, *kernels[1:]], axis=1), np.concatenate([biases[0] * by, *biases[1:]])
