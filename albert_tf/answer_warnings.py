"""What is said where questions and their contexts do not become sequences as they are. All return what they said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from albert_tf import sequences
from albert_tf.errors import InputError
from albert_tf.tasks.examples import QuestionExample


def warn_of_left_out(examples: Sequence[QuestionExample], can_be_learned: np.ndarray) -> tuple[str, ...]:
    """The questions that cannot be learned from.

    Raises:
        InputError: the file of one tells nothing of its answers.
    """
    for example in examples:
        if example.answers is None:
            raise InputError(f"{example.place or example.id}: no answers are given, so nothing can be learned from it")
    is_impossible = np.array([example.is_impossible for example in examples], bool)
    reasons = {
        "no answer of theirs is in its context": ~can_be_learned & ~is_impossible,
        "they have no answer, and this head always gives one": ~can_be_learned & is_impossible,
    }
    return sequences.warn(
        *(
            f"{np.count_nonzero(left_out)} of {len(examples)} questions are left out: {reason}"
            for reason, left_out in reasons.items()
            if left_out.any()
        )
    )


def warn_of_long_questions(cut: int, count: int, most: int) -> tuple[str, ...]:
    """`cut` of `count` questions lost what is behind their first `most` pieces."""
    if not cut:
        return ()
    return sequences.warn(f"{cut} of {count} questions have more than max_query_length {most} pieces and are cut")


def warn_of_long_stride(rooms: np.ndarray, doc_stride: int) -> tuple[str, ...]:
    """`rooms` [N]: how many pieces of the context a window holds, of each question with several windows."""
    lowered = rooms[rooms < doc_stride]
    if not len(lowered):
        return ()
    return sequences.warn(
        f"doc_stride {doc_stride} is more pieces than a window has beside {len(lowered)} of the questions, and is "
        f"lowered to as many there ({lowered.min()} at the least): no piece is left out, and no windows overlap"
    )
