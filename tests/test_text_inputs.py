"""A tokenizer called with texts gives what a model reads, as the released run_classifier.py lays it out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from albert_tf.errors import InputError
from albert_tf.tokenization import load_tokenizer
from tests import toy_vocabulary


@pytest.fixture(params=[toy_vocabulary.alphabet_model, toy_vocabulary.wordpiece_vocabulary])
def tokenizer(request):
    return load_tokenizer(request.param())


def released(tokenizer, first: str, second: str | None, max_length: int) -> tuple[list[int], list[int]]:
    """Pieces and segments, pieces popped one by one."""
    a, b = tokenizer.encode(first), None if second is None else tokenizer.encode(second)
    if b is None:
        a = a[: max_length - 2]
    else:
        while len(a) + len(b) > max_length - 3:
            (a if len(a) > len(b) else b).pop()
    ids, segments = [tokenizer.cls_id, *a, tokenizer.sep_id], [0] * (len(a) + 2)
    if b is not None:
        ids, segments = [*ids, *b, tokenizer.sep_id], [*segments, *[1] * (len(b) + 1)]
    return ids, segments


@pytest.mark.parametrize("max_length", [5, 6, 13, 512])
@pytest.mark.parametrize("in_pairs", [False, True])
def test_rows_are_the_released_sequences(tokenizer, in_pairs, max_length):
    texts = [*toy_vocabulary.odd_strings()[:40], ""]
    pairs = texts[::-1] if in_pairs else None
    inputs = tokenizer(texts, pairs, max_length=max_length)
    wanted = [released(tokenizer, *both, max_length) for both in zip(texts, pairs or [None] * len(texts))]
    longest = max(len(ids) for ids, _ in wanted)
    assert {name: (value.shape, value.dtype) for name, value in inputs.items()} == {
        name: ((len(texts), longest), np.dtype(np.int32)) for name in ("input_ids", "input_mask", "segment_ids")
    }
    for row, (ids, segments) in enumerate(wanted):
        padding = longest - len(ids)
        assert inputs["input_ids"][row].tolist() == ids + [tokenizer.pad_id] * padding
        assert inputs["input_mask"][row].tolist() == [1] * len(ids) + [0] * padding
        assert inputs["segment_ids"][row].tolist() == segments + [0] * padding


def test_rows_are_those_of_the_original(shared):
    folder = shared / "fixtures" / "classifier_features"
    settings = json.loads((folder / "meta.json").read_text())
    tokenizer = load_tokenizer(str(shared.parent / settings["tokenizer_file"]), do_lower_case=settings["do_lower_case"])
    cases = [case for case in json.loads((folder / "cases.json").read_text()) if case["features"]["is_real_example"]]
    assert len(cases) >= 5
    length = settings["max_seq_length"]
    for case in cases:
        pairs = None if case["text_b"] is None else [case["text_b"]]
        inputs = tokenizer(case["text_a"], pairs, max_length=length, padding=length)
        for name, value in inputs.items():
            assert value.tolist() == [case["features"][name]], name


def test_padding_to_a_length(tokenizer):
    assert tokenizer("a", padding=9)["input_ids"].shape == (1, 9)
    assert tokenizer(["a", "b"], "a b".split(), padding=20)["segment_ids"].shape == (2, 20)
    assert tokenizer([])["input_ids"].shape == (0, 0)


def test_what_does_not_fit_is_refused(tokenizer):
    with pytest.raises(InputError, match="2 texts and 1 pairs"):
        tokenizer(["a", "b"], ["a"])
    with pytest.raises(InputError, match=r"texts\[1\] is None, but must be a text"):
        tokenizer(["a", None])
    with pytest.raises(InputError, match="at least the longest sequence's [34] pieces"):
        tokenizer(["a"], padding=2)
    with pytest.raises(InputError, match="padding is 'longer'"):
        tokenizer(["a"], padding="longer")
    with pytest.raises(InputError, match="padding is 9.5"):
        tokenizer(["a"], padding=9.5)
    with pytest.raises(InputError, match="max_length is 4"):
        tokenizer(["a"], max_length=4)
