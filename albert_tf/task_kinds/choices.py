"""One of several choices for a question about a passage, as released in run_race.py.

B rows of a batch, K choices, S the padded length, N sequences: K for each example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from albert_tf import metrics as measures
from albert_tf import sequences, task_losses
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.head_config import HeadConfig
from albert_tf.probabilities import softmax
from albert_tf.task_kinds.arrays import NO_LABEL, model_inputs, place_of
from albert_tf.tasks.examples import LEAST_CHOICES, ChoiceExample, ChoicePrediction
from albert_tf.tokenizer import Tokenizer

BLANK = "_"
IS_RIGHT = "is_right"  # int32 [N] in the features, [B,K] in a batch: 1 for the right choice, else 0

_NOT_A_CHOICE = -1e9  # the logit of a choice that an example does not have
_LEAST_LENGTH = 5
_SHARE_OF_ANSWERS = 4  # 128 of 512 pieces, as released


class ChoiceKind:
    """A `TaskKind` for `ChoiceExample`s; a row of a batch is an example with all its choices.

    A choice is `[CLS] passage [SEP] question and choice [SEP]`: the choice takes the place of every "_" of the
    question, or stands behind it. Question and choice keep their last pieces, the passage its first ones. Examples may
    have different numbers of choices: those that one lacks have no pieces, and no probability.

    Args:
        head: multiple choice.
        max_seq_length: the most pieces of a sequence.
        max_qa_length: the most pieces of question and choice; a quarter of `max_seq_length` where it is not given, and
            with a warning half of what there is room for where it is more than that.

    Raises:
        InputError: `max_seq_length` leaves no room, or `max_qa_length` is below 1.
    """

    def __init__(self, head: HeadConfig, *, max_seq_length: int, max_qa_length: int | None = None):
        self.head = head
        self.max_seq_length = sequences.check_length(max_seq_length, _LEAST_LENGTH)
        most = max_seq_length - sequences.SPECIALS_OF_PAIR
        self.max_qa_length = max(1, max_seq_length // _SHARE_OF_ANSWERS) if max_qa_length is None else max_qa_length
        if self.max_qa_length < 1:
            raise InputError(f"max_qa_length is {max_qa_length}, but must be at least 1")
        if self.max_qa_length > most:
            self.max_qa_length = most // 2
            logging.warning(
                "max_qa_length %d does not fit into max_seq_length %d: question and choice have at most %d pieces",
                max_qa_length,
                max_seq_length,
                self.max_qa_length,
            )
        self.settings: Mapping[str, Any] = {"max_seq_length": max_seq_length, "max_qa_length": self.max_qa_length}
        self.feature_settings = self.settings

    def features(self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer, *, training: bool) -> FeatureSet:
        """See `TaskKind`; K is the most choices of an example."""
        for example in examples:
            _check(example, training)
        warnings = sequences.warn_of_short_pairs(self.max_seq_length)
        counts = np.array([len(example.choices) for example in examples], np.int64)
        owners = np.repeat(np.arange(len(examples)), counts)
        passages = sequences.encode([example.passage for example in examples], tokenizer).take(owners)
        texts = [question_with(example.question, choice) for example in examples for choice in example.choices]
        answers = sequences.encode(texts, tokenizer)
        kept_answers = answers.last(np.full(len(texts), self.max_qa_length))
        room = self.max_seq_length - sequences.SPECIALS_OF_PAIR - kept_answers.sizes
        kept_passages = passages.first(room)
        made = sequences.assemble(kept_passages, kept_answers, np.ones(len(texts), bool), tokenizer)
        is_cut = (kept_answers.sizes < answers.sizes) | (kept_passages.sizes < passages.sizes)

        choices = int(counts.max(initial=LEAST_CHOICES))
        starts = np.cumsum(counts) - counts
        places = owners * choices + np.arange(len(texts)) - np.repeat(starts, counts)  # of each choice among N
        labels = np.array([NO_LABEL if e.label is None else e.label for e in examples], np.int64)

        def spread(values: np.ndarray) -> np.ndarray:
            out = np.zeros(len(examples) * choices, np.int32)
            out[places] = values
            return out

        cut = len(np.unique(owners[is_cut]))
        return FeatureSet(
            made.input_ids,
            spread(made.sizes),
            spread(made.first_sizes),
            np.repeat(np.arange(len(examples), dtype=np.int32), choices),
            {IS_RIGHT: (np.arange(choices) == labels[:, None]).astype(np.int32).ravel()},
            choices=choices,
            cut=cut,
            warnings=warnings + sequences.warn_of_cut(cut, len(examples), self.max_seq_length),
        )

    def to_learn_from(self, features: FeatureSet, examples: Sequence[ChoiceExample]) -> FeatureSet:
        """See `TaskKind`."""
        for example in examples:
            _check(example, training=True)
        return features

    def inputs(self, batch: Mapping[str, tf.Tensor], training: bool) -> dict[str, tf.Tensor]:
        """See `TaskKind`; each [B,K,S]."""
        del training
        return model_inputs(batch)

    def losses(self, outputs: tf.Tensor, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Logits [B,K] to the cross entropy [B] over the choices there are; 0 where no choice is the right one."""
        is_right = batch[IS_RIGHT]
        losses = task_losses.classification_losses(_masked(outputs, batch), tf.argmax(is_right, axis=-1))
        return tf.where(tf.reduce_any(is_right > 0, axis=-1), losses, 0.0)

    def kept(self, outputs: tf.Tensor, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """`logits` [B,K], those of choices that are not there far below all others."""
        return {"logits": _masked(outputs, batch)}

    def predictions(
        self, kept: Mapping[str, Sequence[np.ndarray]], features: FeatureSet, examples: Sequence[ChoiceExample]
    ) -> list[ChoicePrediction]:
        """See `TaskKind`."""
        del features
        predictions = []
        for example, logits in zip(examples, kept["logits"]):
            probabilities = softmax(logits[: len(example.choices)]).astype(np.float32)
            predictions.append(ChoicePrediction(example.id, int(np.argmax(probabilities)), probabilities))
        return predictions

    def scores(
        self, examples: Sequence[ChoiceExample], predictions: Sequence[ChoicePrediction], metrics: Sequence[str]
    ) -> dict[str, float]:
        """See `TaskKind`; with groups also `accuracy/middle` and the like."""
        known = [(e, p) for e, p in zip(examples, predictions) if e.label is not None]
        labels = np.array([example.label for example, _ in known], np.int64)
        chosen = np.array([prediction.label for _, prediction in known], np.int64)
        scores = measures.compute(metrics, labels, chosen)
        groups = np.array([example.group for example, _ in known])
        for group in sorted({example.group for example, _ in known if example.group}):
            some = groups == group
            scores.update({f"{m}/{group}": v for m, v in measures.compute(metrics, labels[some], chosen[some]).items()})
        return scores


def question_with(question: str, choice: str) -> str:
    """The question with a choice in the place of each "_", or behind it."""
    return question.replace(BLANK, choice) if BLANK in question else f"{question} {choice}"


def _check(example: ChoiceExample, training: bool) -> None:
    if len(example.choices) < LEAST_CHOICES:
        raise InputError(
            f"{place_of(example)}: there must be at least {LEAST_CHOICES} choices, but there is {len(example.choices)}"
        )
    if example.label is None:
        if training:
            raise InputError(f"{place_of(example)}: no choice is marked as right, so nothing can be learned from it")
    elif not 0 <= example.label < len(example.choices):
        raise InputError(
            f"{place_of(example)}: choice {example.label} is right, but the choices are 0 to {len(example.choices) - 1}"
        )


def _masked(logits: tf.Tensor, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """[B,K]; finite also in a row that only fills the batch, where no choice is there."""
    is_there = batch["input_mask"][:, :, 0] > 0
    return tf.where(is_there, tf.cast(logits, tf.float32), _NOT_A_CHOICE)
