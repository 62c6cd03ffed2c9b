"""Answers as a kind of task: both heads learn and predict, inputs and losses, what questions without a window get."""

from __future__ import annotations

import dataclasses
import json
import logging

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import answer_windows, tokenization
from albert_tf.batches import Batches, bucket_lengths
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.feature_cache import cached_features
from albert_tf.files import read_json
from albert_tf.head_config import HeadConfig
from albert_tf.predicting import Predictor
from albert_tf.task_kinds import catalogue
from albert_tf.task_kinds.answers import NO_WINDOW, AnswerKind
from albert_tf.task_models import AlbertForAnswerableQuestionAnswering, AlbertForQuestionAnswering
from albert_tf.tasks.catalogue import find_task
from albert_tf.tasks.examples import AnswerPrediction, GoldAnswer, QuestionExample
from albert_tf.tasks.squad import write_answers
from tests import toy_vocabulary

HEADS = {"span": AlbertForQuestionAnswering, "answerable_span": AlbertForAnswerableQuestionAnswering}
NAMES = ["cafe", "sing", "strasse", "2019"]


def tokenizer():
    return tokenization.load_tokenizer(toy_vocabulary.wordpiece_vocabulary())


def model(head: str):
    config = AlbertConfig(
        vocab_size=tokenizer().vocab_size,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        classifier_dropout_prob=0.0,
        initializer_range=0.1,
    )
    tf.keras.utils.set_random_seed(11)
    return HEADS[head](config)


def kind(head: str, **changes) -> AnswerKind:
    return AnswerKind(HeadConfig(head), **{"max_seq_length": 24, "doc_stride": 4, "max_query_length": 4, **changes})


def questions() -> list[QuestionExample]:
    """The answer is the word behind "the"; where no "the" is, there is none."""
    examples = []
    for number, name in enumerate(NAMES * 2):
        words = ["a", "b", "a", "the" if number < 4 else "b", name, "b", "a"]
        words = words[number % 3 :] + words[: number % 3]
        context = "  " + " ".join(words)
        answers = (GoldAnswer(name.upper(), context.index(name)),) if number < 4 else ()
        context = context.replace(name, name.upper())
        examples.append(QuestionExample(str(number), "the", context, answers))
    return examples


def trained(head: str, steps: int):
    made, examples = model(head), questions()
    of_head = kind(head)
    features = of_head.features(examples, tokenizer(), training=True)
    batch = Batches(features, len(features), bucket_lengths(24)).cut(np.arange(len(features), dtype=np.int32))
    batch = {name: tf.constant(value) for name, value in batch.items()}
    variables = made.trainable_variables
    optimizer = tf.keras.optimizers.Adam(1e-2)
    losses = []

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            values = of_head.losses(made(of_head.inputs(batch, True), training=True), batch)
            loss = tf.reduce_mean(values)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    for _ in range(steps):
        losses.append(float(step()))
    return made, of_head, examples, losses


@pytest.mark.parametrize("head", HEADS)
def test_both_heads_learn_and_predict(head):
    made, of_head, examples, losses = trained(head, 60)
    assert losses[-1] < 0.2 < losses[0]
    predictions = Predictor(made, of_head, batch_size=3).predict(examples, tokenizer())
    assert [prediction.id for prediction in predictions] == [example.id for example in examples]
    for example, prediction in zip(examples[:4], predictions):
        assert prediction.text == example.answers[0].text == example.context[prediction.start : prediction.end]
    scores = of_head.scores(examples[: 4 if head == "span" else 8], predictions, ("f1", "exact_match"))
    assert scores["f1"] == scores["exact_match"] == 1.0
    if head == "span":
        assert all(prediction.null_odds is None for prediction in predictions)
    else:
        assert scores["best_f1"] == scores["f1/has_answer"] == scores["f1/no_answer"] == 1.0
        assert all((p.text == "") == (p.null_odds > 0) == e.is_impossible for e, p in zip(examples, predictions))


