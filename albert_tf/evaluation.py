"""Held-out numbers of pre-training, and the best guess that does not look at the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from albert_tf import losses


def evaluate(evaluation_step: Callable[[Any], losses.LossSums], batches: Iterable[Any]) -> dict[str, float]:
    """Loss and accuracy of both objectives over all batches, each example and prediction counted once.

    Args:
        evaluation_step: the sums of a global batch, see `pretraining_step.make_evaluation_step`.
        batches: the held-out batches, distributed as the step takes them.

    Returns:
        `masked_lm_loss`, `masked_lm_accuracy`, `sentence_order_loss`, `sentence_order_accuracy`, `examples` and
        `predictions` (how many were counted).
    """
    totals = losses.LossSums(*[0.0] * len(losses.LossSums._fields))
    for batch in batches:
        totals = losses.LossSums(*(total + float(value) for total, value in zip(totals, evaluation_step(batch))))
    return {
        **metrics_of(totals),
        "examples": totals.sentence_order_weight,
        "predictions": totals.masked_lm_weight,
    }


def metrics_of(sums: losses.LossSums) -> dict[str, float]:
    """`losses.pretraining_metrics` of sums that are Python numbers."""
    return {name: float(value) for name, value in losses.pretraining_metrics(sums).items()}


def unigram_loss(training_counts: np.ndarray, held_out_counts: np.ndarray) -> float:
    """The masked-LM loss of guessing every held-out piece by how often pieces were masked in training.

    What a model scores above this it has not learned from the context. Unseen pieces count as seen once.

    Args:
        training_counts: [V], see `input_pipeline.masked_piece_counts`.
        held_out_counts: [V].

    Returns:
        Cross entropy in nats.
    """
    smoothed = training_counts + 1.0
    log_probabilities = np.log(smoothed / smoothed.sum())
    return float(-(held_out_counts * log_probabilities).sum() / max(held_out_counts.sum(), 1.0))
