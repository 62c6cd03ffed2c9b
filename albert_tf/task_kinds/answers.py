"""The part of a context that answers a question, or that there is none: as released in squad_utils.py.

B rows of a batch, S its padded length, N windows, k1 starts and k2 ends for each of them in the search.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import answer_metrics, answer_windows, answers, sequences, task_losses
from albert_tf.answer_metrics import NO_WINDOW
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.head_config import ANSWERABLE, HeadConfig
from albert_tf.probabilities import sigmoid
from albert_tf.task_kinds.arrays import model_inputs
from albert_tf.tasks.examples import AnswerPrediction, QuestionExample
from albert_tf.tasks.released_settings import DOC_STRIDE, MAX_ANSWER_LENGTH, MAX_QUERY_LENGTH, N_BEST_SIZE
from albert_tf.tokenizer import Tokenizer

_LEAST_LENGTH = 5  # [CLS] q [SEP] c [SEP]
_SPAN_OUTPUTS = ("start_logits", "end_logits")
_BEAM_OUTPUTS = ("start_top_index", "start_top_log_probs", "end_top_index", "end_top_log_probs")
_NOT_A_PIECE = -1e9  # the logit of padding
_NULL_OUTPUT = "cls_logits"  # [B], above 0 where there is no answer
THRESHOLD = "best_f1_threshold"  # among the scores of the answerable head


class AnswerKind:
    """A `TaskKind` for `QuestionExample`s; a row of a batch is a window of a context.

    Args:
        head: "span", which always answers, or "answerable_span".
        max_seq_length: the most pieces of `[CLS] question [SEP] window [SEP]`.
        doc_stride: pieces from the beginning of one window to that of the next.
        max_query_length: the first pieces of a question that are kept; where no piece of the context would have room
            beside so many, half of what there is room for.
        n_best_size: how many answers a prediction tells; also how many starts and ends the span head tries.
        max_answer_length: the most pieces of an answer.
        null_threshold: of the answerable head: the answer is none where the null odds are above this. None is 0 until
            `tuned` finds a better one.

    Raises:
        InputError: a number is below 1 or no whole one, or `max_seq_length` leaves no room.
    """

    def __init__(
        self,
        head: HeadConfig,
        *,
        max_seq_length: int,
        doc_stride: int = DOC_STRIDE,
        max_query_length: int = MAX_QUERY_LENGTH,
        n_best_size: int = N_BEST_SIZE,
        max_answer_length: int = MAX_ANSWER_LENGTH,
        null_threshold: float | None = None,
    ):
        self.head = head
        sequences.check_length(max_seq_length, _LEAST_LENGTH)
        _check_positive(
            doc_stride=doc_stride,
            max_query_length=max_query_length,
            n_best_size=n_best_size,
            max_answer_length=max_answer_length,
        )
        room = max_seq_length - sequences.SPECIALS_OF_PAIR
        if max_query_length >= room:
            max_query_length = room // 2
        self.windows = answer_windows.WindowSettings(max_seq_length, doc_stride, max_query_length)
        self.n_best_size = n_best_size
        self.max_answer_length = max_answer_length
        self.null_threshold = 0.0 if null_threshold is None else float(null_threshold)
        self.feature_settings: Mapping[str, Any] = self.windows._asdict()
        self.settings: Mapping[str, Any] = {
            **self.feature_settings,
            "n_best_size": n_best_size,
            "max_answer_length": max_answer_length,
            "null_threshold": null_threshold,
        }

    @property
    def _is_answerable(self) -> bool:
        return self.head.kind == ANSWERABLE

    def tuned(self, scores: Mapping[str, float]) -> AnswerKind:
        """This kind with the threshold that was best for F1 on examples with these scores, where none was given."""
        if THRESHOLD not in scores or self.settings["null_threshold"] is not None:
            return self
        return AnswerKind(self.head, **{**self.settings, "null_threshold": scores[THRESHOLD]})

    def features(self, examples: Sequence[QuestionExample], tokenizer: Tokenizer, *, training: bool) -> FeatureSet:
        """See `TaskKind`; the span head leaves questions without an answer out of training."""
        warnings = sequences.warn_of_short_pairs(self.windows.max_seq_length)
        features = answer_windows.answer_features(
            examples, tokenizer, self.windows, training=training, with_impossible=self._is_answerable
        )
        return dataclasses.replace(features, warnings=warnings + features.warnings)

    def to_learn_from(self, features: FeatureSet, examples: Sequence[QuestionExample]) -> FeatureSet:
        """See `TaskKind`; what `features` leaves out of training is left out here too."""
        return answer_windows.with_known_answers(features, examples)

    def inputs(self, batch: Mapping[str, tf.Tensor], training: bool) -> dict[str, tf.Tensor]:
        """See `TaskKind`; the answerable head also reads `p_mask` [B,S] and, in training, `start_positions` [B]."""
        inputs = model_inputs(batch)
        if self._is_answerable:
            inputs["p_mask"] = 1 - batch[answer_windows.ANSWER_MASK]
            if training:
                inputs["start_positions"] = batch[answer_windows.START_POSITIONS]
        return inputs

    def losses(self, outputs: Mapping[str, tf.Tensor], batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """See `TaskKind`; of the outputs of a call in training.

        Padding cannot be chosen, neither here nor in `predictions`, which get each row cut to its own length: a row's
        loss does not depend on the length its batch is padded to. (The released code pads every row to
        `max_seq_length` and lets all of it compete.)
        """
        positions = batch[answer_windows.START_POSITIONS], batch[answer_windows.END_POSITIONS]
        is_piece = batch["input_mask"] > 0
        start_logits, end_logits = (
            tf.where(is_piece, tf.cast(outputs[name], tf.float32), _NOT_A_PIECE) for name in _SPAN_OUTPUTS
        )
        if not self._is_answerable:
            return task_losses.span_losses(start_logits, end_logits, *positions)
        is_impossible = batch[answer_windows.IS_IMPOSSIBLE]
        return task_losses.answerable_span_losses(
            start_logits, end_logits, outputs[_NULL_OUTPUT], *positions, is_impossible
        )

    def kept(self, outputs: Mapping[str, tf.Tensor], batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """`start_logits` and `end_logits` [B,S]; of the answerable head what the search found, and `cls_logits` [B]."""
        del batch
        names = (*_BEAM_OUTPUTS, _NULL_OUTPUT) if self._is_answerable else _SPAN_OUTPUTS
        return {name: outputs[name] for name in names}

    def predictions(
        self, kept: Mapping[str, Sequence[np.ndarray]], features: FeatureSet, examples: Sequence[QuestionExample]
    ) -> list[AnswerPrediction]:
        """See `TaskKind`. A question whose context has no piece, or none that the search found, gets the answer ""."""
        ends = np.searchsorted(features.example_indices, np.arange(len(examples)), side="right")
        starts = features.starts
        predictions, first = [], 0
        for example, end in zip(examples, ends.tolist()):
            windows = [(row, self._window(features, row, int(starts[row]))) for row in range(first, end)]
            null_odds = None
            if self._is_answerable:
                candidates = [self._beam(kept, row, window) for row, window in windows]
                null_odds = min((float(kept[_NULL_OUTPUT][row]) for row, _ in windows), default=NO_WINDOW)
            else:
                candidates = [self._spans(kept, row, window, self.n_best_size) for row, window in windows]
            n_best = answers.best_answers(example.context, candidates, self.n_best_size)
            if not n_best and not self._is_answerable:  # all of the best ones stand in the question or end too early
                candidates = [self._spans(kept, row, window, int(features.sizes[row])) for row, window in windows]
                n_best = answers.best_answers(example.context, candidates, self.n_best_size)
            predictions.append(self._prediction(example, n_best, null_odds))
            first = end
        return predictions

    def _window(self, features: FeatureSet, row: int, start: int) -> answers.WindowPieces:
        first = int(features.first_sizes[row])
        of_context = slice(start + first, start + int(features.sizes[row]) - 1)
        return answers.WindowPieces(
            first,
            features.per_piece[answer_windows.CHARACTER_STARTS][of_context],
            features.per_piece[answer_windows.CHARACTER_ENDS][of_context],
            features.per_piece[answer_windows.IS_MAX_CONTEXT][of_context] > 0,
        )

    def _spans(
        self, kept: Mapping[str, Sequence[np.ndarray]], row: int, window: answers.WindowPieces, tried: int
    ) -> answers.Candidates:
        start_logits, end_logits = (np.asarray(kept[name][row]) for name in _SPAN_OUTPUTS)
        most = self.max_answer_length
        return answers.span_candidates(start_logits, end_logits, window, tried=tried, max_answer_length=most)

    def _beam(
        self, kept: Mapping[str, Sequence[np.ndarray]], row: int, window: answers.WindowPieces
    ) -> answers.Candidates:
        beam = (np.asarray(kept[name][row]) for name in _BEAM_OUTPUTS)
        return answers.beam_candidates(answers.Beam(*beam), window, max_answer_length=self.max_answer_length)

    def _prediction(
        self, example: QuestionExample, n_best: tuple[dict[str, Any], ...], null_odds: float | None
    ) -> AnswerPrediction:
        if n_best and (null_odds is None or null_odds <= self.null_threshold):
            best = n_best[0]
            about = best["text"], best["start"], best["end"], best["probability"]
        else:
            about = "", -1, -1, 0.0 if null_odds is None else float(sigmoid(null_odds))
        return AnswerPrediction(example.id, *about, null_odds, n_best)

    def scores(
        self, examples: Sequence[QuestionExample], predictions: Sequence[AnswerPrediction], metrics: Sequence[str]
    ) -> dict[str, float]:
        """See `TaskKind`; of the answerable head all that `answer_metrics.answerable_scores` tells.

        Questions with one id count as the official scripts count them, which read predictions by id: all have the
        prediction of the last, and SQuAD 2.0's counts the last of them alone.

        Metrics are `exact_match` and `f1`, those behind `characters_` or `cmrc_` (see `answer_metrics`), and of the
        answerable head `best_exact_match` and `best_f1` with the best threshold on these examples.

        Raises:
            InputError: there is no such metric.
        """
        of_id = {example.id: prediction for example, prediction in zip(examples, predictions)}
        counted = [example for example in examples if example.answers is not None]
        if self._is_answerable:
            counted = list({example.id: example for example in counted}.values())
        known = [(example.answers or (), of_id[example.id]) for example in counted]
        gold = [[answer.text for answer in given] for given, _ in known]
        texts = [p.n_best[0]["text"] if p.n_best else "" for _, p in known]
        odds = [NO_WINDOW if p.null_odds is None else p.null_odds for _, p in known]
        scores: dict[str, float] = {}
        for metric in metrics:
            prefix, scorer = answer_metrics.scorer_of(metric, answerable=self._is_answerable)
            if self._is_answerable:
                made = answer_metrics.answerable_scores(texts, gold, odds, self.null_threshold, scorer)
            else:
                mean = answer_metrics.mean([scorer(text, given) for text, given in zip(texts, gold)])
                made = {"exact_match": mean.exact, "f1": mean.f1}
            scores.update({prefix + name: value for name, value in made.items()})
            if metric not in scores:
                names = ", ".join(prefix + name for name in made)
                raise InputError(f"there is no metric {metric!r} for questions: there are {names}")
        return {name: scores[name] for name in dict.fromkeys([*metrics, *scores])}


def _check_positive(**values: int) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} is {value!r}, but must be a whole number of at least 1")
