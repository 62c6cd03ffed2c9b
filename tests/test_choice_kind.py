"""Choices: sequences as released run_race makes them, differing numbers of choices, accuracy by group."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.batches import Batches, bucket_lengths
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.task_kinds.catalogue import kind_of
from albert_tf.task_kinds.choices import ChoiceKind, question_with
from albert_tf.task_models import AlbertForMultipleChoice
from albert_tf.tasks.catalogue import find_task
from albert_tf.tasks.examples import ChoiceExample
from albert_tf.tasks.recipes import find_recipe
from albert_tf.tokenization import load_tokenizer
from tests import toy_vocabulary
from tests.checkpoint_files import SIZES

HEAD = HeadConfig("multiple_choice")
PASSAGE = "the house (red) is 2,345 and [old]"


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(toy_vocabulary.number_model())


def example(number: int, choices, label=0, question="the _ is old", passage=PASSAGE, group="") -> ChoiceExample:
    return ChoiceExample(str(number), passage, question, tuple(choices), label, group, f"dev.json, question {number}")


def released_sequence(passage: str, question: str, choice: str, tokenizer, longest: int, most_qa: int) -> list[int]:
    """One choice, step by step."""
    answer = tokenizer.encode(question.replace("_", choice) if "_" in question else question + " " + choice)
    answer = answer[-most_qa:]
    context = tokenizer.encode(passage)
    while len(context) + len(answer) + 3 > longest:
        context.pop()
    return [tokenizer.cls_id, *context, tokenizer.sep_id, *answer, tokenizer.sep_id]


@pytest.mark.parametrize("longest, most_qa", [(64, 30), (40, 20), (24, 6), (16, 13), (8, 1)])
def test_sequences_as_released(tokenizer, longest, most_qa):
    questions = ["the _ is _ old", "why is that so (red) 2,345", "", "_"]
    choices = [("house", "2019, and more of the house"), ("", "the", "red " * 20), ("a", "b", "c", "d")]
    examples = [example(n, choices[n % 3], question=q) for n, q in enumerate(questions)]
    features = ChoiceKind(HEAD, max_seq_length=longest, max_qa_length=most_qa).features(
        examples, tokenizer, training=True
    )
    assert (features.choices, len(features), len(features.sizes)) == (4, 4, 16)
    starts = features.starts
    cut = 0
    for number, some in enumerate(examples):
        whole = True
        for place in range(4):
            at = number * 4 + place
            got = features.input_ids[starts[at] : starts[at] + features.sizes[at]].tolist()
            if place >= len(some.choices):
                assert got == []
                continue
            wanted = released_sequence(PASSAGE, some.question, some.choices[place], tokenizer, longest, most_qa)
            assert got == wanted
            assert features.first_sizes[at] == wanted.index(tokenizer.sep_id) + 1
            full = released_sequence(PASSAGE, some.question, some.choices[place], tokenizer, 10**6, 10**6)
            whole = whole and wanted == full
        cut += not whole
    assert features.cut == cut
    assert features.example_indices.tolist() == [n for n in range(4) for _ in range(4)]


def test_the_choice_fills_the_blank():
    assert question_with("_ is _ .", "it") == "it is it ."
    assert question_with("why", "so") == "why so"


def test_choices_that_are_not_there_get_no_probability(tokenizer):
    kind = ChoiceKind(HEAD, max_seq_length=32)
    examples = [example(0, ("a", "b"), 1), example(1, ("a", "b", "c"), 2), example(2, ("a", "b", "c"), None)]
    features = kind.features(examples, tokenizer, training=False)
    batch = next(iter(Batches(features, 4, bucket_lengths(32)).evaluation_dataset()))
    order = batch["row"].numpy()
    logits = np.array([[0.5, 1.0, 9.0], [0.1, 0.2, 0.3], [3.0, 1.0, 2.0], [0.0, 0.0, 0.0]], np.float32)[order]
    outputs = tf.Variable(logits)
    with tf.GradientTape() as tape:
        losses = kind.losses(outputs, batch)
        total = tf.reduce_sum(losses)
    by_row = dict(zip(order, losses.numpy()))
    assert by_row[0] == pytest.approx(np.log1p(np.exp(-0.5)), abs=1e-6)
    assert by_row[1] == pytest.approx(np.log(np.exp([0.1, 0.2, 0.3]).sum()) - 0.3, abs=1e-6)
    assert by_row[2] == by_row[-1] == 0
    assert tape.gradient(total, outputs).numpy()[list(order).index(0), 2] == 0

    kept = kind.kept(outputs, batch)["logits"].numpy()
    rows = [kept[list(order).index(row)] for row in range(3)]
    predictions = kind.predictions({"logits": rows}, features, examples)
    assert [(p.id, p.label, len(p.probabilities)) for p in predictions] == [("0", 1, 2), ("1", 2, 3), ("2", 0, 3)]
    np.testing.assert_allclose([p.probabilities.sum() for p in predictions], 1, atol=1e-6)


def test_the_model_gives_the_same_beside_longer_and_more_choices(tokenizer):
    sizes = {**SIZES, "vocab_size": 200, "max_position_embeddings": 32}
    model = AlbertForMultipleChoice(AlbertConfig(**sizes))
    kind = ChoiceKind(HEAD, max_seq_length=32)
    short = example(0, ("a", "b"), 1, passage="the house")

    def loss(examples):
        features = kind.features(examples, tokenizer, training=True)
        batch = Batches(features, 3, bucket_lengths(32)).cut(np.arange(len(examples)))
        return kind.losses(model(kind.inputs(batch, False)), batch).numpy()

    alone, beside = loss([short]), loss([short, example(1, ("a", "b", "c", "2,345 " * 9))])
    assert alone[0] == pytest.approx(beside[0], abs=1e-5)
    assert np.isfinite(alone).all() and np.isfinite(beside).all()


def test_accuracy_is_told_by_group(tokenizer):
    kind = ChoiceKind(HEAD, max_seq_length=32)
    groups = ("middle", "high", "high", "middle", "high")
    examples = [example(n, ("a", "b"), n % 2, group=group) for n, group in enumerate(groups)]
    examples.append(example(9, ("a", "b"), None, group="high"))
    logits = [np.array(row) for row in ([1, 0], [0, 1], [0, 1], [1, 0], [0, 1], [1, 0])]
    predictions = kind.predictions({"logits": logits}, kind.features(examples, tokenizer, training=False), examples)
    assert kind.scores(examples, predictions, ("accuracy",)) == {
        "accuracy": 0.4,
        "accuracy/high": pytest.approx(1 / 3),
        "accuracy/middle": 0.5,
    }
    ungrouped = [example(0, ("a", "b"), 0)]
    assert kind.scores(ungrouped, predictions[:1], ("accuracy",)) == {"accuracy": 1.0}


@pytest.mark.parametrize(
    "choices, label, words",
    [
        (("a",), 0, "dev.json, question 7: there must be at least 2 choices"),
        (("a", "b"), 2, "question 7: choice 2 is right, but the choices are 0 to 1"),
        (("a", "b"), None, "question 7: no choice is marked as right"),
    ],
)
def test_examples_that_cannot_be_learned(choices, label, words, tokenizer):
    with pytest.raises(InputError, match=words):
        ChoiceKind(HEAD, max_seq_length=32).features([example(7, choices, label)], tokenizer, training=True)


def test_lengths(tokenizer, caplog):
    assert ChoiceKind(HEAD, max_seq_length=512).max_qa_length == 128
    with pytest.raises(InputError, match="max_qa_length is 0, but must be at least 1"):
        ChoiceKind(HEAD, max_seq_length=32, max_qa_length=0)
    with caplog.at_level(logging.WARNING, logger="absl"):
        ChoiceKind(HEAD, max_seq_length=12).features([example(0, ("a", "b"))], tokenizer, training=True)
    assert "max_seq_length is 12" in caplog.text
    assert "1 of 1 examples (100.0 %)" in caplog.text


@pytest.mark.parametrize(("length", "most_qa", "taken"), [(32, 29, 29), (32, 30, 14), (128, 128, 62), (5, 9, 1)])
def test_a_limit_of_answers_that_leaves_no_room_is_lowered(length, most_qa, taken, tokenizer, caplog):
    with caplog.at_level(logging.WARNING, logger="absl"):
        kind = ChoiceKind(HEAD, max_seq_length=length, max_qa_length=most_qa)
    assert kind.settings == {"max_seq_length": length, "max_qa_length": taken}
    assert (f"max_qa_length {most_qa} does not fit into max_seq_length {length}" in caplog.text) == (taken < most_qa)
    examples = [example(0, ("red " * 200, "b"), passage=PASSAGE * 9)]
    features = kind.features(examples, tokenizer, training=True)
    assert features.sizes[0] == length and features.first_sizes[0] == length - taken - 1


@pytest.mark.parametrize("length", [128, 64])
def test_the_recipe_of_race_fits_shorter_sequences(length):
    recipe, task = find_recipe("race"), find_task("race")
    kind = kind_of(task, max_seq_length=length, max_qa_length=recipe.max_qa_length)
    assert kind.settings["max_qa_length"] < length
