"""Tiny models with every head, random weights, written as directories."""

from __future__ import annotations

import os

import tensorflow as tf

from albert_tf import keras_classes, task_model, tokenization
from albert_tf.config import AlbertConfig
from albert_tf.head_config import HeadConfig
from albert_tf.task_kinds.catalogue import kind_from_settings
from tests import pipeline_models, toy_vocabulary

HEADS = {
    "classifier": HeadConfig("classifier", labels=("minus", "plus")),
    "multi_label": HeadConfig("classifier", labels=("p", "q", "r"), problem_type="multi_label_classification"),
    "regression": HeadConfig("classifier", 1),
    "span": HeadConfig("span"),
    "answerable_span": HeadConfig("answerable_span"),
    "multiple_choice": HeadConfig("multiple_choice"),
    "tagger": HeadConfig("tagger", labels=("O", "B-X", "I-X")),
}
ABOUT = {"classifier": {"pairs": False}, "regression": {"pairs": True}}  # nothing tells of the multi-label one


def write_task_model(directory: str | os.PathLike[str], name: str) -> str:
    """One of `HEADS`, as fine-tuning leaves it; returns the directory."""
    tf.keras.utils.set_random_seed(len(name))
    config = AlbertConfig.from_dict({**pipeline_models.SIZES, "initializer_range": 0.4})
    head = HEADS[name]
    model = task_model.model_class(head)(config, head)
    tokenizer = tokenization.load_tokenizer(toy_vocabulary.alphabet_model())
    kind = kind_from_settings(head, {"max_seq_length": config.max_position_embeddings})
    path = os.path.join(directory, name)
    task_model.save(path, model, tokenizer, kind, ABOUT.get(name, {}))
    return path


def write_pretrained(directory: str | os.PathLike[str]) -> str:
    """A pre-trained model; returns the directory."""
    tf.keras.utils.set_random_seed(1)
    model = keras_classes.AlbertForPreTraining(AlbertConfig.from_dict(pipeline_models.SIZES))
    path = os.path.join(directory, "pretrained")
    model.save_pretrained(path, tokenization.load_tokenizer(toy_vocabulary.alphabet_model()))
    return path
