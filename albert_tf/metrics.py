"""The metrics of the tasks as their official scripts define them, in fractions of 1: functions of labels, predictions.

Rows that only fill a batch are left out before. N examples, C labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from albert_tf.entity_metrics import ENTITY_METRICS
from albert_tf.errors import InputError

POSITIVE = 1  # the class that F1 is of, as in GLUE


def accuracy(labels: Any, predictions: Any) -> float:
    """The share of rows that are right: [N]; or [N,C] of a multi-label task, where a row is right as a whole."""
    labels, predictions = _checked(labels, predictions)
    right = labels == predictions
    return _fraction(np.count_nonzero(right.reshape(len(right), -1).all(1)), len(right))


def f1(labels: Any, predictions: Any) -> float:
    """F1 of class 1 among classes [N] (MRPC, QQP); over all labels together for [N,C]. 0 where neither has any."""
    labels, predictions = _checked(labels, predictions)
    return _f1_of(labels == POSITIVE, predictions == POSITIVE)


def micro_f1(labels: Any, predictions: Any) -> float:
    """F1 over all labels together, [N,C]; of classes [N] it is their accuracy."""
    labels, predictions = _checked(labels, predictions)
    return f1(labels, predictions) if labels.ndim == 2 else accuracy(labels, predictions)


def macro_f1(labels: Any, predictions: Any) -> float:
    """The mean of each class's F1: of the classes that occur in [N], or of all labels of [N,C]."""
    labels, predictions = _checked(labels, predictions)
    if labels.ndim == 2:
        return _mean([_f1_of(labels[:, c] == 1, predictions[:, c] == 1) for c in range(labels.shape[1])])
    return _mean([_f1_of(labels == c, predictions == c) for c in np.union1d(labels, predictions)])


def matthews(labels: Any, predictions: Any) -> float:
    """Matthews' correlation (CoLA), -1 to 1, for two or more classes [N]; 0 where either side is constant."""
    from sklearn.metrics import matthews_corrcoef

    labels, predictions = _checked(labels, predictions)
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(matthews_corrcoef(labels, predictions))


def pearson(labels: Any, predictions: Any) -> float:
    """Pearson's correlation (STS-B), -1 to 1; 0, with a warning, where it is undefined since a side is constant."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, "Pearson", labels, predictions)


def spearman(labels: Any, predictions: Any) -> float:
    """Spearman's rank correlation (STS-B), ties sharing their mean rank; see `pearson`."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, "Spearman", labels, predictions)


def mean_squared_error(labels: Any, predictions: Any) -> float:
    """The mean of the squared differences, which the released run_classifier.py reports of STS-B; not a fraction."""
    labels, predictions = _checked(labels, predictions)
    return _mean(np.square(labels.astype(np.float64) - predictions.astype(np.float64)))


def accuracy_and_f1(labels: Any, predictions: Any) -> float:
    """The mean of both, one number for MRPC and QQP as in GLUE."""
    return (accuracy(labels, predictions) + f1(labels, predictions)) / 2


def pearson_and_spearman(labels: Any, predictions: Any) -> float:
    """The mean of both, one number for STS-B as in GLUE."""
    return (pearson(labels, predictions) + spearman(labels, predictions)) / 2


METRICS: Mapping[str, Callable[[Any, Any], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "micro_f1": micro_f1,
    "macro_f1": macro_f1,
    "matthews": matthews,
    "pearson": pearson,
    "spearman": spearman,
    "mean_squared_error": mean_squared_error,
    "accuracy_and_f1": accuracy_and_f1,
    "pearson_and_spearman": pearson_and_spearman,
    **ENTITY_METRICS,
}
LOWER_IS_BETTER = frozenset({"mean_squared_error"})


def compute(names: Sequence[str], labels: Any, predictions: Any) -> dict[str, float]:
    """Metric to value.

    Raises:
        InputError: there is no such metric, or no example with a label.
    """
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise InputError(f"there is no metric {unknown[0]!r}: there are {', '.join(METRICS)}")
    if not len(labels):
        raise InputError("no example has a label, so there is nothing to score")
    return {name: METRICS[name](labels, predictions) for name in names}


def _checked(labels: Any, predictions: Any) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.shape != predictions.shape:
        raise ValueError(f"labels have shape {labels.shape}, predictions {predictions.shape}")
    return labels, predictions


def _correlation(function: Callable[[Any, Any], Any], name: str, labels: Any, predictions: Any) -> float:
    labels, predictions = (values.astype(np.float64) for values in _checked(labels, predictions))
    if not np.isfinite(predictions).all():
        raise ValueError("a prediction is not a finite number")
    if _is_constant(labels) or _is_constant(predictions):
        logging.warning("%s's correlation is undefined, as all values are the same: 0 stands for it", name)
        return 0.0
    value = float(function(labels, predictions)[0])
    return value if math.isfinite(value) else 0.0


def _is_constant(values: np.ndarray) -> bool:
    return len(values) == 0 or bool((values == values[0]).all())


def _f1_of(labels: np.ndarray, predictions: np.ndarray) -> float:
    """F1 of two arrays of bool."""
    return _fraction(
        2 * np.count_nonzero(labels & predictions), np.count_nonzero(labels) + np.count_nonzero(predictions)
    )


def _fraction(part: int, whole: int) -> float:
    return float(part) / float(whole) if whole else 0.0


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else 0.0
