"""What the logs of a fine-tuning say: which evaluation is the best, whether it is time to stop, whether it learns.

All are functions of lines that are on disk, so a run that goes on after a stop decides as it would have without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.feature_set import FeatureSet
from albert_tf.head_config import ANSWERABLE, MULTI_LABEL, REGRESSION, SPAN_KINDS, HeadConfig
from albert_tf.metrics import LOWER_IS_BETTER

COLLAPSE_SHARE = 0.2  # of all steps: so long may the loss stay where it began
COLLAPSE_MARGIN = 0.03  # of the loss of a guess: a mean this little below it is no better than guessing
_WORSE_MARGIN = 0.1  # so far above that of a guess batches alone can bring a mean that is as good
_FEWEST_STEPS = 10  # a shorter mean is mostly noise
FIRST = "the first"  # decides between evaluations that are equal in all scores
NO_BETTER, WORSE = "no better than", "worse than"

Line = Mapping[str, Any]


def merit(scores: Line, metrics: Sequence[str]) -> tuple[float, ...]:
    """Scores in a form in which the larger is the better: by the first metric, where that is equal by the second, ….

    Any score is better than what is not a number.
    """
    values = [-scores[metric] if metric in LOWER_IS_BETTER else scores[metric] for metric in metrics]
    return tuple(-math.inf if math.isnan(value) else value for value in values)


def best_line(lines: Sequence[Line], metrics: Sequence[str]) -> Line | None:
    """The evaluation with the best scores, see `merit`, the first of equal ones; None without a number to judge by.

    Args:
        lines: of the evaluation log.
        metrics: of the task, in its order.
    """
    scored = [line for line in lines if not math.isnan(line[metrics[0]])]
    return max(scored, key=lambda line: merit(line, metrics), default=None)


def decided_by(lines: Sequence[Line], metrics: Sequence[str]) -> str | None:
    """The metric that tells the best evaluation from all others; `FIRST` where several are equal in all metrics.

    Args:
        lines, metrics: see `best_line`; None where that finds none.
    """
    best = best_line(lines, metrics)
    if best is None:
        return None
    rivals = [line for line in lines if line is not best]
    for metric in metrics:
        rivals = [line for line in rivals if merit(line, [metric]) == merit(best, [metric])]
        if not rivals:
            return metric
    return FIRST


def evaluations_since_best(lines: Sequence[Line], metric: str) -> int:
    """How many evaluations came after the best one; of equal ones the first counts."""
    best = best_line(lines, [metric])
    return len(lines) if best is None else sum(line["step"] > best["step"] for line in lines)


def guess_loss(head: HeadConfig, features: FeatureSet) -> float | None:
    """The training loss of the best guess that does not look at the text; None where the head has none.

    For classes it is the entropy of how often each occurs, in nats, which is ln(C) where all are as frequent; for a
    regression the variance; for answers the entropy of where they start and end. A model that has learned nothing from
    the texts stays there.

    Args:
        head: the head.
        features: of the training examples.
    """
    arrays = features.per_sequence
    if head.kind == "multiple_choice":
        counts = (features.sizes.reshape(len(features), features.choices) > 0).sum(1)
        return float(np.mean(np.log(np.maximum(counts, 1))))
    if head.kind == "tagger":
        tags = features.per_piece["tag_ids"]
        return _entropy(tags[tags >= 0])
    if head.kind in SPAN_KINDS:
        loss = 0.5 * (_entropy(arrays["start_positions"]) + _entropy(arrays["end_positions"]))
        return loss + 0.5 * _entropy(arrays["is_impossible"]) if head.kind == ANSWERABLE else loss
    labels = arrays["label_ids"]
    if head.problem == REGRESSION:
        return float(np.var(labels))
    if head.problem == MULTI_LABEL:
        return float(np.mean([_entropy(column) for column in labels.T]))
    return _entropy(labels)


def has_collapsed(lines: Sequence[Line], guess: float | None, *, steps: int, warmup_steps: int) -> bool:
    """Whether, at the last of the lines, the loss had been no better than that of a guess for a fifth of all steps.

    Args:
        lines, steps, warmup_steps: see `recent_loss`.
        guess: see `guess_loss`.
    """
    if guess is None or guess <= 0.0:
        return False
    loss = recent_loss(lines, steps=steps, warmup_steps=warmup_steps)
    return loss is not None and loss >= (1.0 - COLLAPSE_MARGIN) * guess


def against_guess(loss: float, guess: float) -> str:
    """How a loss that is not below that of a guess compares with it: `WORSE` or `NO_BETTER`."""
    return WORSE if loss > (1.0 + _WORSE_MARGIN) * guess else NO_BETTER


def recent_loss(lines: Sequence[Line], *, steps: int, warmup_steps: int) -> float | None:
    """The mean loss of the fifth of all steps that ends at the last of the lines; None as long as there are fewer.

    Steps of the warm-up do not count, as far as enough others remain.

    Args:
        lines: of the training log, with `step`, and the mean `loss` of `steps` up to it.
        steps: of the whole training.
        warmup_steps: of these.
    """
    if not lines:
        return None
    window = max(math.ceil(COLLAPSE_SHARE * steps), _FEWEST_STEPS)
    start = max(min(warmup_steps, steps - window), 0)
    first = max(lines[-1]["step"] - window, start)
    if lines[-1]["step"] - start < window:
        return None
    some = [line for line in lines if line["step"] - line["steps"] >= first]
    counts = [line["steps"] for line in some]
    return float(np.average([line["loss"] for line in some], weights=counts)) if counts else None


def _entropy(labels: np.ndarray) -> float:
    _, counts = np.unique(labels, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())
