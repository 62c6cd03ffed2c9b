"""`Checkpoint`: what a file or directory of any form holds, under the released names."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.head_config import HeadConfig
from albert_tf.tokenizer import SENTENCEPIECE_FILE, WORDPIECE_FILE, Tokenizer, save_vocabulary


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

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of this vocabulary."""
        from albert_tf import tokenization  # sentencepiece is needed here alone

        return tokenization.make_tokenizer(self.name, self.data, self.do_lower_case, self.keep_accents)

    def write(self, directory: str | os.PathLike[str]) -> None:
        """Writes the file under the name Hugging Face gives its kind, and tokenizer_config.json."""
        name = WORDPIECE_FILE if self.name.endswith(".txt") else SENTENCEPIECE_FILE
        save_vocabulary(directory, name, self.data, self.do_lower_case, self.keep_accents)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Weights and what came with them. Nothing in it depends on the form it was read from.

    Attributes:
        path: as it was given, for messages.
        form: what it is, for messages: "TF1 checkpoint", "TF-Hub module", "Hugging Face directory", …
        weights: released name (`weight_names.variable_shapes`) to array, of the released shape and orientation; names
            that are no ALBERT's are kept as they stand in the file.
        config: the sizes, where the source tells them.
        head: the head, where the source tells it.
        vocabulary: the tokenizer's file, where the source has one.
        slots: optimizer slots and counters in the source, which were not read.
        left_out: name in the source -> why it is no weight (a tied copy, a buffer of position ids, …).
        notes: what was changed in reading, one sentence each, for the report.
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

    def replace(self, **changes: object) -> Checkpoint:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


# Names under which the tokenizer's file is found beside or inside a checkpoint, in this order.
VOCABULARY_NAMES = ("30k-clean.model", SENTENCEPIECE_FILE, WORDPIECE_FILE, "vocab_chinese.txt")


def find_vocabulary(
    directory: str | os.PathLike[str], settings: Mapping[str, object] | None = None
) -> Vocabulary | None:
    """The vocabulary in a directory: a file of a usual name, or else its only `*.model`.

    Args:
        directory: where to look, not below.
        settings: `do_lower_case` and `keep_accents`, where a file beside it tells them.
    """
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    found = [name for name in VOCABULARY_NAMES if name in names]
    models = [name for name in names if name.endswith(".model")]
    if not found and len(models) == 1:
        found = models
    if not found:
        return None
    with open(os.path.join(directory, found[0]), "rb") as file:
        data = file.read()
    known = {key: bool(settings[key]) for key in ("do_lower_case", "keep_accents") if settings and key in settings}
    return Vocabulary(found[0], data, **known)
