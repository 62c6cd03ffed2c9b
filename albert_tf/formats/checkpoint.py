"""`Checkpoint`: what a file or directory of any form holds, under the released names."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

import numpy as np

from albert_tf import wordpiece
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.tokenizer import (
    RELEASED_SENTENCEPIECE_FILE,
    SENTENCEPIECE_FILE,
    WORDPIECE_FILE,
    Tokenizer,
    read_settings,
    save_vocabulary,
)


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The tokenizer's file, byte for byte, and how text is cleaned before it.

    Attributes:
        name: what the file was called where it was found.
        data: its bytes.
        do_lower_case, keep_accents: the clean-up, see `tokenization.load_tokenizer`.
    """

    name: str
    data: bytes
    do_lower_case: bool = True
    keep_accents: bool = False

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Vocabulary:
        """The vocabulary of a tokenizer."""
        name = os.path.basename(tokenizer.vocab_file)
        return cls(name, tokenizer.data, tokenizer.do_lower_case, tokenizer.keep_accents)

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], do_lower_case: bool | None = None, keep_accents: bool | None = None
    ) -> Vocabulary:
        """Reads a tokenizer's file; a clean-up that is None is what tokenizer_config.json beside the file tells.

        Raises:
            InputError: one of the two files cannot be read.
        """
        directory, name = os.path.split(os.fspath(path))
        given = {"do_lower_case": do_lower_case, "keep_accents": keep_accents}
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise InputError(f"cannot read the vocabulary {os.fspath(path)}: {error.strerror}") from error
        settings = {**read_settings(directory), **{key: value for key, value in given.items() if value is not None}}
        return cls(name, data, **settings)

    @property
    def is_wordpiece(self) -> bool:
        """Whether the bytes are a WordPiece vocabulary; the name does not count."""
        return wordpiece.read_vocabulary(self.data) is not None

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of this vocabulary."""
        from albert_tf import tokenization  # sentencepiece is needed here alone

        return tokenization.make_tokenizer(self.name, self.data, self.do_lower_case, self.keep_accents)

    def write(
        self,
        directory: str | os.PathLike[str],
        sentencepiece_file: str = SENTENCEPIECE_FILE,
        others: Mapping[str, object] | None = None,
    ) -> None:
        """Writes the file under the usual name of its kind, and tokenizer_config.json.

        Args:
            directory: where.
            sentencepiece_file: the name of a SentencePiece model; a WordPiece vocabulary is always vocab.txt.
            others: further keys of tokenizer_config.json.
        """
        name = WORDPIECE_FILE if self.is_wordpiece else sentencepiece_file
        save_vocabulary(directory, name, self.data, self.do_lower_case, self.keep_accents, others)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Weights and what came with them. Nothing in it depends on the form it was read from.

    Attributes:
        path: as it was given, for messages.
        form: what it is, for messages: "TF1 checkpoint", "TF-Hub module", "Hugging Face directory", …
        weights: released name (`weight_names.variable_shapes`) to array, of the released shape and orientation; names
            that are no ALBERT's are kept as they stand in the file.
        config: the sizes, where the source tells them or the caller did.
        head: what stands on the encoder, where the source tells it or its weights let it be guessed.
        vocabulary: the tokenizer's file, where the source has one.
        slots: optimizer slots and counters in the source, which were not read.
        left_out: name in the source -> why it is no weight (a tied copy, a buffer of position ids, …).
        notes: what was changed in reading, one sentence each, for the report.
        config_is_told: whether the config is the source's own, not the caller's.
        head_is_told: whether the source tells its head: some have weights of the same names and shapes.
    """

    path: str
    form: str
    weights: Mapping[str, np.ndarray]
    config: AlbertConfig | None = None
    head: HeadConfig | None = None
    vocabulary: Vocabulary | None = None
    slots: tuple[str, ...] = ()
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    config_is_told: bool = True
    head_is_told: bool = False

    def replace(self, **changes: object) -> Checkpoint:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


# Names under which the tokenizer's file is found beside or inside a checkpoint, in this order.
VOCABULARY_NAMES = (RELEASED_SENTENCEPIECE_FILE, SENTENCEPIECE_FILE, WORDPIECE_FILE, "vocab_chinese.txt")


def find_vocabulary(directory: str | os.PathLike[str], do_lower_case: bool | None = None) -> Vocabulary | None:
    """The vocabulary in a directory: a file of a usual name, or else its only `*.model`.

    Args:
        directory: where to look, not below.
        do_lower_case: the clean-up as the source itself tells it; None is as for `Vocabulary.read`.

    Raises:
        InputError: the file, or tokenizer_config.json beside it, cannot be read.
    """
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    found = [name for name in VOCABULARY_NAMES if name in names]
    models = [name for name in names if name.endswith(".model")]
    if not found and len(models) == 1:
        found = models
    return Vocabulary.read(os.path.join(directory, found[0]), do_lower_case) if found else None