@pytest.mark.parametrize("head", HEADS)
def test_two_questions_train_and_predict(head, tmp_path):
    """All four modes on a file as small as can be."""
    questions = [
        {"id": "a", "question": "the?", "answers": [{"text": "CAFE", "answer_start": 6}], "is_impossible": False},
        {"id": "b", "question": "a?", "answers": [{"text": "sing", "answer_start": 11}], "is_impossible": False},
    ]
    file = tmp_path / "two.json"
    file.write_text(json.dumps({"data": [{"paragraphs": [{"context": "a the CAFE sing.", "qas": questions}]}]}))
    task = find_task("squad1.1" if head == "span" else "squad2.0")
    examples = task.read(str(file))
    of_head = catalogue.kind_of(task, max_seq_length=24, doc_stride=None, n_best_size=3)
    assert isinstance(of_head, AnswerKind) and of_head.head.kind == head
    made = model(head)
    features = of_head.features(examples, tokenizer(), training=True)
    batch = Batches(features, 4, bucket_lengths(24)).cut(np.arange(len(features), dtype=np.int32))
    losses = of_head.losses(made(of_head.inputs(batch, True), training=True), batch)
    assert losses.shape == (4,) and np.isfinite(losses).all()
    predictions = Predictor(made, of_head, batch_size=4).predict(examples, tokenizer())
    files = task.write_submission(str(tmp_path / "dev"), examples, predictions, ())
    assert [name.rsplit("/", 1)[1] for name in files] == ["predictions.json", "nbest_predictions.json"] + [
        "best_answers.json",
        "null_odds.json",
    ] * (head != "span")
    values = [read_json(name) for name in files]
    assert all(set(value) == {"a", "b"} for value in values)
    assert all(len(answers) <= 3 and {"text", "probability"} <= set(answers[0]) for answers in values[1].values())


def test_answers_are_allowed_at_the_first_position_and_in_the_context():
    features = kind("answerable_span").features(questions(), tokenizer(), training=True)
    batch = Batches(features, 9, bucket_lengths(24)).cut(np.arange(8, dtype=np.int32))
    batch = {name: tf.constant(value) for name, value in batch.items()}
    inputs = kind("answerable_span").inputs(batch, True)
    assert set(inputs) == {"input_ids", "input_mask", "segment_ids", "p_mask", "start_positions"}
    allowed = (inputs["input_ids"].numpy() != tokenizer().sep_id) & (inputs["segment_ids"].numpy() == 1)
    allowed[:8, 0] = True
    np.testing.assert_array_equal(inputs["p_mask"], 1 - allowed)
    assert "start_positions" not in kind("answerable_span").inputs(batch, False)
    assert set(kind("span").inputs(batch, True)) == {"input_ids", "input_mask", "segment_ids"}


def test_losses_from_the_definition():
    rng = np.random.default_rng(5)
    logits = {name: rng.normal(size=(2, 6)).astype(np.float32) for name in ("start_logits", "end_logits")}
    outputs = {**logits, "cls_logits": rng.normal(size=2).astype(np.float32)}
    starts, ends, impossible = [2, 0], [3, 0], np.array([0, 1])
    batch = {
        "start_positions": starts,
        "end_positions": ends,
        "is_impossible": impossible,
        "input_mask": np.ones((2, 6)),
    }
    batch = {name: tf.constant(value, tf.int32) for name, value in batch.items()}

    def cross_entropy(values, positions):
        return np.log(np.exp(values).sum(-1)) - values[[0, 1], positions]

    span = (cross_entropy(outputs["start_logits"], starts) + cross_entropy(outputs["end_logits"], ends)) / 2
    none = np.log1p(np.exp(np.where(impossible, -1, 1) * outputs["cls_logits"])) / 2
    np.testing.assert_allclose(kind("span").losses(outputs, batch), span, rtol=1e-6)
    np.testing.assert_allclose(kind("answerable_span").losses(outputs, batch), span + none, rtol=1e-6)


