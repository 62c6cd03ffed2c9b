"""From the scores of windows to the best answer of each question inside a graph, as `albert_tf.answers` in Python.

B questions, W windows, S their padded length, M candidates, C characters of all contexts together.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple

import tensorflow as tf

from albert_tf.aligned_texts import EncodedTexts, spaces
from albert_tf.exporting.answer_windows import AnswerWindows
from albert_tf.tokenization_graph import CHARACTERS, CodePointTable


class Candidates(NamedTuple):
    """Possible answers: the question's number, the score (float64), and the characters `starts` to `ends` - 1; [M]."""

    questions: tf.Tensor
    scores: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class Contexts(NamedTuple):
    """Strings [B], and ragged [B, None] their characters as code points and the byte that each begins with."""

    strings: tf.Tensor
    code_points: tf.RaggedTensor
    bytes: tf.RaggedTensor


class BestAnswers(NamedTuple):
    """Of each question [B] the best answer, where there `is_found` one; else "", -1, -1 and 0."""

    is_found: tf.Tensor
    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    probabilities: tf.Tensor


def span_candidates(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    windows: AnswerWindows,
    pieces: EncodedTexts,
    *,
    tried: int,
    max_answer_length: int,
) -> Candidates:
    """Of logits [W,S] each of the `tried` best starts with each of the best ends; see `answers.span_candidates`."""
    is_piece = windows.inputs["input_mask"] > 0
    tried = tf.minimum(tried, tf.shape(start_logits)[1])
    (start_scores, starts), (end_scores, ends) = (
        tf.math.top_k(tf.where(is_piece, logits, logits.dtype.min), tried) for logits in (start_logits, end_logits)
    )
    shape = [-1, tried * tried]
    pairs = tf.reshape(tf.repeat(starts, tried, axis=1), shape), tf.reshape(tf.tile(ends, [1, tried]), shape)
    scores = tf.repeat(_double(start_scores), tried, axis=1) + tf.tile(_double(end_scores), [1, tried])
    return _candidates(*pairs, tf.reshape(scores, shape), windows, pieces, max_answer_length)


def beam_candidates(
    outputs: dict[str, tf.Tensor], windows: AnswerWindows, pieces: EncodedTexts, *, max_answer_length: int
) -> Candidates:
    """Of what the search of the answerable span head found; see `answers.beam_candidates`."""
    ends = outputs["end_top_index"]  # [W,k1*k2]
    ends_each = tf.shape(ends)[1] // tf.shape(outputs["start_top_index"])[1]
    starts = tf.repeat(outputs["start_top_index"], ends_each, axis=1)
    scores = tf.repeat(_double(outputs["start_top_log_probs"]), ends_each, axis=1)
    scores += _double(outputs["end_top_log_probs"])
    return _candidates(starts, ends, scores, windows, pieces, max_answer_length)


def all_candidates(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    windows: AnswerWindows,
    pieces: EncodedTexts,
    is_wanted: tf.Tensor,
    *,
    max_answer_length: int,
) -> Candidates:
    """Of logits [W,S] every start with every end, for the questions where `is_wanted` [B]."""
    owners = windows.is_max_context.value_rowids()
    first = tf.ragged.range(windows.is_max_context.row_lengths()).values
    chosen = windows.is_max_context.values & tf.gather(is_wanted, tf.gather(windows.questions, owners))
    owners, first = tf.boolean_mask(owners, chosen), tf.boolean_mask(first, chosen)
    behind = tf.minimum(first + max_answer_length, tf.gather(windows.sizes, owners))
    last = tf.ragged.range(first, behind)
    owners, first = tf.gather(owners, last.value_rowids()), tf.gather(first, last.value_rowids())
    offsets = tf.gather(windows.offsets, owners)
    scores = _double(tf.gather_nd(start_logits, tf.stack([owners, offsets + first], 1)))
    scores += _double(tf.gather_nd(end_logits, tf.stack([owners, offsets + last.values], 1)))
    return _of_pieces(owners, first, last.values, scores, windows, pieces)


def _candidates(
    starts: tf.Tensor,
    ends: tf.Tensor,
    scores: tf.Tensor,
    windows: AnswerWindows,
    pieces: EncodedTexts,
    max_answer_length: int,
) -> Candidates:
    """Of positions [W,M] those that make an answer."""
    offsets, sizes = windows.offsets[:, tf.newaxis], windows.sizes[:, tf.newaxis]
    first, last = tf.cast(starts, tf.int64) - offsets, tf.cast(ends, tf.int64) - offsets
    possible = (first >= 0) & (last >= first) & (last < sizes) & (last - first < max_answer_length)
    owners = tf.where(possible)[:, 0]
    first, last, scores = (tf.boolean_mask(values, possible) for values in (first, last, scores))
    best = tf.gather(windows.is_max_context.values, tf.gather(windows.is_max_context.row_splits, owners) + first)
    owners, first, last, scores = (tf.boolean_mask(values, best) for values in (owners, first, last, scores))
    return _of_pieces(owners, first, last, scores, windows, pieces)


