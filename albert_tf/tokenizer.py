"""What the SentencePiece and the WordPiece tokenizer have in common: the vocabulary and its special pieces.

V is the vocabulary size.
"""

from __future__ import annotations

import abc
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from albert_tf.character_offsets import EncodedText
from albert_tf.errors import InputError
from albert_tf.files import atomic_write, read_json, write_json

SETTINGS_FILE = "tokenizer_config.json"
SENTENCEPIECE_FILE, WORDPIECE_FILE = "spiece.model", "vocab.txt"  # in a portable directory, as Hugging Face has them
RELEASED_SENTENCEPIECE_FILE = "30k-clean.model"
_MOST_UNKNOWN = 0.05  # of the pieces: beyond that the vocabulary is hardly one for the texts


def warn_of_unknown(share: float, where: str = "") -> None:
    """Tells a share of unknown pieces that is so large that the vocabulary is hardly one for the texts.

    Args:
        share: 0 to 1.
        where: what the message begins with, such as "dev.tsv: ".
    """
    if share > _MOST_UNKNOWN:
        logging.warning(
            "%s%.1f %% of the pieces are unknown to the vocabulary (more than %.0f %%): is it one for this language?",
            where,
            100 * share,
            100 * _MOST_UNKNOWN,
        )


class Tokenizer(abc.ABC):
    """Text to piece ids and back.

    Attributes:
        vocab_file: where the vocabulary was read from.
        vocab_size: V.
        pad_id, unk_id, cls_id, sep_id, mask_id: looked up by piece when the file is read, never assumed.
        special_ids: int32, ascending: pieces that no raw text gives and that no random replacement may draw.
        do_lower_case, keep_accents: the clean-up of the text.
    """

    kind: str
    saved_name: str  # the vocabulary's file name in a portable directory

    def __init__(
        self,
        vocab_file: str,
        data: bytes,
        do_lower_case: bool,
        keep_accents: bool,
        *,
        pieces: Sequence[str],
        special_pieces: Sequence[int],
        flag: str,
    ):
        """`special_pieces`: ids of pad, unk, [CLS], [SEP], [MASK] in this order, then any further special pieces."""
        self.vocab_file = os.fspath(vocab_file)
        self.do_lower_case = do_lower_case
        self.keep_accents = keep_accents
        self.vocab_size = len(pieces)
        self._data = data
        self._pieces = list(pieces)
        self._flag = flag
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = special_pieces[:5]
        self.special_ids = np.unique(np.asarray(special_pieces, np.int32))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.vocab_file, self._data, self.do_lower_case, self.keep_accents, self._flag)

    @abc.abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Encodes texts: the ids of all of them in a row (int32 [total]) and how many belong to each (int32 [n])."""

    @abc.abstractmethod
    def encode_with_offsets(self, text: str) -> EncodedText:
        """The pieces of one text, the ids `encode` gives, and the characters of the text that each came from."""

    @abc.abstractmethod
    def encode_as_pieces(self, text: str) -> list[str]:
        """The pieces of a text, one for each id; a SentencePiece unknown is shown as it is spelled in the text."""

    @abc.abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Readable text of ids; special pieces other than the unknown one are left out."""

    @abc.abstractmethod
    def starts_word(self) -> np.ndarray:
        """bool [V]: the piece begins a word, for whole-word masking."""

    @abc.abstractmethod
    def to_graph(self) -> Any:
        """A tf.Module: called with strings [N] it returns a RaggedTensor [N, None] int32 of the ids `encode` gives.

        It holds the vocabulary, so a SavedModel that uses it needs no file beside it. Needs TensorFlow Text.
        """

    def encode(self, text: str) -> list[int]:
        """The piece ids of one text, without [CLS] and [SEP]."""
        return self.encode_batch([text])[0].tolist()

    def __call__(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        *,
        max_length: int = 512,
        padding: str | int = "longest",
    ) -> dict[str, np.ndarray]:
        """Texts or pairs as a dict of arrays for a model, its `fit` or a tf.data.Dataset; see `text_inputs`."""
        from albert_tf.text_inputs import text_inputs  # which is made of tokenizers

        return text_inputs(self, texts, pairs, max_length=max_length, padding=padding)

    def id_to_piece(self, piece_id: int) -> str:
        """The piece of an id; IndexError outside 0..V-1."""
        if not 0 <= piece_id < self.vocab_size:
            raise IndexError(f"piece id {piece_id} is outside 0..{self.vocab_size - 1}")
        return self._pieces[piece_id]

    def pieces(self) -> list[str]:
        """The whole vocabulary in the order of the ids."""
        return list(self._pieces)

    def settings(self) -> dict[str, Any]:
        """What decides the ids, for a metadata file."""
        return {
            "kind": self.kind,
            "do_lower_case": self.do_lower_case,
            "keep_accents": self.keep_accents,
            "vocab_size": self.vocab_size,
            "vocab_sha256": hashlib.sha256(self._data).hexdigest(),
        }

    def check_config(self, vocab_size: int) -> None:
        """Compares V with a model's `vocab_size`.

        More rows than pieces only wastes memory and is warned of.

        Raises:
            InputError: the model has fewer rows than there are pieces, so some ids would have no embedding.
        """
        if vocab_size < self.vocab_size:
            raise InputError(
                f"--{self._flag}: {self.vocab_file} has {self.vocab_size} pieces but the model config's vocab_size is "
                f"{vocab_size}: take the vocabulary the model was made for, or a config with vocab_size "
                f"{self.vocab_size}"
            )
        if vocab_size > self.vocab_size:
            logging.warning(
                "the model config's vocab_size is %d but %s has only %d pieces: %d embedding rows are never used",
                vocab_size,
                self.vocab_file,
                self.vocab_size,
                vocab_size - self.vocab_size,
            )

    @property
    def data(self) -> bytes:
        """The vocabulary's file, byte for byte."""
        return self._data

    def save(self, directory: str | os.PathLike[str]) -> str:
        """Writes the vocabulary under its usual name and the clean-up settings beside it; returns the file's path."""
        return save_vocabulary(directory, self.saved_name, self._data, self.do_lower_case, self.keep_accents)


