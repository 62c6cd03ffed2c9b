"""Questions with long contexts cut to windows inside a graph, as `albert_tf.answer_windows` cuts them in Python.

B questions, W windows of all of them, S the padded length, C pieces of all contexts together.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf import sequences, sequences_graph
from albert_tf.aligned_texts import EncodedTexts
from albert_tf.answer_windows import LENGTH_BONUS, WindowSettings
from albert_tf.tokenizer import Tokenizer


class AnswerWindows(NamedTuple):
    """The windows, those of one question behind those of the question before.

    Attributes:
        inputs: of a model, [W,S].
        answer_mask: bool [W,S], at [CLS] and at the pieces of the context.
        questions: int64 [W], whose window it is.
        offsets: int64 [W], the position of the first piece of the context.
        firsts: int64 [W], the place of that piece among all C.
        sizes: int64 [W], how many pieces of the context there are.
        is_max_context: ragged [W, None] bool, of each of them, whether no other window gives it more context.
    """

    inputs: dict[str, tf.Tensor]
    answer_mask: tf.Tensor
    questions: tf.Tensor
    offsets: tf.Tensor
    firsts: tf.Tensor
    sizes: tf.Tensor
    is_max_context: tf.RaggedTensor


def answer_windows(
    questions: tf.RaggedTensor,
    contexts: EncodedTexts,
    tokenizer: Tokenizer,
    settings: WindowSettings,
    least_length: int,
) -> AnswerWindows:
    """The windows of contexts; one without pieces has none.

    Args:
        questions: pieces [B, None] int32.
        contexts: of as many.
        tokenizer: whose special pieces to put around them.
        settings: see there.
        least_length: what S is at least.
    """
    questions = sequences_graph.first_pieces(
        questions, tf.fill([questions.nrows()], tf.constant(settings.max_query_length, tf.int64))
    )
    pieces = contexts.ids.row_lengths()
    room = settings.max_seq_length - sequences.SPECIALS_OF_PAIR - questions.row_lengths()
    stride = tf.minimum(room, settings.doc_stride)
    counts = tf.where(pieces > 0, 1 + (tf.maximum(pieces - room, 0) + stride - 1) // stride, 0)
    owners = tf.repeat(tf.range(questions.nrows()), counts)
    begins = tf.ragged.range(counts).values * tf.gather(stride, owners)  # among the pieces of the context
    sizes = tf.minimum(tf.gather(room, owners), tf.gather(pieces, owners) - begins)
    firsts = tf.gather(contexts.ids.row_splits, owners) + begins
    places = tf.ragged.range(firsts, firsts + sizes)  # [W, None], of the window's pieces among all C
    question = tf.gather(questions, owners)
    offsets = question.row_lengths() + sequences.SPECIALS_OF_ONE
    inside = places.with_values(tf.gather(contexts.ids.values, places.values))
    inputs = sequences_graph.assemble(question, inside, tokenizer, least_length)
    positions = tf.range(tf.shape(inputs["input_ids"], tf.int64)[1])
    is_context = (positions >= offsets[:, tf.newaxis]) & (positions < (offsets + sizes)[:, tf.newaxis])
    return AnswerWindows(
        inputs,
        is_context | (positions == 0),
        owners,
        offsets,
        firsts,
        sizes,
        _max_context(places, tf.size(contexts.ids.values, tf.int64)),
    )


def _max_context(places: tf.RaggedTensor, total: tf.Tensor) -> tf.RaggedTensor:
    """Of each window's pieces, whether it is `answer_windows.best_windows` of the piece, bool [W, None]."""
    sizes = tf.gather(places.row_lengths(), places.value_rowids())
    inside = tf.ragged.range(places.row_lengths()).values
    scores = tf.cast(tf.minimum(inside, sizes - 1 - inside), tf.float64) + LENGTH_BONUS * tf.cast(sizes, tf.float64)
    best = tf.math.unsorted_segment_max(scores, places.values, total)
    windows = tf.where(scores == tf.gather(best, places.values), places.value_rowids(), places.nrows())
    first_best = tf.math.unsorted_segment_min(windows, places.values, total)
    return places.with_values(places.value_rowids() == tf.gather(first_best, places.values))
