"""A tag for each word of a sentence; as in BERT's experiments, a word's first piece stands for it.

B rows of a batch, S its padded length, C tags, N sequences, T pieces of all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import entity_metrics, sequences, task_losses
from albert_tf import metrics as measures
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.head_config import HeadConfig
from albert_tf.probabilities import softmax
from albert_tf.task_kinds.arrays import NO_LABEL, label_id_of, label_names, model_inputs, place_of
from albert_tf.tasks.examples import TagExample, TagPrediction
from albert_tf.tokenizer import Tokenizer
from albert_tf.word_pieces import word_sequences

TAG_IDS = "tag_ids"  # int32 [T]: at the first piece of each word its tag, -1 elsewhere and where there is no tag
WORDS = "words"  # int32 [T]: there the word's index in the sentence, -1 elsewhere

_LEAST_LENGTH = 3  # [CLS] a [SEP]


class TagKind:
    """A `TaskKind` for `TagExample`s; a row of a batch is a window of a sentence, mostly all of it.

    Each word is learned and answered in one window alone.

    Args:
        head: a tagger.
        max_seq_length: the most pieces of a sequence.
        doc_stride: pieces from one window of a long sentence to the next; half of `max_seq_length` if not given.

    Raises:
        InputError: a number leaves no room.
    """

    def __init__(self, head: HeadConfig, *, max_seq_length: int, doc_stride: int | None = None):
        self.head = head
        self.max_seq_length = sequences.check_length(max_seq_length, _LEAST_LENGTH)
        self.doc_stride = max_seq_length // 2 if doc_stride is None else doc_stride
        if self.doc_stride < 1:
            raise InputError(f"doc_stride is {doc_stride}, but must be at least 1")
        self.settings: Mapping[str, Any] = {"max_seq_length": max_seq_length, "doc_stride": self.doc_stride}
        self.feature_settings = self.settings
        self._tags = label_names(head)
        self._tag_ids = {tag: number for number, tag in enumerate(self._tags)}

    def features(self, examples: Sequence[TagExample], tokenizer: Tokenizer, *, training: bool) -> FeatureSet:
        """See `TaskKind`."""
        tags = [self._tags_of(example, training) for example in examples]
        made = word_sequences([example.words for example in examples], tokenizer, self.max_seq_length, self.doc_stride)
        flat_tags = np.concatenate(tags) if tags else np.zeros(0, np.int32)
        word_counts = np.array([len(some) for some in tags], np.int64)
        first_words = (np.cumsum(word_counts) - word_counts)[made.sentences]  # [N], of each window's sentence
        tag_ids = np.full(len(made.words), NO_LABEL, np.int32)
        is_word = made.words >= 0
        tag_ids[is_word] = flat_tags[(np.repeat(first_words, made.sizes) + made.words)[is_word]]
        return FeatureSet(
            made.input_ids,
            made.sizes,
            made.sizes,
            made.sentences,
            per_piece={TAG_IDS: tag_ids, WORDS: made.words},
            cut=made.cut,
            warnings=sequences.warn_of_cut(made.cut, len(examples), self.max_seq_length),
        )

    def to_learn_from(self, features: FeatureSet, examples: Sequence[TagExample]) -> FeatureSet:
        """See `TaskKind`."""
        for example in examples:
            self._tags_of(example, training=True)
        return features

    def inputs(self, batch: Mapping[str, tf.Tensor], training: bool) -> dict[str, tf.Tensor]:
        """See `TaskKind`."""
        del training
        return model_inputs(batch)

    def losses(self, outputs: tf.Tensor, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Logits [B,S,C] to [B], the mean cross entropy of the row's words with a tag; 0 where it has none."""
        tag_ids = batch[TAG_IDS]
        weights = tf.cast(batch["input_mask"], tf.float32) * tf.cast(tag_ids >= 0, tf.float32)
        return task_losses.tagging_losses(outputs, tf.maximum(tag_ids, 0), weights)

    def kept(self, outputs: tf.Tensor, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """`logits` [B,S,C]."""
        del batch
        return {"logits": outputs}

    def predictions(
        self, kept: Mapping[str, Sequence[np.ndarray]], features: FeatureSet, examples: Sequence[TagExample]
    ) -> list[TagPrediction]:
        """See `TaskKind`."""
        numbers = [np.zeros(len(example.words), np.int64) for example in examples]
        probabilities = [np.zeros(len(example.words)) for example in examples]
        words = features.per_piece[WORDS]
        for row, (start, size) in enumerate(zip(features.starts, features.sizes)):
            here = words[start : start + size]
            of_pieces = softmax(kept["logits"][row])[here >= 0]
            example = features.example_indices[row]
            numbers[example][here[here >= 0]] = of_pieces.argmax(-1)
            probabilities[example][here[here >= 0]] = of_pieces.max(-1, initial=0)
        return [
            TagPrediction(example.id, tuple(self._tags[i] for i in some), tuple(map(float, chances)))
            for example, some, chances in zip(examples, numbers, probabilities)
        ]

    def scores(
        self, examples: Sequence[TagExample], predictions: Sequence[TagPrediction], metrics: Sequence[str]
    ) -> dict[str, float]:
        """See `TaskKind`; with entity metrics also the F1 of each type, `entity_f1/PER` and so on.

        Entity metrics are of sentences, all others of the words of all sentences.
        """
        known = [(e.tags, p.tags) for e, p in zip(examples, predictions) if e.tags is not None]
        labels, predicted = [list(tags) for tags, _ in known], [list(tags) for _, tags in known]
        flat_labels, flat_predicted = list(chain.from_iterable(labels)), list(chain.from_iterable(predicted))
        scores = {}
        for name in metrics:
            if name in entity_metrics.ENTITY_METRICS:
                scores.update(measures.compute([name], labels, predicted))
            else:
                scores.update(measures.compute([name], flat_labels, flat_predicted))
        if "entity_f1" in metrics:
            by_type = entity_metrics.counts(labels, predicted)
            scores.update({f"entity_f1/{type_}": count.f1 for type_, count in by_type.items()})
        return scores

    def _tags_of(self, example: TagExample, training: bool) -> np.ndarray:
        """int32, one for each word."""
        if example.tags is None:
            if training:
                raise InputError(f"{place_of(example)}: the words have no tags, so nothing can be learned from them")
            return np.full(len(example.words), NO_LABEL, np.int32)
        if len(example.tags) != len(example.words):
            raise InputError(f"{place_of(example)}: {len(example.words)} words, but {len(example.tags)} tags")
        places = example.word_places or (place_of(example),) * len(example.tags)
        return np.array([label_id_of(tag, self._tag_ids, where) for tag, where in zip(example.tags, places)], np.int32)
