"""What the tests of the preparation share: a small vocabulary, made texts, encoded documents."""

from __future__ import annotations

import functools
import io
import pathlib
import tempfile
from collections.abc import Sequence

import numpy as np
import sentencepiece

from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenizer import Tokenizer
from data_prep.segments import EncodedDocument

SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "za")


def made_word(number: int) -> str:
    """A different word for each number, of letters alone: markers that survive the way to pieces and back."""
    return "".join(SYLLABLES[int(digit)] for digit in f"{number:04d}")


def made_lines(first: int, count: int, words: int = 8) -> list[str]:
    """Sentences that begin with the marker of their number."""
    rng = np.random.default_rng(first)
    return [
        " ".join([made_word(first + i), *(made_word(int(n)) for n in rng.integers(5000, 9999, words - 1))]) + "."
        for i in range(count)
    ]


def write_documents(path: pathlib.Path, documents: Sequence[Sequence[str]]) -> pathlib.Path:
    """One sentence a line, a blank line behind each document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\n".join(lines) + "\n\n" for lines in documents), encoding="utf-8")
    return path


@functools.cache
def small_tokenizer() -> Tokenizer:
    """A SentencePiece model of 200 pieces with the released special ids, trained on made words."""
    model = io.BytesIO()
    rng = np.random.default_rng(7)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(
            [*made_lines(0, 2000), *("".join(rng.permutation(list("abcdefghijklmnopqrstuvwxyz"))) for _ in range(200))]
        ),
        model_writer=model,
        vocab_size=200,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        user_defined_symbols=["(", ")", '"', "-", "."],
        minloglevel=2,
    )
    path = pathlib.Path(tempfile.mkdtemp()) / "small.model"
    path.write_bytes(model.getvalue())
    return load_tokenizer(str(path))


def made_document(sentence_sizes: Sequence[int], *, first_piece: int = 1000, word_every: int = 2) -> EncodedDocument:
    """Pieces first_piece, first_piece + 1, …: each is told apart; every `word_every`th starts a word."""
    ends = np.cumsum(sentence_sizes)
    size = int(ends[-1])
    starts_word = np.arange(size) % word_every == 0
    starts_word[np.concatenate([[0], ends[:-1]])] = True
    return EncodedDocument((0, first_piece), np.arange(size, dtype=np.int32) + first_piece, ends.tolist(), starts_word)