@pytest.mark.parametrize("head", HEADS)
def test_losses_do_not_depend_on_the_padding(head):
    made, of_head = model(head), kind(head)
    features = of_head.features(questions(), tokenizer(), training=True)
    losses = []
    for length in (24, 32, 48):
        batch = Batches(features, len(features), [length]).cut(np.arange(len(features), dtype=np.int32))
        batch = {name: tf.constant(value) for name, value in batch.items()}
        assert batch["input_ids"].shape[1] == length
        losses.append(of_head.losses(made(of_head.inputs(batch, True), training=True), batch).numpy())
    np.testing.assert_allclose(losses[1:], losses[:1] * 2, rtol=1e-5)


def beams(windows: int, cls_logits) -> dict:
    index = np.array([7, 6]), np.array([8, 7, 6, 9])
    return {
        "start_top_index": [index[0]] * windows,
        "start_top_log_probs": [np.array([-0.5, -1.0], np.float32)] * windows,
        "end_top_index": [index[1]] * windows,
        "end_top_log_probs": [np.array([-0.5, -0.25, -2.0, -1.0], np.float32)] * windows,
        "cls_logits": [np.float32(value) for value in cls_logits],
    }


def test_null_odds_are_the_least_of_the_windows():
    example = QuestionExample("q", "the", " ".join(["a", "b"] * 12), None)
    of_head = kind("answerable_span", null_threshold=1.0)
    features = of_head.features([example], tokenizer(), training=False)
    odds = [3.0, 0.75, 2.0, 5.0, 4.0][: len(features)]
    assert len(odds) == len(features) > 1
    [prediction] = of_head.predictions(beams(len(odds), odds), features, [example])
    assert prediction.null_odds == 0.75 and prediction.text != ""
    assert sum(answer["probability"] for answer in prediction.n_best) == pytest.approx(1)
    [prediction] = kind("answerable_span").predictions(beams(len(odds), odds), features, [example])
    assert (prediction.text, prediction.start, prediction.end) == ("", -1, -1)
    assert prediction.probability == pytest.approx(1 / (1 + np.exp(-0.75))) and prediction.n_best


def test_the_span_head_answers_even_where_the_question_has_the_best_scores():
    example = QuestionExample("q", "the the the", "a CAFE b", None)
    of_head = kind("span", n_best_size=2)
    features = of_head.features([example], tokenizer(), training=False)
    start_logits = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 2.5, 2.0, 1.0, 9.0])
    end_logits = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 3.0, 1.0, 0.0, 9.0])
    kept = {"start_logits": [start_logits], "end_logits": [end_logits]}
    [prediction] = of_head.predictions(kept, features, [example])
    assert [answer["text"] for answer in prediction.n_best] == ["a", "a CAFE"]


@pytest.mark.parametrize("head", HEADS)
def test_questions_without_a_window_or_an_answer_get_the_empty_one(head, tmp_path):
    examples = [
        QuestionExample("1", "the", " \n ", ()),
        QuestionExample("2", "the", "a the CAFE", (GoldAnswer("CAFE", 6),)),
        QuestionExample("3", "the", "", (GoldAnswer("CAFE", 6),)),
    ]
    of_head = kind(head, max_answer_length=1)
    features = of_head.features(examples, tokenizer(), training=False)
    assert features.example_indices.tolist() == [1]
    scores = np.zeros(int(features.sizes[0]), np.float32)
    kept = {"start_logits": [scores], "end_logits": [scores]} if head == "span" else beams(1, [-1.0])
    if head != "span":
        kept["end_top_index"] = [np.zeros(4, int)]  # no end behind its start
    predictions = of_head.predictions(kept, features, examples)
    assert [prediction.text for prediction in predictions] == ["", "a" if head == "span" else "", ""]
    assert [prediction.null_odds for prediction in predictions] == (
        [None] * 3 if head == "span" else [NO_WINDOW, -1.0, NO_WINDOW]
    )
    report = of_head.scores(examples, predictions, ("f1",))
    assert report["f1"] == (0.0 if head == "span" else 1 / 3)
    for file in write_answers(str(tmp_path / "dev"), examples, predictions, ()):
        assert set(read_json(file)) == {"1", "2", "3"}


