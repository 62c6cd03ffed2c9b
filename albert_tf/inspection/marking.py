"""A context with the answer of a model and those of the file marked in it; a long one is folded around the marks."""

from __future__ import annotations

from collections.abc import Sequence

from albert_tf.inspection.document import FOLDED_CHARACTERS, block, escaped, unfolding

GOLD, PREDICTED = "gold", "predicted"
_AROUND = 160  # characters of context on each side of a mark
Span = tuple[int, int]


def marked(context: str, gold: Sequence[Span], predicted: Span | None) -> str:
    """HTML of a context; spans are characters [start, end) and may lie outside of the context or over each other."""
    whole = block(_marked_part(context, 0, len(context), gold, predicted))
    if len(context) <= FOLDED_CHARACTERS:
        return whole
    spans = [span for span in (*gold, *([predicted] if predicted else ())) if _inside(span, context)]
    shown = _merged([(start - _AROUND, end + _AROUND) for start, end in spans or [(0, _AROUND)]], len(context))
    excerpt = " … ".join(_marked_part(context, start, end, gold, predicted) for start, end in shown)
    before, after = "… " if shown[0][0] > 0 else "", " …" if shown[-1][1] < len(context) else ""
    return block(before + excerpt + after) + unfolding(f"the whole context, {len(context.split()):,} words", whole)


def _inside(span: Span, context: str) -> bool:
    return 0 <= span[0] < span[1] and span[0] < len(context)


def _merged(spans: Sequence[Span], size: int) -> list[Span]:
    """Ascending spans within 0..size, those that touch made one."""
    merged: list[Span] = []
    for start, end in sorted((max(0, start), min(size, end)) for start, end in spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _marked_part(context: str, first: int, last: int, gold: Sequence[Span], predicted: Span | None) -> str:
    gold_parts, predicted_parts = _merged(gold, len(context)), _merged([predicted] if predicted else [], len(context))
    edges = {first, last, *(edge for part in (*gold_parts, *predicted_parts) for edge in part)}
    cuts = sorted(edge for edge in edges if first <= edge <= last)
    html = []
    for start, end in zip(cuts, cuts[1:]):
        name = _name(_covers(gold_parts, start), _covers(predicted_parts, start))
        text = escaped(context[start:end])
        html.append(f'<mark class="{name}" title="{_TITLES[name]}">{text}</mark>' if name else text)
    return "".join(html)


_TITLES = {GOLD: "in the file", PREDICTED: "predicted", "both": "in the file and predicted"}


def _covers(spans: Sequence[Span], at: int) -> bool:
    return any(start <= at < end for start, end in spans)


def _name(is_gold: bool, is_predicted: bool) -> str:
    if is_gold and is_predicted:
        return "both"
    return GOLD if is_gold else PREDICTED if is_predicted else ""
