"""A tiny encoder with its vocabulary in a directory, and texts from which it learns in seconds."""

from __future__ import annotations

import os
import random

import albert_tf
from albert_tf.config import AlbertConfig
from tests import toy_vocabulary

SIZES = {
    "vocab_size": 300,
    "embedding_size": 16,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 32,
    "initializer_range": 0.1,
}
RATE = 3e-3


def write_encoder(directory: str | os.PathLike[str], **changes: object) -> str:
    """Random weights, written as a portable directory; returns it."""
    model = albert_tf.AlbertModel(AlbertConfig.from_dict({**SIZES, **changes}))
    model.save_pretrained(directory, albert_tf.load_tokenizer(toy_vocabulary.alphabet_model()))
    return os.fspath(directory)


def texts_with_labels(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Words of one letter; "plus" where one of them is x, "minus" where it is y."""
    rng = random.Random(seed)
    labels = [rng.choice(["minus", "plus"]) for _ in range(count)]
    texts = []
    for label in labels:
        words = rng.choices("abcdefg", k=rng.randrange(1, 12))
        words.insert(rng.randrange(len(words) + 1), "x" if label == "plus" else "y")
        texts.append(" ".join(words))
    return texts, labels
