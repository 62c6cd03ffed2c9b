"""Text to piece ids: the released clean-up, SentencePiece, and WordPiece for the Chinese vocabulary.

This is the Python side and needs no TensorFlow; `tokenizer.to_graph()` gives the same ids inside a TensorFlow graph.
V is the vocabulary size.
"""

from __future__ import annotations

import os
import string
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import sentencepiece

from albert_tf import character_offsets, wordpiece
from albert_tf.character_offsets import UNDERLINE, EncodedText
from albert_tf.errors import InputError
from albert_tf.text_cleanup import clean, clean_batch
from albert_tf.tokenizer import SENTENCEPIECE_FILE, Tokenizer, missing_piece
from albert_tf.wordpiece import WordPieceTokenizer

SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")

_WORD_SYMBOLS = frozenset(string.punctuation) - frozenset("'<=>")
_WORD_CHARACTERS = frozenset(string.ascii_letters) | _WORD_SYMBOLS


def load_tokenizer(
    vocab_file: str | os.PathLike[str],
    *,
    do_lower_case: bool = True,
    keep_accents: bool = False,
    flag: str = "spm_model_file",
    kind: str | None = None,
) -> Tokenizer:
    """Reads a vocabulary; what it is, is told by its content.

    Args:
        vocab_file: a SentencePiece .model, or a WordPiece vocab.txt (it has the lines [UNK], [CLS], [SEP], [MASK]).
        do_lower_case: lower-case the text.
        keep_accents: keep accents, and leave out the NFKD decomposition that drops them.
        flag: the flag the name came from, for messages.
        kind: "sentencepiece" or "wordpiece" if only this kind will do; None takes either.

    Raises:
        InputError: the file is missing, is neither kind or not the kind asked for, or lacks a special piece.
    """
    vocab_file = os.fspath(vocab_file)
    if not vocab_file:
        raise InputError(f"--{flag} is empty: give the vocabulary, a SentencePiece .model file")
    try:
        with open(vocab_file, "rb") as file:
            data = file.read()
    except OSError as error:
        raise InputError(f"--{flag}: cannot read {vocab_file}: {error.strerror}") from error
    return make_tokenizer(vocab_file, data, do_lower_case, keep_accents, flag, kind)


def make_tokenizer(
    vocab_file: str,
    data: bytes,
    do_lower_case: bool = True,
    keep_accents: bool = False,
    flag: str = "spm_model_file",
    kind: str | None = None,
) -> Tokenizer:
    """The tokenizer of a vocabulary's bytes, which came from `vocab_file`; the rest as for `load_tokenizer`."""
    if wordpiece.read_vocabulary(data) is not None:
        if kind == SentencePieceTokenizer.kind:
            raise InputError(
                f"--{flag}: {vocab_file} is a WordPiece vocabulary, not a SentencePiece model: give the .model file "
                "the ALBERT model was trained with (a BERT vocab.txt fits only models trained with it)"
            )
        return WordPieceTokenizer(vocab_file, data, do_lower_case, keep_accents, flag)
    if kind == WordPieceTokenizer.kind:
        raise InputError(
            f"--{flag}: {vocab_file} is not a WordPiece vocabulary, a text with a piece a line, among them [UNK], "
            "[CLS], [SEP] and [MASK]"
        )
    return SentencePieceTokenizer(vocab_file, data, do_lower_case, keep_accents, flag)