def test_scores_of_other_languages_and_unknown_names():
    example = QuestionExample("1", "?", "東京都", (GoldAnswer("東京", 0),))
    n_best = ({"text": "東京都", "start": 0, "end": 3, "probability": 1.0},)
    prediction = AnswerPrediction("1", "東京都", 0, 3, 1.0, None, n_best)
    scores = kind("span").scores([example], [prediction], ("characters_f1", "cmrc_f1", "exact_match"))
    assert scores["characters_f1"] == scores["cmrc_f1"] == pytest.approx(0.8)
    assert list(scores)[:3] == ["characters_f1", "cmrc_f1", "exact_match"]
    assert scores["exact_match"] == scores["cmrc_exact_match"] == scores["f1"] == 0.0
    with pytest.raises(InputError, match="no metric 'accuracy'.*exact_match"):
        kind("span").scores([example], [prediction], ("accuracy",))
    with pytest.raises(InputError, match="no metric 'best_f1'"):
        kind("span").scores([example], [prediction], ("best_f1",))
    unlabelled = QuestionExample("2", "?", "東京都")
    assert kind("span").scores([example, unlabelled], [prediction] * 2, ("cmrc_f1",))["cmrc_f1"] == pytest.approx(0.8)


@pytest.mark.parametrize("head", HEADS)
def test_questions_of_one_id_count_as_in_the_official_scripts(head):
    """evaluate-v1.1 and evaluate-v2.0 in small: predictions are read by id, and v2.0 keeps the gold answers by id."""
    golds = [("1", "x"), ("2", "y"), ("1", "z"), ("3", "w")]
    said = ["y", "y", "x", "z"]
    examples = [QuestionExample(id, "?", "w x y z", (GoldAnswer(text, 0),)) for id, text in golds]
    odds = None if head == "span" else -5.0
    predictions = [
        AnswerPrediction(id, text, 0, 1, 1.0, odds, ({"text": text, "start": 0, "end": 1, "probability": 1.0},))
        for (id, _), text in zip(golds, said)
    ]
    of_id = {id: text for (id, _), text in zip(golds, said)}
    counted = golds if head == "span" else list(dict(golds).items())
    official = np.mean([of_id[id] == text for id, text in counted])
    assert kind(head).scores(examples, predictions, ("exact_match",))["exact_match"] == pytest.approx(official)


@pytest.mark.parametrize("head", HEADS)
def test_settings_make_the_same_kind_again(head):
    for made in (kind(head, null_threshold=1.5, n_best_size=7), AnswerKind(HeadConfig(head), max_seq_length=16)):
        settings = json.loads(json.dumps(dict(made.settings)))
        assert AnswerKind(made.head, **settings).settings == made.settings
    assert AnswerKind(HeadConfig(head), max_seq_length=384).settings == {
        "max_seq_length": 384,
        "doc_stride": 128,
        "max_query_length": 64,
        "n_best_size": 20,
        "max_answer_length": 30,
        "null_threshold": None,
    }


def test_the_threshold_is_tuned_where_none_was_given():
    scores = {"best_f1_threshold": -1.25, "f1": 0.5}
    tuned = catalogue.tuned(kind("answerable_span"), scores)
    assert tuned.settings == {**kind("answerable_span").settings, "null_threshold": -1.25}
    given = kind("answerable_span", null_threshold=1.0)
    assert catalogue.tuned(given, scores) is given
    assert catalogue.tuned(kind("span"), {"f1": 0.5}).settings["null_threshold"] is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_seq_length": 4}, "max_seq_length is 4"),
        ({"max_query_length": 0}, "max_query_length is 0, but must be a whole number of at least 1"),
        ({"doc_stride": 0}, "doc_stride is 0"),
        ({"n_best_size": 2.5}, "n_best_size is 2.5"),
        ({"max_answer_length": True}, "max_answer_length is True"),
    ],
)
def test_settings_out_of_range(settings, words):
    with pytest.raises(InputError, match=words):
        kind("span", **settings)


