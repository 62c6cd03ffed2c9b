"""Which head a checkpoint has, told from the released names of its variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from albert_tf.head_config import HeadConfig

# Kind of head -> the matrices that only a file with such a head has, in the order of guessing. Fine-tuned files of the
# released code have no pre-training heads, so one with both of these is of pre-training, whatever was added to it.
_MATRICES = {
    "pretraining": ("cls/seq_relationship/output_weights", "cls/predictions/transform/dense/kernel"),
    "span": ("cls/squad/output_weights",),
    "answerable_span": ("start_logits/dense/kernel",),
    "classifier": ("output_weights",),
    "masked_lm": ("cls/predictions/transform/dense/kernel",),
    "multiple_choice": ("output_weights",),
    "tagger": ("output_weights",),
}
# These have variables of the same names and shapes: what they mean is told by more than the weights, or not at all.
ALIKE = ("classifier", "multiple_choice", "tagger")


def has_matrices(kind: str, names: Iterable[str]) -> bool:
    """Whether the matrices by which a kind of head is known are among the names."""
    return kind in _MATRICES and {*names}.issuperset(_MATRICES[kind])


def head_from_weights(weights: Mapping[str, np.ndarray]) -> HeadConfig:
    """The head of weights under released names.

    `output_weights` [C,H] is a classifier's, or a tagger's in a file without a pooler. It is a guess: a tagger may have
    a pooler, and regression and multiple choice (RACE) have C = 1. The class of model that loads it decides.
    """
    matrices = {name for name, value in weights.items() if value.ndim == 2}
    kind = next((kind for kind in _MATRICES if has_matrices(kind, matrices)), "encoder")
    if kind != "classifier":
        return HeadConfig(kind)
    if "bert/pooler/dense/kernel" not in matrices:
        kind = "tagger"
    return HeadConfig(kind, int(weights["output_weights"].shape[0]))
