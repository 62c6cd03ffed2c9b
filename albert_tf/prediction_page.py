"""Predictions as one HTML file that opens from disk: the worst first, each in its text, and what is taken for what.

It needs the examples and predictions alone, no model and no TensorFlow, and loads nothing from anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from albert_tf import answer_metrics, storage
from albert_tf.inspection.document import document, isolated
from albert_tf.inspection.judgement import Judgement, judge
from albert_tf.inspection.overview import overview
from albert_tf.inspection.rows import article
from albert_tf.tasks.examples import Example, Prediction, QuestionExample

MAX_ROWS = 500

_LEGEND = (
    '<p class="note">In a context <mark class="gold">an answer of the file</mark>, '
    '<mark class="predicted">the predicted one</mark>, and <mark class="both">both</mark>.</p>\n'
)


def write(
    path: str | os.PathLike[str],
    title: str,
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    *,
    labels: Sequence[str] = (),
    scores: Mapping[str, float] | None = None,
    max_rows: int = MAX_ROWS,
) -> None:
    """Writes the page of `page`; the file appears complete or not at all.

    Args:
        path: of the file, by custom with the ending .html.
        title, examples, predictions, labels, scores, max_rows: as there.

    Raises:
        InputError: the file cannot be written.
    """
    html = page(title, examples, predictions, labels=labels, scores=scores, max_rows=max_rows)
    storage.write_bytes(os.fspath(path), html.encode("utf-8"))


def page(
    title: str,
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    *,
    labels: Sequence[str] = (),
    scores: Mapping[str, float] | None = None,
    max_rows: int = MAX_ROWS,
) -> str:
    """The HTML of predictions of one kind.

    Args:
        title: such as "SST-2, dev".
        examples: all of one kind; with labels or without.
        predictions: one for each example, in the same order.
        labels: of a classifier, names of the probabilities in order.
        scores: metric to value, shown at the top; answers of questions are right or wrong as the first of them counts.
        max_rows: how many predictions are shown; the page says how many are not.
    """
    if len(examples) != len(predictions):
        raise ValueError(f"{len(examples)} examples and {len(predictions)} predictions")
    _, scorer = answer_metrics.scorer_of(next(iter(scores or ()), ""))
    judgements = [judge(example, prediction, labels, scorer) for example, prediction in zip(examples, predictions)]
    order = sorted(range(len(examples)), key=lambda at: (not judgements[at].has_gold, -judgements[at].badness))
    shown = order[:max_rows]
    left_out = f" The other {len(order) - len(shown):,} are left out." if len(order) > len(shown) else ""
    parts = [
        _facts(judgements, scores or {}),
        overview(examples, predictions, labels),
        f'<h2>Predictions</h2>\n<p class="note">{_order(judgements)}{left_out}</p>\n',
        _LEGEND if any(isinstance(example, QuestionExample) for example in examples) else "",
        _tools(any(one.is_right is not None for one in judgements)),
        *(article(examples[at], predictions[at], judgements[at], labels) for at in shown),
    ]
    return document(title, "".join(parts))


def _order(judgements: Sequence[Judgement]) -> str:
    if not any(one.has_gold for one in judgements):
        return "The least certain first, for the file tells no labels."
    if any(one.gold_probability is not None for one in judgements):
        return "The worst first: the smaller the probability of what the file says, the higher up."
    return "The worst first: the farther from what the file says, the higher up."


def _facts(judgements: Sequence[Judgement], scores: Mapping[str, float]) -> str:
    facts = [(name, f"{value:.4f}") for name, value in scores.items()]
    facts.append(("predictions", f"{len(judgements):,}"))
    verdicts = [one.is_right for one in judgements if one.is_right is not None]
    if verdicts:
        wrong = len(verdicts) - sum(verdicts)
        facts.append(("of them wrong", f"{wrong:,} ({wrong / len(verdicts):.1%})"))
    items = "".join(f"<li><b>{value}</b><span>{isolated(name)}</span></li>" for name, value in facts)
    return f'<ul class="facts">{items}</ul>\n'


def _tools(has_verdicts: bool) -> str:
    only_errors = '<label><input type="checkbox" id="only-errors"> only errors</label>' if has_verdicts else ""
    search = '<input type="search" id="filter" placeholder="only with this text" aria-label="only with this text">'
    return f'<div class="tools">{only_errors}<span hidden>{search}</span></div>\n'
