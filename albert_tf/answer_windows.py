"""Questions with their contexts to sequences: long contexts as windows that overlap, as released in squad_utils.py.

N windows of all questions, T pieces of all windows together, C pieces of a context.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_tf import answer_warnings, sequences
from albert_tf.character_offsets import EncodedText
from albert_tf.feature_set import FeatureSet
from albert_tf.tasks.examples import QuestionExample
from albert_tf.tasks.squad_files import locate
from albert_tf.tokenizer import Tokenizer

# Of each window, int32 [N]: where the answer is, 0 and 0 where the window does not hold it; and 1 where it does not, -1
# where the question cannot be learned from.
START_POSITIONS, END_POSITIONS, IS_IMPOSSIBLE = "start_positions", "end_positions", "is_impossible"
ANSWER_MASK = "answer_mask"  # int32 [T]: 1 at [CLS] and at the pieces of the context, where answers start and end
# int32 [T], of context pieces: the characters they came from, and 1 in the window where a piece has most context.
CHARACTER_STARTS, CHARACTER_ENDS, IS_MAX_CONTEXT = "character_starts", "character_ends", "is_max_context"

NOT_KNOWN = -1  # in IS_IMPOSSIBLE
LENGTH_BONUS = 0.01  # of a window's length, by which equally good windows are told apart; as released


class WindowSettings(NamedTuple):
    """How contexts are cut.

    Attributes:
        max_seq_length: the most pieces of `[CLS] question [SEP] window [SEP]`.
        doc_stride: pieces from the beginning of one window to that of the next.
        max_query_length: the first pieces of a question that are kept.
    """

    max_seq_length: int
    doc_stride: int
    max_query_length: int


class Window(NamedTuple):
    """A window of a context: its first piece and how many it has."""

    first: int
    size: int


def windows(pieces: int, room: int, doc_stride: int) -> list[Window]:
    """The windows of a context of that many pieces, each of at most `room`; none of a context without pieces."""
    made: list[Window] = []
    first = 0
    while first < pieces:
        made.append(Window(first, min(room, pieces - first)))
        if first + room >= pieces:
            break
        first += min(room, doc_stride)
    return made


def best_windows(pieces: int, made: Sequence[Window]) -> np.ndarray:
    """int64 [C]: for each piece the window that gives it most context on its scarcer side, as BERT has it."""
    best_score, best = np.full(pieces, -1.0), np.zeros(pieces, np.int64)
    for number, (first, size) in enumerate(made):
        places = np.arange(size)
        score = np.minimum(places, size - 1 - places) + LENGTH_BONUS * size
        here = slice(first, first + size)
        best[here] = np.where(score > best_score[here], number, best[here])
        best_score[here] = np.maximum(score, best_score[here])
    return best


def answer_pieces(example: QuestionExample, context: EncodedText) -> tuple[int, int] | None:
    """The first and the last piece of the first answer that stands in the context; None where none does."""
    for answer in example.answers or ():
        span = locate(example.context, answer)
        if span is None:
            continue
        text = example.context[slice(*span)]
        start = span[0] + len(text) - len(text.lstrip())
        first = int(np.searchsorted(context.ends, start, side="right"))
        last = int(np.searchsorted(context.starts, start + len(text.strip()), side="left")) - 1
        if first <= last:
            return first, last
    return None


def answer_features(
    examples: Sequence[QuestionExample],
    tokenizer: Tokenizer,
    settings: WindowSettings,
    *,
    training: bool,
    with_impossible: bool = True,
) -> FeatureSet:
    """The windows of all questions, one question behind the other.

    A context that several questions have is encoded once. A window without the answer has the label 0 and 0, [CLS].

    Args:
        examples: the questions.
        tokenizer: makes the pieces.
        settings: see there.
        training: leave out, with a warning that counts them, questions that cannot be learned from: their answers stand
            nowhere in their context; leave out what only `answers` needs.
        with_impossible: questions without an answer can be learned from.

    Raises:
        InputError: the file of a question to be learned from tells nothing of its answers.
    """
    encoded: dict[str, EncodedText] = {}
    for example in examples:
        if example.context not in encoded:
            encoded[example.context] = tokenizer.encode_with_offsets(example.context)
    spans = [answer_pieces(example, encoded[example.context]) for example in examples]
    chosen = np.arange(len(examples))
    can_be_learned = _can_be_learned(examples, spans, with_impossible)
    warnings: tuple[str, ...] = ()
    if training:
        warnings = answer_warnings.warn_of_left_out(examples, can_be_learned)
        chosen = chosen[can_be_learned]
    questions = sequences.encode([examples[at].question for at in chosen], tokenizer)
    cut = int(np.count_nonzero(questions.sizes > settings.max_query_length))
    warnings += answer_warnings.warn_of_long_questions(cut, len(chosen), settings.max_query_length)
    questions = questions.first(np.full(len(chosen), settings.max_query_length))
    rooms = settings.max_seq_length - sequences.SPECIALS_OF_PAIR - questions.sizes
    pieces = np.array([len(encoded[examples[at].context].ids) for at in chosen], np.int64)
    warnings += answer_warnings.warn_of_long_stride(rooms[pieces > rooms], settings.doc_stride)
    features = _assemble(
        [encoded[examples[at].context] for at in chosen],
        questions,
        [spans[at] for at in chosen],
        can_be_learned[chosen],
        chosen,
        tokenizer,
        settings,
        training,
    )
    return dataclasses.replace(features, cut=cut, warnings=warnings)


def with_known_answers(features: FeatureSet, examples: Sequence[QuestionExample]) -> FeatureSet:
    """Of features made without `training`, the windows of questions that can be learned from.

    Raises:
        InputError: the file of a question tells nothing of its answers.
    """
    can_be_learned = np.ones(len(examples), bool)
    is_known = features.per_sequence[IS_IMPOSSIBLE] != NOT_KNOWN
    can_be_learned[features.example_indices[~is_known]] = False
    answer_warnings.warn_of_left_out(examples, can_be_learned)
    return features.of_rows(np.flatnonzero(is_known))


def _assemble(
    contexts: Sequence[EncodedText],
    questions: sequences.Pieces,
    spans: Sequence[tuple[int, int] | None],
    can_be_learned: np.ndarray,
    examples: np.ndarray,
    tokenizer: Tokenizer,
    settings: WindowSettings,
    training: bool,
) -> FeatureSet:
    """The features of questions: context, question, pieces of the answer, what is known of it, index of the example."""
    rooms = settings.max_seq_length - sequences.SPECIALS_OF_PAIR - questions.sizes
    owners: list[int] = []
    made: list[Window] = []
    is_best: list[np.ndarray] = []
    for number, (context, room) in enumerate(zip(contexts, rooms.tolist())):
        here = windows(len(context.ids), room, settings.doc_stride)
        best = best_windows(len(context.ids), here)
        is_best += [best[window.first : window.first + window.size] == at for at, window in enumerate(here)]
        owners += [number] * len(here)
        made += here
    owner = np.array(owners, np.int64)
    first, size = np.array(made, np.int64).reshape(-1, 2).T

    tables, starts = _flat(contexts)
    second = sequences.Pieces(tables.ids, starts[owner] + first, size)
    joined = sequences.assemble(questions.take(owner), second, np.ones(len(owner), bool), tokenizer)
    begins = np.cumsum(joined.sizes, dtype=np.int64) - joined.sizes
    sources = second.places()
    places = sequences.Pieces(joined.input_ids, begins + joined.first_sizes, size).places()  # of them in the sequences

    def spread(values: np.ndarray) -> np.ndarray:
        out = np.zeros(len(joined.input_ids), np.int32)
        out[places] = values
        return out

    answer_mask = spread(np.ones(len(places), np.int32))
    answer_mask[begins] = 1
    per_piece = {ANSWER_MASK: answer_mask}
    if not training:
        per_piece[CHARACTER_STARTS] = spread(tables.starts[sources])
        per_piece[CHARACTER_ENDS] = spread(tables.ends[sources])
        per_piece[IS_MAX_CONTEXT] = spread(np.concatenate(is_best) if is_best else np.zeros(0))
    answers = np.array([(-1, -1) if span is None else span for span in spans], np.int64).reshape(-1, 2)[owner]
    holds = (answers[:, 0] >= first) & (answers[:, 1] < first + size)
    positions = np.where(holds[:, None], answers - first[:, None] + joined.first_sizes[:, None], 0).astype(np.int32)
    per_sequence = {
        START_POSITIONS: positions[:, 0],
        END_POSITIONS: positions[:, 1],
        IS_IMPOSSIBLE: np.where(can_be_learned[owner], ~holds, NOT_KNOWN).astype(np.int32),
    }
    return FeatureSet(*joined, examples[owner].astype(np.int32), per_sequence, per_piece)


def _flat(contexts: Sequence[EncodedText]) -> tuple[EncodedText, np.ndarray]:
    """Contexts one behind the other, those that come again once; and int64 where each begins."""
    begins: dict[int, int] = {}
    unique: list[EncodedText] = []
    at = 0
    for context in contexts:
        if id(context) not in begins:
            begins[id(context)] = at
            unique.append(context)
            at += len(context.ids)
    tables = [np.concatenate([np.zeros(0, np.int32), *parts]) for parts in zip(*unique)] or [np.zeros(0, np.int32)] * 3
    return EncodedText(*tables), np.array([begins[id(context)] for context in contexts], np.int64)


def _can_be_learned(
    examples: Sequence[QuestionExample], spans: Sequence[tuple[int, int] | None], with_impossible: bool
) -> np.ndarray:
    """bool, one for each example."""
    return np.array(
        [span is not None or (with_impossible and e.is_impossible) for e, span in zip(examples, spans)], bool
    )
