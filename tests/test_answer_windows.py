"""Questions to windows: the released features, labels that decode to their answers, real files in four languages."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from absl import logging

from albert_tf import answer_windows, tokenization
from albert_tf.answer_windows import Window, WindowSettings
from albert_tf.errors import InputError
from albert_tf.tasks.examples import GoldAnswer, QuestionExample
from albert_tf.tasks.squad_files import locate, read_questions
from tests import toy_vocabulary

FIXTURES = ["squad_post_v1", "squad_post_v1_30k"]


@functools.cache
def load(path):
    return tokenization.load_tokenizer(path)


def rows(features):
    """Of each window its pieces and a function that cuts an array of pieces to it."""
    for start, size in zip(features.starts, features.sizes):
        yield functools.partial(lambda values, part: values[part].tolist(), part=slice(start, start + size))


@pytest.mark.parametrize("split", ["eval", "train"])
@pytest.mark.parametrize("name", FIXTURES)
def test_released_features(shared, name, split):
    folder = shared / "fixtures" / name
    meta = json.loads((folder / "meta.json").read_text())
    settings = WindowSettings(meta["max_seq_length"], meta["doc_stride"], meta["max_query_length"])
    examples = read_questions(str(folder / f"{split}.json"))
    tokenizer = load(shared.parent / meta["tokenizer_file"])
    features = answer_windows.answer_features(examples, tokenizer, settings, training=split == "train")
    released = json.loads((folder / f"{split}_features.json").read_text())
    assert len(features.sizes) == len(released) == meta["features"]
    for at, (cut, expected) in enumerate(zip(rows(features), released)):
        size, first = sum(expected["input_mask"]), int(features.first_sizes[at])
        assert cut(features.input_ids) == expected["input_ids"][:size]
        assert [int(place >= first) for place in range(size)] == expected["segment_ids"][:size]
        assert [1 - value for value in cut(features.per_piece["answer_mask"])] == expected["p_mask"][:size]
        if split == "train":
            labels = [features.per_sequence[key][at] for key in ("start_positions", "end_positions", "is_impossible")]
            assert labels == [expected["start_position"], expected["end_position"], expected["is_impossible"]]
            continue
        assert features.example_indices[at] == expected["example_index"]
        is_max = {str(place): cut(features.per_piece["is_max_context"])[place] > 0 for place in range(first, size - 1)}
        assert is_max == expected["token_is_max_context"]
        starts, ends = (cut(features.per_piece[f"character_{edge}"])[first:-1] for edge in ("starts", "ends"))
        assert starts == expected["tok_start_to_orig_index"]
        for end, released_end, piece in zip(ends, expected["tok_end_to_orig_index"], expected["tokens"][first:]):
            # The mark in front of the first word is no character; released, it is the first one.
            assert end == released_end + 1 or (piece == "▁" and (end, released_end) == (0, 0))


@pytest.mark.parametrize("pieces", [0, 1, 5, 6, 7, 20, 33])
@pytest.mark.parametrize(("room", "stride"), [(6, 2), (6, 6), (5, 99), (1, 1)])
def test_windows_hold_every_piece_and_the_best_one_has_most_context(pieces, room, stride):
    made = answer_windows.windows(pieces, room, stride)
    assert {at for first, size in made for at in range(first, first + size)} == set(range(pieces))
    assert all(size == room for _, size in made[:-1]) and (not made or sum(made[-1]) == pieces)
    assert [first for first, _ in made] == [number * min(room, stride) for number in range(len(made))]
    best = answer_windows.best_windows(pieces, made)
    for piece in range(pieces):
        scores = [
            min(piece - first, first + size - 1 - piece) + 0.01 * size if first <= piece < first + size else -1
            for first, size in made
        ]
        assert scores[best[piece]] == max(scores) and scores.index(max(scores)) == best[piece]


def test_one_window_where_the_context_fits():
    assert answer_windows.windows(6, 6, 2) == [Window(0, 6)]


REAL = {"en": "data/albert_en/30k-clean.model", "de": "data/albert_en/30k-clean.model"}
CHINESE = "data/albert_zh/vocab.txt"


@pytest.mark.parametrize(
    "name",
    [
        "train_slice-v2.0.json",
        "dev_slice-v2.0.json",
        "xquad.en.json",
        "xquad.de.json",
        "xquad.zh.json",
        "cmrc2018_trial.zh.json",
        "cmrc2018_dev_part1.zh.json",
        "jsquad_valid_part1.ja.json",
    ],
)
def test_answers_of_real_files_come_back(shared, name):
    tokenizer = load(shared / (CHINESE if name.split(".")[-2] in ("zh", "ja") else REAL["en"]))
    examples = read_questions(str(shared / "data/squad" / name))[:800]
    encode = functools.cache(tokenizer.encode_with_offsets)
    exact = total = 0
    for example in examples:
        context = encode(example.context)
        for answer in example.answers:
            span = locate(example.context, answer)
            if span is None:
                continue
            first, last = answer_windows.answer_pieces(QuestionExample("", "", example.context, (answer,)), context)
            start, end = context.starts[first], context.ends[last]
            text, gold = example.context[start:end], example.context[slice(*span)].strip()
            assert gold in text
            total += 1
            exact += text.strip() == gold
            # There are no pieces to spare: the first and the last one both hold some of the answer.
            begin = example.context.index(gold, span[0])
            assert example.context[begin : context.ends[first]].strip()
            assert example.context[context.starts[last] : begin + len(gold)].strip()
    assert exact / total > 0.99


def question(text="Where?", context="  Paris is big.", answers=(("Paris", 2),), **more):
    gold = None if answers is None else tuple(GoldAnswer(*answer) for answer in answers)
    return QuestionExample("1", text, context, gold, **more)


def features_of(examples, training=False, length=32, stride=4, query=6, vocabulary=None, **more):
    tokenizer = load(vocabulary or toy_vocabulary.alphabet_model())
    settings = WindowSettings(length, stride, query)
    return answer_windows.answer_features(examples, tokenizer, settings, training=training, **more)


def decoded(features, examples) -> list[str]:
    """The text that each window's label stands for."""
    texts = []
    for at, cut in enumerate(rows(features)):
        if features.per_sequence["is_impossible"][at]:
            assert features.per_sequence["start_positions"][at] == features.per_sequence["end_positions"][at] == 0
            texts.append("")
            continue
        start = cut(features.per_piece["character_starts"])[features.per_sequence["start_positions"][at]]
        end = cut(features.per_piece["character_ends"])[features.per_sequence["end_positions"][at]]
        texts.append(examples[features.example_indices[at]].context[start:end].strip())
    return texts


