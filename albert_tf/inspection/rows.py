"""One prediction as HTML: what the file says, what the model says, and the text with the answer in it.

C labels, K choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from albert_tf.inspection.document import block, escaped, folded, isolated, unfolding
from albert_tf.inspection.judgement import Judgement, probability_of_no_answer
from albert_tf.inspection.marking import GOLD, PREDICTED, marked
from albert_tf.tasks.examples import (
    AnswerPrediction,
    ChoiceExample,
    ChoicePrediction,
    Example,
    QuestionExample,
    TagExample,
    TagPrediction,
    TextExample,
    TextPrediction,
)
from albert_tf.tasks.squad_files import locate
from albert_tf.tasks.submissions import choice_name

NO_ANSWER = "no answer"
_MOST_BARS = 8  # of many labels, the likeliest
_VERDICTS = {True: ("right", "right"), False: ("wrong", "wrong"), None: ("", "")}


class _Bar(NamedTuple):
    html: str
    probability: float
    is_gold: bool
    is_predicted: bool


def article(example: Example, prediction: Any, judgement: Judgement, labels: Sequence[str]) -> str:
    """The HTML of one prediction; `labels` are the names of the C probabilities of a classifier."""
    heads, body = _PARTS[type(example)](example, prediction, labels)
    verdict, names = _VERDICTS[judgement.is_right]
    parts = [f'<span class="verdict">{verdict}</span>'] if verdict else []
    parts += [f'<span><span class="key">{key}</span> <span class="value">{value}</span></span>' for key, value in heads]
    if judgement.gold_probability is not None:
        given = f"{judgement.gold_probability:.3f}"
        parts.append(f'<span><span class="key">probability of the gold one</span> {given}</span>')
    place = ", ".join(filter(None, (f"id {example.id}", example.place)))
    parts.append(f'<span class="place">{isolated(place)}</span>')
    return f'<article class="{names}">\n<header>{"".join(parts)}</header>\n{body}\n</article>'


_Parts = tuple[list[tuple[str, str]], str]  # (key, HTML of the value) of the header, and the HTML below


def _text(example: TextExample, prediction: TextPrediction, labels: Sequence[str]) -> _Parts:
    heads = [("predicted", _label(prediction.label))]
    if example.label is not None:
        heads.insert(0, ("gold", _label(example.label)))
    if isinstance(prediction.label, (int, float)) and isinstance(example.label, (int, float)):
        heads.append(("difference", f"{prediction.label - example.label:+.3f}"))
    pair = example.text_b is not None
    body = folded(example.text_a, "A" if pair else "")
    if example.text_b is not None:
        body += folded(example.text_b, "B")
    if prediction.probabilities is not None:
        gold, predicted = _as_set(example.label), _as_set(prediction.label)
        bars = [
            _Bar(isolated(label), float(probability), label in gold, label in predicted)
            for label, probability in zip(labels, prediction.probabilities)
        ]
        body += _bars(bars if len(bars) <= _MOST_BARS else _foremost(bars))
    return heads, body


def _label(label: Any) -> str:
    if isinstance(label, tuple):
        return ", ".join(map(isolated, label)) or "none"
    return isolated(label) if isinstance(label, str) else f"{label:.3f}"


def _as_set(label: Any) -> set[str]:
    return set(label) if isinstance(label, tuple) else {label} if isinstance(label, str) else set()


def _foremost(bars: Sequence[_Bar]) -> list[_Bar]:
    """The likeliest, and whatever else is gold or predicted."""
    ordered = sorted(bars, key=lambda bar: -bar.probability)
    return [bar for at, bar in enumerate(ordered) if at < _MOST_BARS or bar.is_gold or bar.is_predicted]


def _choice(example: ChoiceExample, prediction: ChoicePrediction, labels: Sequence[str]) -> _Parts:
    del labels
    heads = [("predicted", choice_name(prediction.label))]
    if example.label is not None:
        heads.insert(0, ("gold", choice_name(example.label)))
    if example.group:
        heads.append(("group", isolated(example.group)))
    bars = [
        _Bar(f"{choice_name(at)}. {isolated(choice)}", float(probability), at == example.label, at == prediction.label)
        for at, (choice, probability) in enumerate(zip(example.choices, prediction.probabilities))
    ]
    return heads, folded(example.passage) + folded(example.question, "question") + _bars(bars)


def _answer(example: QuestionExample, prediction: AnswerPrediction, labels: Sequence[str]) -> _Parts:
    del labels
    heads = [("predicted", isolated(prediction.text or NO_ANSWER))]
    spans = []
    if example.answers is not None:
        texts = dict.fromkeys(answer.text for answer in example.answers)
        heads.insert(0, ("gold", " or ".join(map(isolated, texts or [NO_ANSWER]))))
        places = (locate(example.context, answer) for answer in example.answers)
        spans = [place for place in places if place is not None]
    if prediction.null_odds is not None:
        heads.append(("probability of no answer", f"{probability_of_no_answer(prediction):.3f}"))
    answer = (prediction.start, prediction.end) if prediction.text else None
    body = folded(example.question, "question") + marked(example.context, spans, answer)
    if prediction.n_best:
        gold = {text for text in (answer.text for answer in example.answers or ())}
        best = [
            _Bar(
                isolated(one["text"]),
                float(one["probability"]),
                one["text"] in gold,
                one["text"] == prediction.text,
            )
            for one in prediction.n_best
        ]
        body += unfolding(f"the {len(best)} best answers", _bars(best))
    return heads, body


def _tags(example: TagExample, prediction: TagPrediction, labels: Sequence[str]) -> _Parts:
    del labels
    gold = example.tags or (None,) * len(example.words)
    words = zip(example.words, gold, prediction.tags, prediction.probabilities)
    heads = []
    if example.tags is not None:
        wrong = sum(one != other for one, other in zip(example.tags, prediction.tags))
        heads.append(("wrong tags", f"{wrong} of {len(example.words)}"))
    return heads, block(" ".join(_word(*word) for word in words), "text words")


def _word(word: str, gold: str | None, tag: str, probability: float) -> str:
    is_wrong = gold is not None and gold != tag
    told = []
    if tag != "O" or is_wrong:
        told.append(f"<small>{escaped(tag)} {probability:.2f}</small>")
    if is_wrong:
        told.append(f'<small class="bad">gold {escaped(str(gold))}</small>')
    names = ["word", *(["tagged"] if tag != "O" else []), *(["good"] if tag != "O" and gold == tag else [])]
    names += ["bad"] if is_wrong else []
    return f'<span class="{" ".join(names)}">{isolated(word)}{"".join(told)}</span>'


def _bars(bars: Iterable[_Bar]) -> str:
    """A list of probabilities with what each belongs to."""
    rows = []
    for bar in bars:
        about = f'<span class="is {GOLD}">gold</span>' if bar.is_gold else ""
        about += f'<span class="is {PREDICTED}">predicted</span>' if bar.is_predicted else ""
        length = f'<span class="bar"><i style="--share: {bar.probability:.4f}"></i></span>'
        number = f'<span class="number">{bar.probability:.3f}</span>'
        rows.append(f'<li>{number}{length}<span dir="auto">{bar.html}{about}</span></li>')
    return f'<ol class="bars">{"".join(rows)}</ol>'


_PARTS: dict[type, Any] = {TextExample: _text, ChoiceExample: _choice, QuestionExample: _answer, TagExample: _tags}