def _of_pieces(
    owners: tf.Tensor,
    first: tf.Tensor,
    last: tf.Tensor,
    scores: tf.Tensor,
    windows: AnswerWindows,
    pieces: EncodedTexts,
) -> Candidates:
    """From the windows and the first and last piece of the context in them, all [M]."""
    begins = tf.gather(windows.firsts, owners)
    starts = tf.gather(pieces.starts.values, begins + first)
    ends = tf.gather(pieces.ends.values, begins + last)
    return Candidates(tf.gather(windows.questions, owners), scores, *(tf.cast(v, tf.int64) for v in (starts, ends)))


def best_answers(contexts: Contexts, candidates: Candidates, n_best_size: int) -> BestAnswers:
    """The best of each question, and its probability among the `n_best_size` best; see `answers.best_answers`."""
    candidates = _in_order(_visible(contexts, candidates))
    candidates = _each_text_once(contexts, candidates)
    count = tf.size(contexts.strings, tf.int64)
    questions = candidates.questions
    lead = tf.searchsorted(questions, questions)  # the best one of the same question
    is_among_best = tf.range(tf.size(questions)) - lead < n_best_size
    powers = tf.where(is_among_best, tf.exp(candidates.scores - tf.gather(candidates.scores, lead)), 0.0)
    sums = tf.math.unsorted_segment_sum(powers, questions, count)
    best = tf.searchsorted(questions, tf.range(count))
    is_found = sums > 0

    def of_best(values: tf.Tensor, other: int) -> tf.Tensor:
        values = tf.concat([values, tf.constant([other], values.dtype)], 0)
        return tf.where(is_found, tf.gather(values, best), other)

    starts, ends = of_best(candidates.starts, -1), of_best(candidates.ends, -1)
    return BestAnswers(
        is_found,
        _substrings(contexts, starts, ends),
        tf.cast(starts, tf.int32),
        tf.cast(ends, tf.int32),
        tf.cast(tf.math.divide_no_nan(tf.ones_like(sums), sums), tf.float32),
    )


def _visible(contexts: Contexts, candidates: Candidates) -> Candidates:
    """Without spaces at their ends; those without a character that can be seen are left out."""
    values = contexts.code_points.values
    is_space = spaces()(values) > 0
    seen_before = tf.concat([[0], tf.cumsum(tf.cast(~is_space & (_invisible()(values) == 0), tf.int64))], 0)
    others = tf.where(~is_space)[:, 0]
    begins = tf.gather(contexts.code_points.row_splits, candidates.questions)
    after = tf.searchsorted(others, begins + candidates.starts)
    before = tf.searchsorted(others, begins + candidates.ends)
    others = tf.concat([others, [0]], 0)
    starts, ends = tf.gather(others, after), tf.gather(others, tf.maximum(before - 1, 0)) + 1
    ends = tf.minimum(ends, tf.size(values, tf.int64))
    is_visible = (after < before) & (tf.gather(seen_before, ends) > tf.gather(seen_before, starts))
    made = candidates._replace(starts=starts - begins, ends=ends - begins)
    return Candidates(*(tf.boolean_mask(values, is_visible) for values in made))


def _in_order(candidates: Candidates) -> Candidates:
    """By question, and best first."""
    by_score = tf.argsort(-candidates.scores, stable=True)
    by_question = tf.argsort(tf.gather(candidates.questions, by_score), stable=True)
    order = tf.gather(by_score, by_question)
    return Candidates(*(tf.gather(values, order) for values in candidates))


def _each_text_once(contexts: Contexts, candidates: Candidates) -> Candidates:
    """Of equal texts of a question the first one alone."""
    begins = tf.gather(contexts.code_points.row_splits, candidates.questions)
    places = tf.ragged.range(begins + candidates.starts, begins + candidates.ends)
    letters = tf.strings.as_string(tf.gather(contexts.code_points.values, places.values))
    texts = tf.strings.reduce_join(places.with_values(letters), axis=1, separator=",")
    keys = tf.strings.join([tf.strings.as_string(candidates.questions), texts], separator=":")
    unique, numbers = tf.unique(keys)
    first = tf.math.unsorted_segment_min(tf.range(tf.size(keys)), numbers, tf.size(unique))
    return Candidates(*(tf.gather(values, first) for values in candidates))


def _substrings(contexts: Contexts, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """The characters `starts` to `ends` - 1 [B] of each context, byte for byte; "" where they are -1."""
    row_starts, sizes = contexts.bytes.row_starts(), contexts.bytes.row_lengths()
    all_bytes = tf.concat([tf.cast(contexts.bytes.values, tf.int32), [0]], 0)
    first = tf.gather(all_bytes, row_starts + tf.maximum(starts, 0))
    behind = tf.where(
        ends == sizes, tf.strings.length(contexts.strings), tf.gather(all_bytes, row_starts + tf.maximum(ends, 0))
    )
    is_text = starts >= 0
    return tf.strings.substr(contexts.strings, tf.where(is_text, first, 0), tf.where(is_text, behind - first, 0))


def _double(values: tf.Tensor) -> tf.Tensor:
    return tf.cast(values, tf.float64)


@functools.cache
def _invisible() -> CodePointTable:
    """1 for control and format characters."""
    return CodePointTable({c: 1 for c in CHARACTERS if unicodedata.category(c) in ("Cc", "Cf")})