@pytest.mark.parametrize("vocabulary", [toy_vocabulary.alphabet_model, toy_vocabulary.number_model])
def test_leading_spaces_do_not_shift_the_answer(vocabulary):
    examples = [question()]
    assert set(decoded(features_of(examples, vocabulary=vocabulary()), examples)) == {"Paris"}


def test_every_window_with_the_answer_has_it_as_its_label():
    words = [f"w{number}" for number in range(30)]
    context = " ".join(words)
    examples = [question(context=context, answers=[(word, context.index(word + " "))]) for word in words[:-1]]
    features = features_of(examples)
    texts = decoded(features, examples)
    for number, word in enumerate(words[:-1]):
        here = [text for text, owner in zip(texts, features.example_indices) if owner == number]
        assert set(here) <= {word, ""} and word in here
    held = np.bincount(features.example_indices, weights=1 - features.per_sequence["is_impossible"])
    assert held.max() > 1


def test_a_korean_context_is_kept():
    context = "한국의 수도는 서울이다."
    examples = [question("수도?", context, [("서울", context.index("서울"))])]
    features = features_of(examples, vocabulary=toy_vocabulary.alphabet_model(), training=True)
    assert len(features) and not features.per_sequence["is_impossible"].all()


def test_the_first_answer_that_stands_in_the_context_is_learned():
    examples = [question(answers=[("London", 2), ("big", 99), ("Paris", 2)])]
    assert set(decoded(features_of(examples), examples)) == {"big"}


def test_what_cannot_be_learned_is_left_out_of_training(caplog):
    logging.get_absl_logger().addHandler(caplog.handler)
    examples = [question(), question(answers=[("London", 0)]), question(answers=[]), question(context=" \n")]
    assert set(features_of(examples, training=True).example_indices) == {0, 2}
    assert set(features_of(examples, training=True, with_impossible=False).example_indices) == {0}
    assert set(features_of(examples).example_indices) == {0, 1, 2}
    logging.get_absl_logger().removeHandler(caplog.handler)
    assert "2 of 4 questions are left out: no answer of theirs" in caplog.text
    assert "1 of 4 questions are left out: they have no answer" in caplog.text


def test_a_stride_longer_than_a_window_is_told():
    examples = [question("a", context=" ".join("abcdefghij" * 3), answers=[("a", 0)]), question("a", context="a b")]
    stride = "doc_stride 128 is more pieces than a window has beside 1 of the questions, and is lowered"
    (said,) = features_of(examples, stride=128).warnings
    assert said.startswith(stride)
    assert features_of(examples, stride=3).warnings == ()
    assert features_of(examples[1:], stride=128).warnings == ()


def test_answers_must_be_known_in_training():
    with pytest.raises(InputError, match=r"dev\.json: data\[0\].*no answers are given"):
        features_of([question(answers=None, place="dev.json: data[0]")], training=True)
    assert len(features_of([question(answers=None)])) > 0


def test_a_context_is_encoded_once():
    tokenizer = load(toy_vocabulary.alphabet_model())
    calls = []

    class Counting(type(tokenizer)):
        def encode_with_offsets(self, text):
            calls.append(text)
            return super().encode_with_offsets(text)

    counting = Counting(*tokenizer.__reduce__()[1])
    examples = [question(text) for text in "abc"] + [question("d", "another one")]
    answer_windows.answer_features(examples, counting, WindowSettings(32, 4, 6), training=False)
    assert sorted(calls) == sorted({example.context for example in examples})


def test_sequences_are_never_longer_than_the_limit():
    examples = [question("what " * 40, "word " * 200, []), question("", "word " * 3, [])]
    features = features_of(examples, length=24)
    assert features.sizes.max() == 24
    assert features.first_sizes.tolist() == [8] * (len(features) - 1) + [2]
    assert features.per_piece["is_max_context"].sum() == sum(
        len(load(toy_vocabulary.alphabet_model()).encode(example.context)) for example in examples
    )


def test_no_examples():
    assert len(features_of([])) == 0
    assert len(features_of([question(context="")])) == 0
