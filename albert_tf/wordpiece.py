"""WordPiece for the released Chinese vocabulary: words by whitespace, punctuation and CJK, then longest match first.

The rules are the released `FullTokenizer`'s without a SentencePiece model. The character functions are shared with the
graph side.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from albert_tf.character_offsets import AlignedText, EncodedText
from albert_tf.text_cleanup import REPLACEMENT_CHARACTER, replace_surrogate
from albert_tf.tokenizer import WORDPIECE_FILE, Tokenizer, missing_piece

MAX_CHARACTERS_PER_WORD = 200  # longer words are unknown as a whole
CONTINUATION = "##"
SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

_MOST_CACHED_WORDS = 1 << 18
_CJK_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def separate_cjk(character: str) -> str:
    """First pass: control and format characters go, whitespace becomes a space, a CJK ideograph stands alone."""
    character = replace_surrogate(character)
    category = unicodedata.category(character)
    if character in "\t\n\r":
        return " "
    if character == REPLACEMENT_CHARACTER or category in ("Cc", "Cf"):
        return ""
    if character.isspace():
        return " "
    if any(first <= ord(character) <= last for first, last in _CJK_RANGES):
        return f" {character} "
    return character


def drop_nonspacing_mark(character: str) -> str:
    """Second pass, after NFD: accents (category Mn) go."""
    return "" if unicodedata.category(character) == "Mn" else character


def separate_punctuation(character: str) -> str:
    """Third pass: punctuation (category P, and every ASCII symbol) stands alone."""
    return f" {character} " if is_punctuation(character) else character


def is_punctuation(character: str) -> bool:
    """True for Unicode punctuation and for every printable ASCII character that is no letter, digit or space."""
    ascii_symbol = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return ascii_symbol or unicodedata.category(character).startswith("P")


class _CharacterTable(dict[int, str]):
    """A table for str.translate that is filled as characters turn up."""

    def __init__(self, function: Callable[[str], str]):
        super().__init__()
        self._function = function

    def __missing__(self, code_point: int) -> str:
        self[code_point] = replacement = self._function(chr(code_point))
        return replacement


def _without_accents(character: str) -> str:
    return separate_punctuation(drop_nonspacing_mark(character)) if drop_nonspacing_mark(character) else ""


@functools.cache
def _table(function: Callable[[str], str]) -> _CharacterTable:
    return _CharacterTable(function)


def split_words(text: str, do_lower_case: bool = True, keep_accents: bool = False) -> list[str]:
    """The words of a text: what WordPiece then cuts into pieces."""
    text = text.translate(_table(separate_cjk))
    if not do_lower_case:
        return text.translate(_table(separate_punctuation)).split()
    text = text.lower()
    if keep_accents:
        return text.translate(_table(separate_punctuation)).split()
    return unicodedata.normalize("NFD", text).translate(_table(_without_accents)).split()


def _aligned_words(text: str, do_lower_case: bool, keep_accents: bool) -> AlignedText:
    """What `split_words` splits at spaces, with the places in the text that each character came from."""
    aligned = AlignedText.of(text).mapped(separate_cjk)
    if do_lower_case:
        aligned = aligned.lowered()
        if not keep_accents:
            aligned = aligned.decomposed().mapped(drop_nonspacing_mark)
    return aligned.mapped(separate_punctuation)


def read_vocabulary(data: bytes) -> list[str] | None:
    """The pieces of a vocabulary file, one a line, or None if the bytes are no WordPiece vocabulary."""
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    if lines and not lines[-1].strip():
        lines.pop()
    pieces = [line.strip() or " " for line in lines]
    return pieces if set(SPECIAL_PIECES[1:]) <= set(pieces) else None


class WordPieceTokenizer(Tokenizer):
    """WordPiece ids of a vocab.txt. Accents are dropped when lower-casing, unless `keep_accents`."""

    kind = "wordpiece"
    saved_name = WORDPIECE_FILE

    def __init__(self, vocab_file: str, data: bytes, do_lower_case: bool, keep_accents: bool, flag: str = "vocab_file"):
        """See `tokenization.load_tokenizer`; `data` are the file's bytes."""
        pieces = read_vocabulary(data)
        if pieces is None:
            raise ValueError(f"{vocab_file} is not a WordPiece vocabulary")
        self._ids: dict[str, int] = {}
        for i, piece in enumerate(pieces):
            self._ids.setdefault(piece, i)
        for piece in SPECIAL_PIECES:
            if piece not in self._ids:
                raise missing_piece(flag, vocab_file, piece)
        special = [self._ids[piece] for piece in SPECIAL_PIECES]
        # Brackets are words of their own, so no text gives [unused1] or <S> either.
        special += [i for i, piece in enumerate(pieces) if len(piece) > 2 and piece[0] + piece[-1] in ("[]", "<>")]
        super().__init__(
            vocab_file, data, do_lower_case, keep_accents, pieces=pieces, special_pieces=special, flag=flag
        )
        self._longest = max(len(piece) for piece in pieces)
        self._cache: dict[str, list[int]] = {}

    def encode_batch(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        ids: list[int] = []
        ends = []
        for text in texts:
            for word in split_words(text, self.do_lower_case, self.keep_accents):
                ids += self._cache.get(word) or self._encode_word(word)
            ends.append(len(ids))
        return np.asarray(ids, np.int32), np.diff(np.asarray(ends, np.int32), prepend=np.int32(0))

    def encode_with_offsets(self, text: str) -> EncodedText:
        aligned = _aligned_words(text, self.do_lower_case, self.keep_accents)
        ids: list[int] = []
        bounds: list[int] = []
        for word in re.finditer(r"\S+", aligned.text):
            start, end = word.span()
            word_ids = self._cache.get(word.group()) or self._encode_word(word.group())
            ids += word_ids
            if word_ids == [self.unk_id]:
                bounds += (start, end)
                continue
            for number, piece_id in enumerate(word_ids):
                next_start = start + len(self._pieces[piece_id]) - (len(CONTINUATION) if number else 0)
                bounds += (start, next_start)
                start = next_start
        return aligned.encoded(ids, bounds)

    def ids_by_piece(self) -> dict[str, int]:
        """The id of each piece; of a piece that stands on several lines, the first line counts."""
        return dict(self._ids)

    def _encode_word(self, word: str) -> list[int]:
        if len(self._cache) >= _MOST_CACHED_WORDS:
            self._cache.clear()
        self._cache[word] = ids = self._longest_matches(word)
        return ids

    def _longest_matches(self, word: str) -> list[int]:
        if len(word) > MAX_CHARACTERS_PER_WORD:
            return [self.unk_id]
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = CONTINUATION if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                piece_id = self._ids.get(prefix + word[start:end])
                if piece_id is not None:
                    ids.append(piece_id)
                    start = end
                    break
            else:
                return [self.unk_id]
        return ids

    def encode_as_pieces(self, text: str) -> list[str]:
        return [self._pieces[i] for i in self.encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        left_out = set(self.special_ids.tolist()) - {self.unk_id}
        pieces = [self.id_to_piece(int(i)) for i in ids if int(i) not in left_out]
        return " ".join(pieces).replace(f" {CONTINUATION}", "")

    def starts_word(self) -> np.ndarray:
        return np.array([not piece.startswith(CONTINUATION) for piece in self._pieces])

    def to_graph(self) -> Any:
        from albert_tf.tokenization_graph import WordPieceGraph  # TensorFlow is needed here alone

        return WordPieceGraph(self)
