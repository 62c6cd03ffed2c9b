"""From the scores of windows to the best answers to a question, as parts of its context; as released in squad_utils.py.

L pieces of a window that belong to the context, S all of its positions, k1 starts and k2 ends for each of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class WindowPieces(NamedTuple):
    """The pieces of a context in one window.

    Attributes:
        first: the position of the first one in the sequence.
        starts, ends: int [L], the characters of the context that each is from.
        is_max_context: bool [L], whether no other window gives the piece more context.
    """

    first: int
    starts: np.ndarray
    ends: np.ndarray
    is_max_context: np.ndarray


class Candidates(NamedTuple):
    """Possible answers, one for each element: scores of start and end (float64), first character, character behind."""

    start_scores: np.ndarray
    end_scores: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def span_candidates(
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    window: WindowPieces,
    *,
    tried: int,
    max_answer_length: int,
) -> Candidates:
    """Of the span head: each of the best starts with each of the best ends, where the two make an answer.

    Args:
        start_logits, end_logits: [S].
        window: see there.
        tried: how many starts and ends, the best of all positions; those outside the context are no answers.
        max_answer_length: the most pieces of an answer.
    """
    starts = np.argsort(-start_logits, kind="stable")[:tried]
    ends = np.argsort(-end_logits, kind="stable")[:tried]
    pairs = np.repeat(starts, len(ends)), np.tile(ends, len(starts))
    return _candidates(*pairs, start_logits[pairs[0]], end_logits[pairs[1]], window, max_answer_length)


class Beam(NamedTuple):
    """What the search of the answerable span head found in a window.

    Attributes:
        starts, start_log_probs: [k1].
        ends, end_log_probs: [k1*k2], the ends of the first start before those of the second.
    """

    starts: np.ndarray
    start_log_probs: np.ndarray
    ends: np.ndarray
    end_log_probs: np.ndarray


def beam_candidates(beam: Beam, window: WindowPieces, *, max_answer_length: int) -> Candidates:
    """Of the answerable span head: each start with its own ends, where the two make an answer."""
    ends_each = len(beam.ends) // len(beam.starts)
    starts, scores = np.repeat(beam.starts, ends_each), np.repeat(beam.start_log_probs, ends_each)
    return _candidates(starts, beam.ends, scores, beam.end_log_probs, window, max_answer_length)


def _candidates(
    starts: np.ndarray,
    ends: np.ndarray,
    start_scores: np.ndarray,
    end_scores: np.ndarray,
    window: WindowPieces,
    max_answer_length: int,
) -> Candidates:
    first, last = starts - window.first, ends - window.first
    possible = (first >= 0) & (last >= first) & (last < len(window.starts)) & (last - first < max_answer_length)
    first, last = first[possible], last[possible]
    best = window.is_max_context[first]
    return Candidates(
        start_scores[possible][best].astype(np.float64),
        end_scores[possible][best].astype(np.float64),
        window.starts[first[best]],
        window.ends[last[best]],
    )


def best_answers(context: str, candidates: Sequence[Candidates], n_best_size: int) -> tuple[dict[str, Any], ...]:
    """The best answers of all windows, best first, each text once.

    Returns:
        At most `n_best_size` dicts: `text`, which is `context[start:end]` without spaces at its ends; `probability`
        among these; `start_log_prob` and `end_log_prob` (so called as released; of the span head they are logits);
        `start` and `end`. None where no candidate has a text that can be seen: byte order marks and characters of no
        width are no answer.
    """
    if not candidates:
        return ()
    start_scores, end_scores, starts, ends = (np.concatenate(values) for values in zip(*candidates))
    answers: dict[str, dict[str, Any]] = {}
    for at in np.argsort(-(start_scores + end_scores), kind="stable"):
        raw = context[starts[at] : ends[at]]
        text = raw.strip()
        if _is_visible(text) and text not in answers:
            start = int(starts[at]) + raw.index(text)
            scores = {"start_log_prob": float(start_scores[at]), "end_log_prob": float(end_scores[at])}
            answers[text] = {"text": text, "probability": 0.0, **scores, "start": start, "end": start + len(text)}
            if len(answers) == n_best_size:
                break
    best = tuple(answers.values())
    if best:
        totals = np.array([answer["start_log_prob"] + answer["end_log_prob"] for answer in best])
        powers = np.exp(totals - totals[0])
        for answer, probability in zip(best, powers / powers.sum()):
            answer["probability"] = float(probability)
    return best


def _is_visible(text: str) -> bool:
    return any(not character.isspace() and unicodedata.category(character) not in ("Cc", "Cf") for character in text)