def test_a_limit_of_questions_that_leaves_no_room_is_lowered():
    assert kind("span", max_query_length=20).settings["max_query_length"] == 20
    assert kind("span", max_query_length=21).settings["max_query_length"] == 10
    features = kind("span", max_query_length=64).features(questions(), tokenizer(), training=True)
    assert features.sizes.max() <= 24 and len(features) >= 4


def test_features_are_the_same_from_a_file(tmp_path):
    made, examples = kind("span"), questions()
    first = cached_features(made, examples, tokenizer(), training=False, directory=tmp_path)
    again = cached_features(made, examples, tokenizer(), training=False, directory=tmp_path)
    for name in (answer_windows.CHARACTER_STARTS, answer_windows.IS_MAX_CONTEXT, answer_windows.ANSWER_MASK):
        np.testing.assert_array_equal(first.per_piece[name], again.per_piece[name])
    assert len(list(tmp_path.glob("*.npz"))) == 1
    cached_features(kind("span", doc_stride=2), examples, tokenizer(), training=False, directory=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 2


def test_what_decides_no_features_makes_none_anew(tmp_path):
    examples = questions()
    changes = ({}, {"null_threshold": -1.5}, {"n_best_size": 3}, {"max_answer_length": 2})
    for change in changes:
        cached_features(kind("answerable_span", **change), examples, tokenizer(), training=False, directory=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 1


def test_what_was_left_out_and_cut_is_told_again(tmp_path, caplog):
    examples = [dataclasses.replace(questions()[0], question="the " * count) for count in (9, 5, 4)] + questions()
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="absl"):
            features = cached_features(kind("span"), examples, tokenizer(), training=True, directory=tmp_path)
        assert "4 of 11 questions are left out: they have no answer" in caplog.text
        assert "2 of 7 questions have more than max_query_length 4 pieces and are cut" in caplog.text
        assert len(caplog.records) == 2 and features.cut == 2


def test_a_short_length_is_told_again(tmp_path, caplog):
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="absl"):
            made = kind("span", max_seq_length=12)
            cached_features(made, questions(), tokenizer(), training=False, directory=tmp_path)
        assert caplog.text.count("max_seq_length is 12, which leaves each text of a pair about") == 1


@pytest.mark.parametrize("head", HEADS)
def test_what_is_learned_from_is_among_what_is_answered(head):
    """`to_learn_from` picks the rows that `features` makes in training, and says so where some are left out."""
    lost = dataclasses.replace(questions()[0], id="lost", answers=(GoldAnswer("nowhere", 3),))
    examples = [questions()[0], lost, *questions()[1:]]
    of_head = kind(head)
    wanted = of_head.features(examples, tokenizer(), training=True)
    found = of_head.to_learn_from(of_head.features(examples, tokenizer(), training=False), examples)
    assert 0 < len(wanted) < len(of_head.features(examples, tokenizer(), training=False))
    for field in ("input_ids", "sizes", "first_sizes", "example_indices"):
        np.testing.assert_array_equal(getattr(found, field), getattr(wanted, field), err_msg=field)
    for values in ("per_sequence", "per_piece"):
        for name, array in getattr(wanted, values).items():
            np.testing.assert_array_equal(getattr(found, values)[name], array, err_msg=name)
    with pytest.raises(InputError, match="no answers are given"):
        unlabelled = [dataclasses.replace(example, answers=None) for example in examples]
        of_head.to_learn_from(of_head.features(unlabelled, tokenizer(), training=False), unlabelled)
