"""Which head a checkpoint has, told from the released names of its variables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from albert_tf.head_config import HeadConfig

# A name that only the files with that head have -> its kind; the first that is there counts.
_TELLTALES = (
    ("cls/squad/output_weights", "span"),
    ("start_logits/dense/kernel", "answerable_span"),
    ("output_weights", "classifier"),
    ("cls/seq_relationship/output_weights", "pretraining"),
    ("cls/predictions/transform/dense/kernel", "masked_lm"),
)


def head_from_weights(weights: Mapping[str, np.ndarray]) -> HeadConfig:
    """The head of weights under released names.

    `output_weights` [C,H] is a classifier's, but has the same name in a tagger (token classification), and with C = 1
    in regression and multiple choice (RACE) too: the class of model that loads it decides.
    """
    kind = next((kind for name, kind in _TELLTALES if name in weights and weights[name].ndim == 2), "encoder")
    if kind == "pretraining" and "cls/predictions/transform/dense/kernel" not in weights:
        kind = "encoder"
    return HeadConfig(kind, int(weights["output_weights"].shape[0]) if kind == "classifier" else None)
