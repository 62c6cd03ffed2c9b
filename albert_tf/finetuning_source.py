"""What a fine-tuning begins with: a checkpoint, another task's model, or random weights; and the model made of it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import Any

import numpy as np

from albert_tf import task_model, tokenization
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Checkpoint
from albert_tf.formats.reading import read_checkpoint
from albert_tf.head_config import HeadConfig
from albert_tf.pretrained_model import PretrainedModel
from albert_tf.tokenizer import Tokenizer, read_settings

_BIAS = "output_bias"  # of a classifier, by its released name


@dataclasses.dataclass(frozen=True)
class Source:
    """Where weights, sizes and vocabulary come from.

    Attributes:
        config: the sizes, and the rates that the weights were trained with.
        tokenizer: of the model.
        checkpoint: the weights; None for random ones.
        task: of a fine-tuned model, by name.
    """

    config: AlbertConfig
    tokenizer: Tokenizer
    checkpoint: Checkpoint | None = None
    task: str | None = None

    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of the weights; "random" where there are none."""
        if self.checkpoint is None:
            return "random"
        digest = hashlib.sha256()
        for name, value in sorted(self.checkpoint.weights.items()):
            array = np.ascontiguousarray(value)
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class VocabularyFlags:
    """The vocabulary as a person gives it.

    Attributes:
        file: of it; None for the one beside the weights.
        flag: that names the file, for messages.
        do_lower_case, keep_accents: the clean-up; None for what is told beside the file, or else as released.
    """

    file: str | None = None
    flag: str = "spm_model_file"
    do_lower_case: bool | None = None
    keep_accents: bool | None = None

    @property
    def clean_up(self) -> dict[str, Any]:
        """What was said of the clean-up."""
        values = {"do_lower_case": self.do_lower_case, "keep_accents": self.keep_accents}
        return {name: value for name, value in values.items() if value is not None}


def read_source(path: str, vocabulary: VocabularyFlags, config: AlbertConfig | None = None) -> Source:
    """Reads a checkpoint of any form, a public model, or a fine-tuned model (also by its run's output directory).

    Args:
        path: whatever `formats.reading.read_checkpoint` reads.
        vocabulary: that takes the place of the source's.
        config: the sizes, for a source that does not tell them.

    Raises:
        InputError: nothing can be read there, or its sizes or vocabulary are not known.
    """
    directory = task_model.find(path) if path else None
    checkpoint = read_checkpoint(directory or path, config)
    sizes = config or checkpoint.config
    if sizes is None:
        raise InputError(f"{path} does not tell the sizes of its model: give them with --albert_config_file")
    if vocabulary.file:
        tokenizer = _load(vocabulary)
    elif checkpoint.vocabulary is not None:
        tokenizer = dataclasses.replace(checkpoint.vocabulary, **vocabulary.clean_up).tokenizer()
    else:
        raise InputError(f"{path} has no vocabulary beside it: give it with --spm_model_file or --vocab_file")
    tokenizer.check_config(sizes.vocab_size)
    task = task_model.read_about(directory).get("task") if directory else None
    return Source(sizes, tokenizer, checkpoint, task)


def random_source(config: AlbertConfig, vocabulary: VocabularyFlags) -> Source:
    """Sizes and vocabulary alone."""
    tokenizer = _load(vocabulary)
    tokenizer.check_config(config.vocab_size)
    return Source(config, tokenizer)


def make_model(
    source: Source, head: HeadConfig, config: AlbertConfig, *, first_answer: float | None = None
) -> PretrainedModel:
    """A new model with the source's encoder; with its head as well where that is the very same.

    Initial values that the source does not give are drawn from the global seed. `load_report` is None for random
    weights.

    Args:
        source: what it begins with.
        head, config: of the model.
        first_answer: of a regression, what its bias begins at if the source does not give it; None for 0.
    """
    model = _with_weights(source, head, config)
    if first_answer is not None and (model.load_report is None or _BIAS in model.load_report.missing):
        model.named_variables()[_BIAS].assign([first_answer])
    return model


def _with_weights(source: Source, head: HeadConfig, config: AlbertConfig) -> PretrainedModel:
    model_class = task_model.model_class(head)
    if source.checkpoint is None:
        return model_class(config, head)
    checkpoint = source.checkpoint.replace(vocabulary=None)
    if not has_this_head(source, head):
        encoder = {name: value for name, value in checkpoint.weights.items() if name.startswith("bert/")}
        checkpoint = checkpoint.replace(weights=encoder)
    model: PretrainedModel = model_class.from_checkpoint(checkpoint, head, config)
    return model


def has_this_head(source: Source, head: HeadConfig) -> bool:
    """Whether the source tells that it has a head of this kind with these labels."""
    checkpoint = source.checkpoint
    return checkpoint is not None and checkpoint.head_is_told and checkpoint.head == head


def beginning(source: Source, model: PretrainedModel) -> str:
    """A sentence on what the weights are."""
    if source.checkpoint is None or model.load_report is None:
        return "RANDOM INITIALISATION: there is no --model, so all weights begin at random"
    report = model.load_report
    at_random = sorted({"pooler" if name.startswith("bert/") else "head" for name in report.missing})
    new = f"; at random: {' and '.join(at_random)} ({', '.join(report.missing)})" if at_random else ""
    task = f", fine-tuned on {source.task}" if source.task else ""
    return f"weights from {report.path} ({report.form}{task}): {len(report.matched)} variables matched{new}"


def _load(vocabulary: VocabularyFlags) -> Tokenizer:
    if not vocabulary.file:
        raise InputError("--spm_model_file is missing: random weights need a vocabulary (or --vocab_file)")
    told = read_settings(os.path.dirname(vocabulary.file))
    clean_up: dict[str, Any] = {"do_lower_case": True, "keep_accents": False, **told, **vocabulary.clean_up}
    return tokenization.load_tokenizer(vocabulary.file, flag=vocabulary.flag, **clean_up)