class SentencePieceTokenizer(Tokenizer):
    """SentencePiece ids of cleaned text, with the released rule for pieces that end in a digit and a comma.

    Such a piece ("2019,") is taken apart: the piece without its comma and its underline is encoded again, then ","
    follows. The outcome depends on the piece alone, so it is a table from id to ids, made once and used by the graph
    side too. The released code can leave a "1," inside the outcome of "1,2,"; here that one is taken apart as well.

    The released code looks pieces up by their spelling, so a run of unknown characters that happens to be spelled
    "[CLS]" became the control id; here raw text gives no special id but the unknown one.
    """

    kind = "sentencepiece"
    saved_name = SENTENCEPIECE_FILE

    def __init__(
        self, vocab_file: str, data: bytes, do_lower_case: bool, keep_accents: bool, flag: str = "spm_model_file"
    ):
        """See `load_tokenizer`; `data` are the file's bytes."""
        self._processor = _load_processor(vocab_file, data, flag)
        processor = self._processor
        special = []
        for piece in SPECIAL_PIECES:
            piece_id = processor.unk_id() if piece == "<unk>" else processor.piece_to_id(piece)
            if piece_id < 0 or (piece != "<unk>" and piece_id == processor.unk_id()):
                raise missing_piece(flag, vocab_file, piece)
            special.append(piece_id)
        size = processor.get_piece_size()
        special += [i for i in range(size) if processor.is_control(i) or processor.is_unused(i)]
        super().__init__(
            vocab_file,
            data,
            do_lower_case,
            keep_accents,
            pieces=[processor.id_to_piece(i) for i in range(size)],
            special_pieces=special,
            flag=flag,
        )
        self._replaced = self._replacements()
        rows = self.replacement_rows()
        self._row_sizes = np.array([len(row) for row in rows], np.int64)
        self._row_starts = np.cumsum(self._row_sizes) - self._row_sizes
        self._row_values = np.fromiter(chain.from_iterable(rows), np.int32)
        self._is_replaced = np.isin(np.arange(size), list(self._replaced))

    def _replacements(self) -> dict[int, list[tuple[str, int]]]:
        """What stands for a piece that SentencePiece gives: (spelling, id) by piece id, where it is not the piece."""
        unknown = (self._pieces[self.unk_id], self.unk_id)
        # A model may list [MASK] as a user-defined symbol; typed in a text it still must not become the special id.
        replaced = {int(i): [unknown] for i in self.special_ids if i != self.unk_id}
        comma_id = self._processor.piece_to_id(",")

        def take_apart(piece: str, outer: tuple[str, ...] = ()) -> list[tuple[str, int]]:
            parts: list[tuple[str, int]] = []
            for part, part_id in self._encode_raw(piece[:-1].replace(UNDERLINE, "")):
                repeats = part == piece or part in outer
                if _ends_in_digit_comma(part) and not repeats:
                    parts += take_apart(part, (*outer, piece))
                else:
                    parts.append((part, part_id))
            return [*parts, (",", comma_id)]

        for i, piece in enumerate(self._pieces):
            if i not in replaced and _ends_in_digit_comma(piece):
                replaced[i] = take_apart(piece)
        return replaced

    def _encode_raw(self, text: str) -> list[tuple[str, int]]:
        return list(zip(self._processor.encode(text, out_type=str), self._processor.encode(text, out_type=int)))

    def replacement_rows(self) -> list[list[int]]:
        """V lists: the ids that stand for each id that SentencePiece gives, mostly the id itself."""
        rows = [[i] for i in range(self.vocab_size)]
        for i, parts in self._replaced.items():
            rows[i] = [part_id for _, part_id in parts]
        return rows

    def encode_batch(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        cleaned = clean_batch(texts, self.do_lower_case, self.keep_accents)
        if len(cleaned) == 1:  # the batch call starts a thread, which costs more than a line
            encoded = [self._processor.encode(cleaned[0], out_type=int)]
        else:  # one thread: whoever has more cores runs more processes
            encoded = self._processor.encode(cleaned, out_type=int, num_threads=1) if cleaned else []
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        ids = np.fromiter(chain.from_iterable(encoded), np.int32, int(lengths.sum()))
        return self._replace(ids, lengths)

    def _replace(self, ids: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self._is_replaced[ids].any():
            return ids, lengths.astype(np.int32)
        sizes = self._row_sizes[ids]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        total = int(ends[-1])
        # Each output element is an element of a row of the table: the row's start plus the place within the row.
        places = np.arange(total) - np.repeat(ends[:-1], sizes)
        text_ends = np.cumsum(lengths)
        return (
            self._row_values[np.repeat(self._row_starts[ids], sizes) + places],
            (ends[text_ends] - ends[text_ends - lengths]).astype(np.int32),
        )

    def encode_with_offsets(self, text: str) -> EncodedText:
        cleaned = character_offsets.cleaned(text, self.do_lower_case, self.keep_accents)
        aligned = cleaned.normalised(*self._processor.normalize(cleaned.text, with_offsets=True))
        ids: list[int] = []
        bounds: list[int] = []
        at = 0
        for piece, piece_id in self._encode_raw(cleaned.text):
            parts, sizes = [(piece, piece_id)], [len(piece)]
            if piece_id in self._replaced:
                parts = self._replaced[piece_id]
                sizes = character_offsets.part_sizes(piece, [part for part, _ in parts])
            elif self._processor.is_byte(piece_id):  # "<0xE2>": the first byte of a character, or one more of it
                at -= 0x80 <= int(piece[3:5], 16) < 0xC0
                sizes = [1]
            for (_, part_id), size in zip(parts, sizes):
                ids.append(part_id)
                bounds += (at, at + size)
                at += size
        return aligned.encoded(ids, bounds)

    def encode_as_pieces(self, text: str) -> list[str]:
        pieces: list[str] = []
        for piece, piece_id in self._encode_raw(clean(text, self.do_lower_case, self.keep_accents)):
            parts = self._replaced.get(piece_id)
            pieces += [piece] if parts is None else [part for part, _ in parts]
        return pieces

    def decode(self, ids: Iterable[int]) -> str:
        left_out = set(self.special_ids.tolist()) - {self.unk_id}
        return self._processor.decode([int(i) for i in ids if int(i) not in left_out])

    def starts_word(self) -> np.ndarray:
        """bool [V], as the released create_pretraining_data decides.

        A piece goes on with a word only if it has no underline in front and is made of ASCII letters and symbols
        alone without being a single symbol: digits and letters of other scripts always start one. Special pieces
        stand for themselves.
        """
        starts = np.array([_starts_word(piece) for piece in self._pieces])
        starts[self.special_ids] = True
        return starts

    def scores(self) -> list[float]:
        """The log-probability of each piece; 0 for special and user-defined pieces."""
        return [self._processor.get_score(i) for i in range(self.vocab_size)]

    @property
    def model_proto(self) -> bytes:
        """The SentencePiece model, serialised."""
        return self._data

    def byte_pieces(self) -> list[int]:
        """The ids of pieces that stand for a byte."""
        return [i for i in range(self.vocab_size) if self._processor.is_byte(i)]

    def part_sizes(self) -> dict[int, list[int]]:
        """By the id of a piece that is replaced by several: how many of its characters each of them has."""
        return {
            i: character_offsets.part_sizes(self._pieces[i], [part for part, _ in parts])
            for i, parts in self._replaced.items()
            if len(parts) > 1
        }

    def to_graph(self) -> Any:
        from albert_tf.tokenization_graph import SentencePieceGraph  # TensorFlow is needed here alone

        return SentencePieceGraph(self)


def _starts_word(piece: str) -> bool:
    if piece.startswith((UNDERLINE, "<")) or piece in _WORD_SYMBOLS:
        return True
    return not _WORD_CHARACTERS.issuperset(piece)


def _ends_in_digit_comma(piece: str) -> bool:
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def _load_processor(vocab_file: str, data: bytes, flag: str) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        loaded = bool(data) and processor.LoadFromSerializedProto(data) and processor.get_piece_size() > 0
    except (RuntimeError, ValueError):
        loaded = False
    if not loaded:
        raise InputError(f"--{flag}: {vocab_file} is not a SentencePiece model: {_what_else(data)}")
    return processor


def _what_else(data: bytes) -> str:
    if not data:
        return "the file is empty"
    try:
        first_line = data.decode("utf-8").split("\n", 1)[0]
    except UnicodeDecodeError:
        return "the file is damaged, or of another format"
    if "\t" in first_line:
        return "it looks like the .vocab listing of one; give the .model file beside it"
    return "it is a text file; give the .model file, or a vocab.txt with the lines [UNK], [CLS], [SEP] and [MASK]"
