"""Which head a checkpoint has, told from the released names of its variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from albert_tf.head_config import HeadConfig

# Matrices of a head -> its kind; the first kind whose matrices are all there counts. Fine-tuned files of the released
# code have no pre-training heads, so a file with both of these is one of pre-training, whatever was added to it.
_TELLTALES = (
    (("cls/seq_relationship/output_weights", "cls/predictions/transform/dense/kernel"), "pretraining"),
    (("cls/squad/output_weights",), "span"),
    (("start_logits/dense/kernel",), "answerable_span"),
    (("output_weights",), "classifier"),
    (("cls/predictions/transform/dense/kernel",), "masked_lm"),
)


def has_matrices(kind: str, names: Iterable[str]) -> bool:
    """Whether the matrices by which a kind of head is known are among the names."""
    return any(kind == other and {*names}.issuperset(matrices) for matrices, other in _TELLTALES)


def head_from_weights(weights: Mapping[str, np.ndarray]) -> HeadConfig:
    """The head of weights under released names.

    `output_weights` [C,H] is a classifier's, but has the same name in a tagger (token classification), and with C = 1
    in regression and multiple choice (RACE) too: the class of model that loads it decides.
    """
    matrices = {name for name, value in weights.items() if value.ndim == 2}
    kind = next((kind for names, kind in _TELLTALES if matrices.issuperset(names)), "encoder")
    return HeadConfig(kind, int(weights["output_weights"].shape[0]) if kind == "classifier" else None)
