"""What stands above the predictions: which label is taken for which, and numbers against numbers.

C labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from albert_tf.inspection.document import isolated, table
from albert_tf.inspection.plots import scatter
from albert_tf.inspection.rows import NO_ANSWER
from albert_tf.tasks.examples import (
    AnswerPrediction,
    Example,
    Prediction,
    QuestionExample,
    TagExample,
    TagPrediction,
    TextExample,
    TextPrediction,
)

_MOST_COLUMNS = 20  # a larger matrix is not read by anybody: the most frequent confusions are told instead
_ANSWER = "an answer"
Pair = tuple[str, str]  # gold, predicted


def overview(examples: Sequence[Example], predictions: Sequence[Prediction], labels: Sequence[str]) -> str:
    """HTML of a confusion matrix, a table of labels or a plot, over the examples with a gold label; "" without any."""
    pairs: list[Pair] = []
    sets: list[tuple[set[str], set[str]]] = []
    numbers: list[tuple[float, float]] = []
    for example, prediction in zip(examples, predictions):
        if isinstance(example, TextExample) and isinstance(prediction, TextPrediction):
            gold, answer = example.label, prediction.label
            if isinstance(gold, str) and isinstance(answer, str):
                pairs.append((gold, answer))
            elif isinstance(gold, tuple) and isinstance(answer, tuple):
                sets.append((set(gold), set(answer)))
            elif isinstance(gold, (int, float)) and isinstance(answer, (int, float)):
                numbers.append((float(gold), float(answer)))
        elif isinstance(example, QuestionExample) and isinstance(prediction, AnswerPrediction):
            if example.answers is not None:
                pairs.append((NO_ANSWER if example.is_impossible else _ANSWER, prediction.text and _ANSWER))
        elif isinstance(example, TagExample) and isinstance(prediction, TagPrediction):
            pairs += zip(example.tags or (), prediction.tags)
    pairs = [(gold, answer or NO_ANSWER) for gold, answer in pairs]
    if any(isinstance(example, QuestionExample) for example in examples):
        labels = (_ANSWER, NO_ANSWER) if any(NO_ANSWER in pair for pair in pairs) else ()
        pairs = pairs if labels else []
    return _confusion(pairs, labels) + _by_label(sets, labels) + _scatter(numbers)


def _confusion(pairs: Sequence[Pair], labels: Sequence[str]) -> str:
    counts = Counter(pairs)
    names = _names(labels, (name for pair in pairs for name in pair))
    if not pairs:
        return ""
    if len(names) > _MOST_COLUMNS:
        return _most_confused(counts)
    rows = []
    for gold in names:
        total = sum(counts[gold, predicted] for predicted in names)
        cells = [_cell(counts[gold, predicted], total, gold == predicted) for predicted in names]
        recall = f"{counts[gold, gold] / total:.3f}" if total else "–"
        rows.append(f"<tr><th>{isolated(gold)}</th>{''.join(cells)}<td>{total:,}</td><td>{recall}</td></tr>")
    heads = ["", *map(isolated, names), "all", "recall"]
    return f"<h2>Gold (rows) and predicted (columns)</h2>\n{table(heads, rows)}"


def _cell(count: int, total: int, is_diagonal: bool) -> str:
    names = "share diagonal" if is_diagonal else "share"
    return f'<td class="{names}" style="--share: {count / total if total else 0.0:.3f}">{count:,}</td>'


def _most_confused(counts: Counter[Pair]) -> str:
    wrong = [(pair, count) for pair, count in counts.most_common() if pair[0] != pair[1]][:_MOST_COLUMNS]
    rows = "".join(
        f"<tr><th>{isolated(gold)}</th><th>{isolated(answer)}</th><td>{count:,}</td></tr>"
        for (gold, answer), count in wrong
    )
    return (
        "<h2>The most frequent confusions</h2>\n<table><thead><tr><th>gold</th><th>predicted</th><th>times</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>\n"
    )


def _by_label(sets: Sequence[tuple[set[str], set[str]]], labels: Sequence[str]) -> str:
    """Of a multi-label task: precision and recall of each label."""
    if not sets:
        return ""
    rows = []
    for name in _names(labels, (name for pair in sets for one in pair for name in one)):
        gold, predicted = (sum(name in pair[which] for pair in sets) for which in (0, 1))
        both = sum(name in first and name in second for first, second in sets)
        shares = "".join(f"<td>{f'{both / whole:.3f}' if whole else '–'}</td>" for whole in (predicted, gold))
        rows.append(
            f"<tr><th>{isolated(name)}</th><td>{gold:,}</td><td>{predicted:,}</td><td>{both:,}</td>{shares}</tr>"
        )
    return f"<h2>Each label</h2>\n{table(('', 'gold', 'predicted', 'both', 'precision', 'recall'), rows)}"


def _scatter(numbers: Sequence[tuple[float, float]]) -> str:
    if not numbers:
        return ""
    return f"<h2>Predicted against gold</h2>\n{scatter(numbers, 'gold', 'predicted')}\n"


def _names(labels: Sequence[str], found: Iterable[str]) -> list[str]:
    """The labels in their order, and behind them whatever else was found."""
    return [*labels, *sorted(set(found) - set(labels))]
