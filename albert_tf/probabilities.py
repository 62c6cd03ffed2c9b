"""Logits to probabilities, in NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def softmax(logits: npt.ArrayLike) -> np.ndarray:
    """Probabilities over the last axis, float64."""
    logits = np.asarray(logits, np.float64)
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def sigmoid(logits: npt.ArrayLike) -> np.ndarray:
    """Each logit's own probability, float64."""
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(logits, np.float64)))
