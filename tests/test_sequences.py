"""Sequences of texts and pairs: against the released features, and against the cutting done piece by piece."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf import sequences
from albert_tf.errors import InputError
from albert_tf.tokenization import load_tokenizer
from tests import toy_vocabulary


def cut_piece_by_piece(a: list[int], b: list[int], room: int) -> tuple[list[int], list[int]]:
    """The rule as it is told: one piece at a time leaves from the end of the longer one, of B if they are equal."""
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        (a if len(a) > len(b) else b).pop()
    return a, b


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 80))
def test_sizes_of_a_pair(a, b, room):
    kept = sequences.sizes_of_pair(np.array([a]), np.array([b]), room)
    expected = cut_piece_by_piece([0] * a, [0] * b, room)
    assert [int(kept[0][0]), int(kept[1][0])] == [len(expected[0]), len(expected[1])]


def test_the_released_features(shared):
    cases = json.loads((shared / "fixtures/classifier_features/cases.json").read_text())
    cases = [case for case in cases if "text_a" in case]
    meta = json.loads((shared / "fixtures/classifier_features/meta.json").read_text())
    tokenizer = load_tokenizer(shared.parent / meta["tokenizer_file"], do_lower_case=meta["do_lower_case"])
    made, cut = sequences.pair_sequences(
        [case["text_a"] for case in cases],
        [case["text_b"] for case in cases],
        tokenizer,
        meta["max_seq_length"],
    )
    ends = np.cumsum(made.sizes)
    for case, end, size, first in zip(cases, ends, made.sizes, made.first_sizes):
        wanted = case["features"]
        padding = [0] * (meta["max_seq_length"] - size)
        assert made.input_ids[end - size : end].tolist() + padding == wanted["input_ids"]
        assert [1] * size + padding == wanted["input_mask"]
        assert [0] * first + [1] * (size - first) + padding == wanted["segment_ids"]
    assert cut == sum(sum(case["features"]["input_mask"]) == meta["max_seq_length"] for case in cases)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(toy_vocabulary.odd_text(), st.none() | toy_vocabulary.odd_text()), max_size=6),
    st.integers(5, 30),
)
def test_any_texts(pairs, longest):
    tokenizer = load_tokenizer(toy_vocabulary.alphabet_model())
    made, cut = sequences.pair_sequences([a for a, _ in pairs], [b for _, b in pairs], tokenizer, longest)
    ids, sizes, first_sizes, lost = [], [], [], 0
    for text_a, text_b in pairs:
        a, b = tokenizer.encode(text_a), tokenizer.encode(text_b or "")
        kept_a, kept_b = cut_piece_by_piece(a, b, longest - (2 if text_b is None else 3))
        row = [tokenizer.cls_id, *kept_a, tokenizer.sep_id]
        first_sizes.append(len(row))
        row += [] if text_b is None else [*kept_b, tokenizer.sep_id]
        ids += row
        sizes.append(len(row))
        lost += (kept_a, kept_b) != (a, b)
    assert (made.input_ids.tolist(), made.sizes.tolist()) == (ids, sizes)
    assert (made.first_sizes.tolist(), cut) == (first_sizes, lost)
    assert {array.dtype for array in made} == {np.dtype(np.int32)}


def test_a_text_that_comes_again_is_encoded_once():
    tokenizer = load_tokenizer(toy_vocabulary.number_model())
    encoded = []
    tokenizer_encode = tokenizer.encode_batch
    tokenizer.encode_batch = lambda texts: encoded.append(list(texts)) or tokenizer_encode(texts)
    pieces = sequences.encode(["b", "a", "b", "b"], tokenizer)
    assert encoded == [["b", "a"]]
    rows = [pieces.ids[s : s + n].tolist() for s, n in zip(pieces.starts, pieces.sizes)]
    assert rows == [tokenizer.encode(text) for text in ("b", "a", "b", "b")]


def test_first_and_last_pieces():
    pieces = sequences.Pieces(np.arange(10, dtype=np.int32), np.array([0, 4, 9]), np.array([4, 5, 0]))
    assert pieces.ids[pieces.first(np.array([2, 9, 3])).places()].tolist() == [0, 1, 4, 5, 6, 7, 8]
    assert pieces.ids[pieces.last(np.array([2, 3, 3])).places()].tolist() == [2, 3, 6, 7, 8]


@pytest.mark.parametrize("length", [4, -1, 3.5, True, "128", None])
def test_lengths_that_leave_no_room(length):
    with pytest.raises(InputError, match="max_seq_length"):
        sequences.check_length(length, 5)
