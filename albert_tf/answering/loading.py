"""A directory to the answerer of the model in it."""

from __future__ import annotations

from typing import Any

from albert_tf import gap_filling, task_model, text_vectors
from albert_tf.answering import runtime_files
from albert_tf.answering.answerer import Answerer
from albert_tf.answering.pretrained_answerers import GapAnswerer, VectorAnswerer
from albert_tf.answering.task_answerers import CLASSES
from albert_tf.distribution import PRECISIONS
from albert_tf.errors import InputError
from albert_tf.formats.reading import read_checkpoint
from albert_tf.head_config import HeadConfig
from albert_tf.predicting import Predictor
from albert_tf.pretrained_model import global_policy


def load_answerer(
    path: str,
    *,
    batch_size: int = 32,
    top_k: int | None = None,
    fills: bool = True,
    precision: str = "float32",
    **settings: Any,
) -> Answerer:
    """The answerer for a model's head.

    Args:
        path: a fine-tuned model, or the output directory of its run; a pre-trained model, which fills gaps; any other
            model with a vocabulary that `formats.reading` knows; or an export for another runtime.
        batch_size: rows at a time.
        top_k: pieces for a gap, of a model that fills gaps; by default as of `GapFiller`.
        fills: see `Predictor`.
        precision: of the large products, one of `distribution.PRECISIONS`; an export decides it, but OpenVINO's can be
            told bfloat16.
        **settings: of the kind of task in place of those in task.json, such as `max_seq_length`, which is for vectors
            too.

    Raises:
        InputError: nothing that can answer is there, or it has no use for what is given.
    """
    exported = runtime_files.find(path)
    head = None if exported else head_of(path)
    fills_gaps = head is not None and head.kind in gap_filling.HEADS
    if top_k is not None and not fills_gaps:
        raise InputError(f"--top_k is for pre-trained models, which fill gaps, and {path} does not: leave it out")
    if exported is not None:
        return runtime_files.load(exported, batch_size=batch_size, precision=precision, **settings)
    if head is not None and head.kind in CLASSES:
        with global_policy(PRECISIONS[precision]):
            model, tokenizer, kind, about = task_model.load(path, **settings)
        return CLASSES[head.kind](tokenizer, kind, about, Predictor(model, kind, batch_size=batch_size, fills=fills))
    of_tasks = [name for name in settings if fills_gaps or name != "max_seq_length"]
    if of_tasks:
        raise InputError(f"{path} has no head for a task, so there is no {of_tasks[0]} to set")
    if fills_gaps:
        pieces = {} if top_k is None else {"top_k": top_k}
        with global_policy(PRECISIONS[precision]):
            model, tokenizer = gap_filling.load(path)
        return GapAnswerer(gap_filling.GapFiller(model, tokenizer, batch_size=batch_size, **pieces))
    return load_vectors(path, batch_size=batch_size, precision=precision, **settings)


def load_vectors(
    path: str,
    *,
    pooling: str = text_vectors.POOLED,
    max_seq_length: int | None = None,
    batch_size: int = 32,
    precision: str = "float32",
) -> VectorAnswerer:
    """An answerer with a vector for each text, by the encoder of any model, or by an encoder's export.

    Args:
        path, batch_size, precision: see `load_answerer`.
        pooling, max_seq_length: see `text_vectors.load`.

    Raises:
        InputError: no encoder with a vocabulary is there, or see `TextVectors`.
    """
    exported = runtime_files.find(path)
    settings: dict[str, Any] = {"pooling": pooling, "max_seq_length": max_seq_length, "batch_size": batch_size}
    if exported is not None:
        vectors = runtime_files.load_vectors(exported, precision=precision, **settings)
    else:
        with global_policy(PRECISIONS[precision]):
            vectors = text_vectors.load(path, **settings)
    name = "pooled_output" if pooling == text_vectors.POOLED else pooling
    return VectorAnswerer(vectors, name)


def head_of(path: str) -> HeadConfig | None:
    """What stands on the encoder; None where nothing does."""
    return read_checkpoint(task_model.find(path) or path).head
