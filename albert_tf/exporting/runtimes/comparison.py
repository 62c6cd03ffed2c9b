"""How far an export is from the Keras model it was made of: on real texts, and in the scores on a labelled file.

An output's difference is measured twice: the largest one, and the root of the mean square by that of the model's own
values. The second one is held to a bound. One product of rounded factors is off by about this share of its values:

    float32     1e-5    2^-24, in a sum of up to 16,384 terms
    float16     2e-4    2^-12
    bfloat16    2e-3    2^-9, both factors
    int8        5e-3    a step of 1/127 of the largest value is off by its part of the root of 12, both factors

A block has four products, and what they are off by adds up like independent errors: ten times as much behind the
twenty-four blocks of the deepest published models. The bound is ten times that again, for saturated softmaxes and
values whose largest is far above the others. A mistake (a missing mask, an activation of another form in every layer)
lies beyond it in float32; what a precision costs a given model, the scores tell.

B rows of a batch, S its padded length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.errors import InputError
from albert_tf.exporting.parts import Parts
from albert_tf.exporting.runtimes.check_inputs import Arrays, Function, outputs_of
from albert_tf.exporting.runtimes.file_predictor import FilePredictor
from albert_tf.feature_set import FeatureSet
from albert_tf.tasks.examples import Example

EXACT = "float32"
BOUNDS = {EXACT: 1e-3, "float16": 2e-2, "bfloat16": 0.2, "int8": 0.5}
# Of whole numbers and truth values as many at least are the same: where two are all but equally likely, they change
# places, and the ends that are followed from a start change with it. A mistake leaves hardly any.
LEAST_EQUAL = {EXACT: 0.95, "float16": 0.8, "bfloat16": 0.5, "int8": 0.25}
_ADVICE = "compare it on texts of the model's own kind (--check_texts), or take another --format"
_STARTS, _START_LOG_PROBS = "start_top_index", "start_top_log_probs"
_ENDS, _END_LOG_PROBS = "end_top_index", "end_top_log_probs"
_NOT_ALLOWED = -1e29  # logits below it are those of positions that cannot be an answer


def differences(model: Function, export: Function, some: Iterable[Arrays], per_position: set[str]) -> dict[str, Any]:
    """Compares two functions.

    Args:
        model: the one to compare with.
        export: the other one.
        some: batches with `input_ids`, `input_mask` and `segment_ids`.
        per_position: the outputs [B,S,…], of which padding does not count.

    Returns:
        Output to `max_difference` and `relative_rms` of numbers, or `share_equal` of whole numbers and truth values.

    Raises:
        InputError: the export lacks an output, or has it in another shape.
    """
    found: dict[str, _Sums] = {}
    for batch in some:
        mask = batch["input_mask"].reshape(-1, batch["input_mask"].shape[-1]) > 0
        is_row = mask.any(axis=1)
        wanted, given = outputs_of(model, batch), outputs_of(export, batch)
        for name, values in wanted.items():
            if name not in given or given[name].shape != values.shape:
                there = f"of the shape {given[name].shape}" if name in given else "not in the export"
                raise InputError(f"the output {name} is {there}, but must have the shape {values.shape}")
            chosen = mask if name in per_position else is_row
            if name in (_ENDS, _END_LOG_PROBS):
                counts = wanted[_START_LOG_PROBS] > _NOT_ALLOWED  # the vectors that are no candidates mean nothing
                if name == _END_LOG_PROBS:  # from one start and from another one they cannot be compared
                    counts = counts & (wanted[_STARTS] == given[_STARTS])
                chosen = chosen[:, np.newaxis] & np.repeat(counts, values.shape[1] // counts.shape[1], axis=1)
            found.setdefault(name, _Sums()).add(values[chosen], given[name][chosen])
    return {name: sums.result() for name, sums in found.items()}


class _Sums:
    """One output over all batches."""

    def __init__(self) -> None:
        self._count = self._equal = 0
        self._squares = self._own_squares = self._largest = 0.0
        self._is_float = True

    def add(self, wanted: np.ndarray, given: np.ndarray) -> None:
        """Two arrays of one shape."""
        self._is_float = wanted.dtype.kind == "f"
        self._count += wanted.size
        self._equal += int(np.count_nonzero(wanted == given))
        if self._is_float:
            counts = wanted > _NOT_ALLOWED
            wanted, given = wanted[counts].astype(np.float64), given[counts].astype(np.float64)
            self._squares += float(np.square(wanted - given).sum())
            self._own_squares += float(np.square(wanted).sum())
            self._largest = float(np.abs(wanted - given).max(initial=self._largest))  # NaN stays NaN

    def result(self) -> dict[str, float]:
        """See `differences`."""
        if not self._is_float:
            return {"share_equal": self._equal / max(1, self._count)}
        ratio = math.sqrt(self._squares / self._own_squares) if self._own_squares else math.sqrt(self._squares)
        return {"max_difference": self._largest, "relative_rms": ratio}


def check(found: Mapping[str, Mapping[str, float]], weights: str, what: str) -> None:
    """Holds differences to the bound of a precision.

    Args:
        found: of `differences`.
        weights: the precision.
        what: the export, as a person knows it.

    Raises:
        InputError: one is beyond it, or no number at all.
    """
    advice = _ADVICE if weights == EXACT else f"give {EXACT} in place of {weights}"
    for name, values in found.items():
        if values.get("share_equal", 1.0) < LEAST_EQUAL[weights]:
            raise InputError(
                f"{what} is not written: of its {name} {values['share_equal']:.0%} are the model's, and with {weights} "
                f"at least {LEAST_EQUAL[weights]:.0%} should be: {advice}"
            )
        ratio = values.get("relative_rms", 0.0)
        if not ratio <= BOUNDS[weights]:
            raise InputError(
                f"{what} is not written: its {name} differs from the model's by {ratio:.2g} of its size (at most by "
                f"{values['max_difference']:.2g}), and {weights} should keep it within {BOUNDS[weights]:g}: {advice}"
            )


def scores(
    parts: Parts, functions: Mapping[str, Function], features: FeatureSet, examples: Sequence[Example], metrics: Any
) -> dict[str, dict[str, float]]:
    """The scores of functions on labelled examples.

    Args:
        parts: the model with the kind of its task.
        functions: name to function.
        features: of the examples.
        examples: with labels.
        metrics: names in `albert_tf.metrics`.

    Returns:
        Name of a function to metric to value.
    """
    return {
        name: dict(
            parts.kind.scores(examples, FilePredictor(parts.kind, function).of_features(features, examples), metrics)
        )
        for name, function in functions.items()
    }
