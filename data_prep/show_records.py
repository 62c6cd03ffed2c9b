"""Records as text for a person."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from albert_tf import record_spec
from albert_tf.tokenizer import Tokenizer


def show_record(record: Mapping[str, np.ndarray], tokenizer: Tokenizer) -> str:
    """The pieces of a record, A and B on lines of their own; a predicted piece is shown as {what it was>what it is}."""
    ids = record[record_spec.INPUT_IDS]
    segments = record[record_spec.SEGMENT_IDS]
    length = int(record[record_spec.INPUT_MASK].sum())
    predictions = int((record[record_spec.MASKED_LM_WEIGHTS] > 0).sum())
    positions = record[record_spec.MASKED_LM_POSITIONS][:predictions].tolist()
    old = dict(zip(positions, record[record_spec.MASKED_LM_IDS].tolist()))
    label = record.get(record_spec.SENTENCE_ORDER_LABEL, record.get(record_spec.OLD_SENTENCE_LABEL))

    shown: list[list[str]] = [[], []]
    for place, piece_id in enumerate(ids[:length].tolist()):
        piece = tokenizer.id_to_piece(piece_id)
        if place in old:
            piece = f"{{{tokenizer.id_to_piece(old[place])}>{piece}}}"
        shown[int(segments[place])].append(piece)
    title = f"label {int(label[0])}" if label is not None else "no label"
    lines = [f"{title}, {length} of {len(ids)} pieces, {predictions} predicted", f"  A: {' '.join(shown[0])}"]
    if shown[1]:
        lines.append(f"  B: {' '.join(shown[1])}")
    return "\n".join(lines)
