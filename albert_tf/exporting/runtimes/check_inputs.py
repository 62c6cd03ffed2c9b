"""Texts to batches for any head, and a function's outputs on them.

N texts, B rows of a batch, S its padded length, K choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf import gap_filling, sequences
from albert_tf.batches import Batches, bucket_lengths
from albert_tf.exporting.parts import Parts
from albert_tf.feature_set import FeatureSet
from albert_tf.pretrained_model import ENCODER_INPUTS
from albert_tf.tasks.examples import ChoiceExample, Example, QuestionExample, TagExample, TextExample

Arrays = Mapping[str, np.ndarray]
Function = Callable[[Arrays], Arrays]
BATCH_SIZE = 16
_GAP_EVERY = 7  # about the share of pieces that pre-training hides
_CHOICES = 4
_LONGEST = 64  # random pieces of a sequence


def features_of_texts(parts: Parts, texts: Sequence[str]) -> FeatureSet:
    """Sequences as the head reads them.

    Texts for a classifier, tagger, encoder or for gaps, of which every seventh piece is one; where the head reads
    several, the following texts are the second one, the context, the choices.
    """
    tokenizer = parts.tokenizer
    if parts.kind is None:
        made, _ = sequences.pair_sequences(texts, [None] * len(texts), tokenizer, parts.max_seq_length)
        ids = made.input_ids.copy()
        if parts.head.kind in gap_filling.HEADS:
            is_gap = np.arange(len(ids)) % _GAP_EVERY == 0
            ids[is_gap & ~np.isin(ids, tokenizer.special_ids)] = tokenizer.mask_id
        return FeatureSet(ids, made.sizes, made.first_sizes, np.arange(len(texts), dtype=np.int32))
    features: FeatureSet = parts.kind.features(_examples(parts, texts), tokenizer, training=False)
    return features


def random_features(parts: Parts, count: int) -> FeatureSet:
    """Sequences of random pieces, from one to as many as a sequence may have, but at most `_LONGEST`."""
    random, config = np.random.default_rng(0), parts.model.config
    sizes = np.linspace(min(_LONGEST, parts.max_seq_length), 1, count).astype(np.int32)
    ids = random.integers(config.vocab_size, size=int(sizes.sum())).astype(np.int32)
    first_sizes = (sizes + 1) // 2 if config.type_vocab_size > 1 else sizes
    return FeatureSet(ids, sizes, first_sizes, np.arange(count, dtype=np.int32))


def batches(features: FeatureSet, max_seq_length: int, batch_size: int | None = BATCH_SIZE) -> Iterator[Arrays]:
    """Every row once, so many at a time or with None all; see `Batches`."""
    most = max(1, min(batch_size or len(features), len(features)))
    return Batches(features, most, bucket_lengths(max_seq_length)).evaluation()


def outputs_of(function: Function, batch: Arrays) -> dict[str, np.ndarray]:
    """What the function answers to the ids of a batch; choices, [B,K,S], become [B*K,S]."""
    inputs = {name: batch[name].reshape(-1, batch[name].shape[-1]) for name in ENCODER_INPUTS}
    return {name: np.asarray(value) for name, value in function(inputs).items()}


def _examples(parts: Parts, texts: Sequence[str]) -> list[Example]:
    makers: dict[str, Callable[[str, Sequence[str]], Any]] = {
        "classifier": lambda id_, some: TextExample(id_, some[0], some[1] if parts.pairs else None),
        "multiple_choice": lambda id_, some: ChoiceExample(id_, some[0], some[1], tuple(some[2:])),
        "span": lambda id_, some: QuestionExample(id_, some[0], " ".join(some[1:])),
        "answerable_span": lambda id_, some: QuestionExample(id_, some[0], " ".join(some[1:])),
        "tagger": lambda id_, some: TagExample(id_, tuple(some[0].split())),
    }
    following = [text for _ in range(_CHOICES + 3) for text in texts]
    make = makers[parts.head.kind]
    return [make(str(number), following[number : number + _CHOICES + 2]) for number in range(len(texts))]
