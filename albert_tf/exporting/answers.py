"""A question and a context to the part of the context that answers it, or to none.

B questions, W windows of their contexts, S the padded length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from albert_tf.answer_metrics import NO_WINDOW
from albert_tf.exporting import blocks, forward
from albert_tf.exporting.parts import HeadSignatures, Outputs, Parts, TextInput
from albert_tf.head_config import ANSWERABLE

if TYPE_CHECKING:  # these need TensorFlow Text
    from albert_tf.aligned_texts import EncodedTexts
    from albert_tf.exporting.answer_search import BestAnswers, Contexts
    from albert_tf.exporting.answer_windows import AnswerWindows

_INPUTS = (
    TextInput("question", sample="Where was Albert Einstein born?"),
    TextInput("context", sample="Albert Einstein was born in Ulm in 1879. He died in Princeton."),
)
_LEAST_LENGTH = 8  # at least as many positions as the search of the answerable head follows


def signatures(parts: Parts) -> HeadSignatures:
    """From ids of one window in each row the outputs of the head; the second segment is the context.

    From `question` and `context` [B], contexts of any length: `answer` [B] string, which is exactly the part of the
    context from character `start` to `end` - 1 [B] int32, counted in code points; "", -1 and -1 where there is none.
    `probability` [B] is that of the answer among the best ones, `has_answer` [B] bool, `is_cut` [B] bool where the
    question was too long. Of a head that knows of no answer also `no_answer_probability` [B].
    """

    def of_ids(inputs: dict[str, tf.Tensor]) -> Outputs:
        in_context = inputs["segment_ids"] * inputs["input_mask"]
        is_last = in_context > tf.concat([in_context[:, 1:], tf.zeros_like(in_context[:, :1])], axis=1)
        is_first = tf.range(tf.shape(in_context)[1]) == 0
        outputs: Outputs = forward.head_outputs(
            parts.model, _head_inputs(parts, inputs, ((in_context > 0) & ~is_last) | is_first)
        )
        return outputs

    return HeadSignatures(of_ids, None if parts.given_tokenizer is None else _TextAnswers(parts), _INPUTS)


def _head_inputs(parts: Parts, inputs: dict[str, tf.Tensor], answer_mask: tf.Tensor) -> dict[str, tf.Tensor]:
    if parts.head.kind == ANSWERABLE:
        return {**inputs, "p_mask": tf.cast(~answer_mask, tf.int32)}
    return inputs


class _TextAnswers:
    """The function for texts."""

    def __init__(self, parts: Parts):
        self._parts = parts

    def __call__(self, questions: tf.Tensor, contexts: tf.Tensor) -> Outputs:
        from albert_tf.exporting import answer_search, answer_windows  # need TensorFlow Text

        parts, settings = self._parts, self._parts.kind.windows
        code_points, byte_places = tf.strings.unicode_decode_with_offsets(contexts, "UTF-8", errors="replace")
        decoded = answer_search.Contexts(contexts, code_points, byte_places)
        pieces = parts.encode_with_offsets(code_points)
        question_pieces = parts.tokenize(questions)
        windows = answer_windows.answer_windows(question_pieces, pieces, parts.tokenizer, settings, _LEAST_LENGTH)
        outputs = blocks.head_outputs(parts.model, _head_inputs(parts, windows.inputs, windows.answer_mask))
        is_cut = question_pieces.row_lengths() > settings.max_query_length
        if parts.head.kind == ANSWERABLE:
            return {**self._answerable(outputs, windows, pieces, decoded), "is_cut": is_cut}
        return {**_answered(self._span(outputs, windows, pieces, decoded)), "is_cut": is_cut}

    def _span(self, outputs: Outputs, windows: AnswerWindows, pieces: EncodedTexts, contexts: Contexts) -> BestAnswers:
        from albert_tf.exporting import answer_search

        kind = self._parts.kind
        logits = outputs["start_logits"], outputs["end_logits"]
        first = answer_search.best_answers(
            contexts,
            answer_search.span_candidates(
                *logits, windows, pieces, tried=kind.n_best_size, max_answer_length=kind.max_answer_length
            ),
            kind.n_best_size,
        )

        def all_tried() -> tuple[tf.Tensor, ...]:
            candidates = answer_search.all_candidates(
                *logits, windows, pieces, ~first.is_found, max_answer_length=kind.max_answer_length
            )
            more = answer_search.best_answers(contexts, candidates, kind.n_best_size)
            return tuple(tf.where(first.is_found, *both) for both in zip(first, more))

        # All of the best ones may stand in the question or end too early; then every other one counts.
        return answer_search.BestAnswers(*tf.cond(tf.reduce_all(first.is_found), lambda: tuple(first), all_tried))

    def _answerable(
        self, outputs: Outputs, windows: AnswerWindows, pieces: EncodedTexts, contexts: Contexts
    ) -> Outputs:
        from albert_tf.exporting import answer_search

        kind = self._parts.kind
        candidates = answer_search.beam_candidates(outputs, windows, pieces, max_answer_length=kind.max_answer_length)
        best = answer_search.best_answers(contexts, candidates, kind.n_best_size)
        null_odds = tf.math.unsorted_segment_min(
            outputs["cls_logits"], windows.questions, tf.size(contexts.strings, tf.int64)
        )
        null_odds = tf.where(pieces.ids.row_lengths() > 0, null_odds, NO_WINDOW)
        no_answer = tf.sigmoid(null_odds)
        is_given = best.is_found & (null_odds <= kind.null_threshold)
        return {
            **_answered(
                best._replace(
                    is_found=is_given,
                    texts=tf.where(is_given, best.texts, ""),
                    starts=tf.where(is_given, best.starts, -1),
                    ends=tf.where(is_given, best.ends, -1),
                    probabilities=tf.where(is_given, best.probabilities, no_answer),
                )
            ),
            "no_answer_probability": no_answer,
        }


def _answered(best: BestAnswers) -> Outputs:
    return {
        "answer": best.texts,
        "start": best.starts,
        "end": best.ends,
        "probability": best.probabilities,
        "has_answer": best.is_found,
    }