def save_vocabulary(
    directory: str | os.PathLike[str],
    name: str,
    data: bytes,
    do_lower_case: bool,
    keep_accents: bool,
    others: Mapping[str, Any] | None = None,
) -> str:
    """Writes a vocabulary's file and tokenizer_config.json beside it, which Hugging Face's tokenizers read too.

    Args:
        directory: where.
        name: of the vocabulary's file.
        data: its bytes.
        do_lower_case, keep_accents: the clean-up.
        others: further keys of tokenizer_config.json.

    Returns:
        The path of the vocabulary's file.
    """
    path = os.path.join(os.fspath(directory), name)
    with atomic_write(path) as file:
        file.write(data)
    settings = {"do_lower_case": do_lower_case, "keep_accents": keep_accents, "remove_space": True, **(others or {})}
    write_json(os.path.join(os.fspath(directory), SETTINGS_FILE), settings)
    return path


def read_settings(directory: str | os.PathLike[str]) -> dict[str, bool]:
    """The clean-up that tokenizer_config.json in a directory tells: `do_lower_case` and `keep_accents`, those it has.

    Hugging Face's WordPiece class has no `keep_accents`: there `strip_accents` false means the same.

    Raises:
        InputError: the file is not a JSON object, or one of the two is neither true nor false.
    """
    path = os.path.join(os.fspath(directory), SETTINGS_FILE)
    values = read_json(path) if os.path.exists(path) else {}
    if not isinstance(values, dict):
        raise InputError(f"{path} holds {values!r:.40} in place of a JSON object of settings: correct it or remove it")
    found = {name: values[name] for name in ("do_lower_case", "keep_accents") if values.get(name) is not None}
    for name, value in found.items():
        if not isinstance(value, bool):
            raise InputError(f"{path}: {name} is {value!r}: give true or false")
    if values.get("strip_accents") is False:
        found.setdefault("keep_accents", True)
    return found


def missing_piece(flag: str, vocab_file: str, piece: str) -> InputError:
    """The error for a vocabulary without one of the pieces ALBERT needs."""
    return InputError(
        f"--{flag}: {vocab_file} has no piece {piece}: ALBERT needs it, so train the vocabulary again with "
        "data_prep.train_sentencepiece or take a released one"
    )
