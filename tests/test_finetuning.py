"""The step of fine-tuning, predictions and what logs say: one update, and one prediction, however a batch is cut."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import (
    finetuning,
    finetuning_data,
    finetuning_flags,
    finetuning_history,
    finetuning_predictions,
    finetuning_report,
    finetuning_run,
    finetuning_seeds,
    finetuning_step,
    job_flags,
    optimization,
    run_finetuning,
    training_log,
)
from albert_tf.batches import Batches
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.finetuning_data import Split
from albert_tf.finetuning_source import Source, make_model
from albert_tf.finetuning_state import Settings
from albert_tf.finetuning_step import StepSettings
from albert_tf.formats.checkpoint import Checkpoint
from albert_tf.head_config import HeadConfig
from albert_tf.predicting import Predictor
from albert_tf.task_kinds.catalogue import kind_from_settings
from albert_tf.task_model import model_class
from albert_tf.tasks.catalogue import find_task
from albert_tf.tasks.examples import ChoiceExample, TagExample, TextExample, TextPrediction
from albert_tf.tasks.text_file import text_file_task
from albert_tf.training_step import distribute
from tests import logical_devices, own_flags
from tests import toy_tasks as toy

ONE = tf.distribute.get_strategy()
LENGTHS = (16, 24, 32)
NO_DROPOUT = {"classifier_dropout_prob": 0.0}


def features(sizes: list[int], seed: int = 0, classes: int = 2) -> FeatureSet:
    """Rows of these sizes, random pieces and labels."""
    draw, count = np.random.default_rng(seed), len(sizes)
    return FeatureSet(
        draw.integers(5, 100, sum(sizes)).astype(np.int32),
        np.array(sizes, np.int32),
        np.array(sizes, np.int32),
        np.arange(count, dtype=np.int32),
        {"label_ids": draw.integers(0, classes, count).astype(np.int32)},
    )


class Trainer:
    """A tiny classifier with its optimizer and step function."""

    def __init__(self, strategy=ONE, settings=None, *, head=None, signature=None, rate=0.01, **changes):
        self.head = head or HeadConfig("classifier", 2)
        self.kind = kind_from_settings(self.head, {"max_seq_length": 32})
        self.strategy = strategy
        with strategy.scope():
            tf.keras.utils.set_random_seed(1)
            self.model = model_class(self.head)(AlbertConfig.from_dict({**toy.CONFIG, **changes}), self.head)
            self.weights = self.model.named_variables()
            schedule = optimization.LearningRateSchedule(rate, 100, 0)
            self.optimizer = optimization.create_optimizer("adamw", schedule, self.weights)
        self.train_step = finetuning_step.make_train_step(
            self.model, self.kind, self.optimizer, strategy, settings or StepSettings(), signature=signature
        )

    def step(self, batch, number=0) -> dict[str, float]:
        interval = training_log.to_tensors(finetuning_step.empty_interval())
        interval = self.train_step(distribute(self.strategy, batch), tf.constant(number), interval)
        return {name: float(value) for name, value in interval.items()}

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.array(variable) for name, variable in self.weights.items()}


def cut(sizes: list[int], batch_size: int = 8):
    return Batches(features(sizes), batch_size, LENGTHS).cut(np.arange(len(sizes), dtype=np.int32))


def assert_near(first: dict[str, np.ndarray], second: dict[str, np.ndarray], atol: float) -> None:
    for name, value in first.items():
        # The key bias has a zero gradient by mathematics: its update is rounding noise over epsilon.
        np.testing.assert_allclose(value, second[name], atol=3e-2 if "key/bias" in name else atol, err_msg=name)


def mean_loss(trainer: Trainer, batch) -> float:
    """From the definition: cross entropy of each real row, their mean."""
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    logits = np.array(trainer.model(inputs), np.float64)
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    real = batch["example_weight"] > 0
    return float(-log_probabilities[np.arange(len(real)), batch["label_ids"]][real].mean())


# The step


def test_the_loss_is_the_mean_over_the_real_rows():
    trainer, batch = Trainer(**NO_DROPOUT), cut([5, 12, 9, 16, 7])
    expected = mean_loss(trainer, batch)
    numbers = trainer.step(batch)
    assert numbers["loss"] == pytest.approx(expected, rel=1e-5)
    assert (numbers["rows"], numbers["pieces"], numbers["steps"], numbers["taken"]) == (5, 49, 1, 1)


def test_rows_that_fill_a_batch_change_nothing():
    few, many = Trainer(**NO_DROPOUT), Trainer(**NO_DROPOUT)
    few.step(cut([5, 12, 9], 3))
    many.step(cut([5, 12, 9], 8))
    assert_near(few.arrays(), many.arrays(), 2e-6)


@pytest.mark.parametrize("count", [5, 8])
def test_two_replicas_and_parts_give_the_update_of_one(count):
    batch = cut([5, 12, 9, 16, 7, 3, 11, 4][:count])
    one, two = Trainer(**NO_DROPOUT), Trainer(logical_devices.mirrored(), **NO_DROPOUT)
    parts = Trainer(settings=StepSettings(micro_batches=4), signature=None, **NO_DROPOUT)
    for number in range(2):
        expected = one.step(batch, number)
        for other in (two, parts):
            assert other.step(batch, number) == pytest.approx(expected, rel=1e-4)
    assert_near(one.arrays(), two.arrays(), 2e-5)
    assert_near(one.arrays(), parts.arrays(), 2e-5)


def test_one_trace_serves_all_lengths_and_parts():
    signature = Batches(features([9] * 8), 8, LENGTHS).signature()
    trainer = Trainer(settings=StepSettings(micro_batches=2), signature=signature)
    for length in (10, 20, 30, 16):
        assert math.isfinite(trainer.step(cut([length] * 8))["loss"])
    assert trainer.train_step.experimental_get_tracing_count() == 1


def test_dropout_depends_on_seed_and_step_alone():
    batch = cut([9] * 8)

    trainers = {
        seed: Trainer(settings=StepSettings(seed=seed), rate=0.0, classifier_dropout_prob=0.5) for seed in (1, 2)
    }
    first, again, next_step = (trainers[1].step(batch, number)["loss"] for number in (0, 0, 1))
    assert first == again
    assert len({first, next_step, trainers[2].step(batch, 0)["loss"]}) == 3


def test_xla_gives_the_same():
    plain, compiled = Trainer(), Trainer(settings=StepSettings(jit_compile=True, one_pass=False))
    batch = cut([9] * 8)
    assert compiled.step(batch) == pytest.approx(plain.step(batch), rel=1e-4)
    assert_near(plain.arrays(), compiled.arrays(), 2e-5)


# Predictions


@pytest.mark.parametrize("kind", ["classifier", "tagger"])
def test_outputs_come_in_the_order_of_the_rows_without_padding(kind):
    sizes = [5, 30, 12, 16, 7, 3, 22]
    trainer = Trainer(head=HeadConfig(kind, 16))  # as many labels as the shortest length has pieces
    some = features(sizes)
    expected = Predictor(trainer.model, trainer.kind, batch_size=7).outputs(some)
    for strategy, size in ((ONE, 2), (logical_devices.mirrored(), 4)):
        with strategy.scope():
            other = Trainer(strategy, head=HeadConfig(kind, 16))
        found = Predictor(other.model, other.kind, strategy, batch_size=size).outputs(some)
        for row, length in enumerate(sizes):
            assert expected["logits"][row].shape == ((16,) if kind == "classifier" else (length, 16))
            np.testing.assert_allclose(found["logits"][row], expected["logits"][row], atol=1e-5)


def test_a_static_predictor_pads_to_one_length():
    trainer = Trainer()
    some = features([5, 30, 12])
    plain, static = (Predictor(trainer.model, trainer.kind, batch_size=2, static=value) for value in (False, True))
    assert static.lengths == (32,)
    for ours, theirs in zip(plain.outputs(some)["logits"], static.outputs(some)["logits"]):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


# What logs say


def lines(*losses: float, every: int = 5) -> list[dict[str, float]]:
    return [{"step": (at + 1) * every, "steps": every, "loss": loss} for at, loss in enumerate(losses)]


def test_the_best_line_is_the_first_of_the_best():
    x, error = ["x"], ["mean_squared_error"]
    scores = [{"step": step, "x": value, "mean_squared_error": value} for step, value in ((1, 0.2), (2, 0.5), (3, 0.5))]
    assert finetuning_history.best_line(scores, x)["step"] == 2
    assert finetuning_history.best_line(scores, error)["step"] == 1
    assert finetuning_history.evaluations_since_best(scores, "x") == 1
    assert finetuning_history.evaluations_since_best(scores, "mean_squared_error") == 2
    assert finetuning_history.best_line([{"step": 1, "x": math.nan}], x) is None
    assert finetuning_history.evaluations_since_best([{"step": 1, "x": math.nan}], "x") == 1


@pytest.mark.parametrize(
    ("values", "step", "decided_by", "clause"),
    [
        ([(0.8, 0.9, 1.0), (0.9, 0.1, 9.0)], 2, "accuracy", ""),
        ([(0.9, 0.8, 1.0), (0.9, 0.85, 9.0), (0.7, 0.9, 0.0)], 2, "f1", ", the best by f1 of those with an equal acc"),
        ([(0.9, 0.8, 3.0), (0.9, 0.8, 2.0)], 2, "mean_squared_error", ", the best by mean_squared_error of those"),
        ([(0.9, math.nan, 1.0), (0.9, 0.1, 2.0)], 2, "f1", ", the best by f1 of those"),
        ([(0.7, 0.7, 1.0), (0.9, 0.8, 1.0), (0.9, 0.8, 1.0)], 2, "the first", ", the first of those with an equal acc"),
        ([(math.nan, 0.8, 1.0), (0.1, 0.7, 1.0)], 2, "accuracy", ""),
        ([(math.nan, 0.8, 1.0)], None, None, ""),
    ],
)
def test_equal_scores_are_told_apart_by_the_tasks_next_ones(capsys, tmp_path, values, step, decided_by, clause):
    metrics = ("accuracy", "f1", "mean_squared_error")
    evaluations = [{"step": at, **dict(zip(metrics, of))} for at, of in enumerate(values, 1)]
    assert (finetuning_history.best_line(evaluations, metrics) or {"step": None})["step"] == step
    assert finetuning_history.decided_by(evaluations, metrics) == decided_by
    report = {"early_stop": False, "best_step": step, "settings": {"num_train_steps": 9}, "metric": "accuracy"}
    report.update(decided_by=decided_by, collapsed_attempts=[], collapsed=False, scores={})
    finetuning_report.print_end(str(tmp_path), report)
    assert re.search(
        f"the model is that of step {step} of 9{clause}" + ("" if clause else "\n"), capsys.readouterr().out
    )


def test_an_equal_first_score_does_not_put_off_an_early_stop():
    evaluations = [{"step": 1, "x": 0.5, "y": 0.1}, {"step": 2, "x": 0.5, "y": 0.2}]
    assert finetuning_history.best_line(evaluations, ["x", "y"])["step"] == 2
    assert finetuning_history.evaluations_since_best(evaluations, "x") == 1


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([0.70, 0.69, 0.70, 0.69, 0.70], False),  # 25 of 100 steps, of which 10 are warm-up
        ([0.70, 0.69, 0.70, 0.69, 0.70, 0.69], True),
        ([0.70, 0.69, 0.70, 0.69, 0.60, 0.50], False),
        ([0.70, 0.50, 0.40, 0.69, 0.70, 0.69, 0.71], True),  # a collapse after a beginning
        ([0.10] * 8, False),
        ([9.0] * 8, True),
    ],
)
def test_a_loss_that_stays_at_a_guess_is_a_collapse(losses, expected):
    guess = math.log(2)
    assert finetuning_history.has_collapsed(lines(*losses), guess, steps=100, warmup_steps=10) is expected


def test_a_short_training_and_a_kind_without_a_guess_do_not_collapse():
    assert not finetuning_history.has_collapsed(lines(0.7), 0.69, steps=20, warmup_steps=2)
    assert not finetuning_history.has_collapsed(lines(*[9.0] * 9), None, steps=20, warmup_steps=2)
    assert not finetuning_history.has_collapsed([], 0.69, steps=20, warmup_steps=2)


@pytest.mark.parametrize(
    ("loss", "problem", "expected"),
    [
        (0.70, None, r"the loss \(0.7000, .*\) is no better than that of a guess .* \(0.6931\).* helps: a smaller"),
        (0.69, "regression", r"no better than .* helps: labels rescaled to about 0 to 5, more steps, a smaller"),
        (11.8, "regression", r"the loss \(11.8000, .*\) is worse than that of a guess .* \(0.6931\)"),
    ],
)
def test_the_warning_tells_how_the_loss_compares_with_a_guess(loss, problem, expected):
    settings = Settings(1e-5, num_train_steps=50, num_warmup_steps=0, train_batch_size=8, eval_every=50)
    sentence = finetuning.collapse_sentence(lines(99.0, loss, loss), math.log(2), settings, problem)
    assert re.search(expected, sentence), sentence


def test_a_new_head_for_numbers_of_ones_own_begins_at_their_mean():
    head, config = HeadConfig("classifier", 1), AlbertConfig.from_dict(toy.CONFIG)
    some = features([4] * 4)
    some.per_sequence["label_ids"] = np.array([90, 100, 110, 120], np.float32)
    own = text_file_task(problem="regression")
    assert finetuning_run.first_answer(own, some) == 105.0
    assert finetuning_run.first_answer(find_task("sts-b"), some) is None
    assert finetuning_run.first_answer(text_file_task(), some) is None

    def bias(source: Source, first_answer: float | None) -> float:
        return float(make_model(source, head, config, first_answer=first_answer).classifier.output_bias[0])

    new = make_model(Source(config, None), head, config)
    weights = {name: np.array(variable) for name, variable in new.named_variables().items()}
    weights["output_bias"] += 7
    checkpoint = Checkpoint("m", "portable", weights, config, head, head_is_told=True)
    assert bias(Source(config, None), 105.0) == 105.0 and bias(Source(config, None), None) == 0.0
    assert bias(Source(config, None, checkpoint), 105.0) == 7.0
    other = checkpoint.replace(head=HeadConfig("classifier", 1, ("a",)))
    assert bias(Source(config, None, other), 105.0) == 105.0


def test_the_loss_of_a_guess_is_that_of_the_labels_alone():
    balanced, skewed = features([4] * 4), features([4] * 4)
    balanced.per_sequence["label_ids"][:] = [0, 1, 2, 3]
    skewed.per_sequence["label_ids"][:] = [0, 0, 0, 1]
    four = HeadConfig("classifier", 4)
    assert finetuning_history.guess_loss(four, balanced) == pytest.approx(math.log(4))
    assert finetuning_history.guess_loss(four, skewed) == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert finetuning_history.guess_loss(HeadConfig("classifier", 1), balanced) == pytest.approx(1.25)  # the variance
    several = HeadConfig("classifier", 2, (), "multi_label_classification")
    skewed.per_sequence["label_ids"] = np.array([[1, 0], [0, 0]], np.float32)
    assert finetuning_history.guess_loss(several, skewed) == pytest.approx(math.log(2) / 2)
    choices = FeatureSet(np.zeros(12, np.int32), np.array([4, 4, 4, 0]), np.zeros(4), np.array([0, 0, 1, 1]), choices=2)
    assert finetuning_history.guess_loss(HeadConfig("multiple_choice"), choices) == pytest.approx(math.log(2) / 2)
    tags = dataclasses.replace(features([4]), per_piece={"tag_ids": np.array([-1, 0, 1, -1])})
    assert finetuning_history.guess_loss(HeadConfig("tagger", 2), tags) == pytest.approx(math.log(2))
    spans = {"start_positions": [0, 0, 5, 6], "end_positions": [0, 0, 6, 6], "is_impossible": [1, 1, 0, 0]}
    windows = dataclasses.replace(features([8] * 4), per_sequence={n: np.array(v) for n, v in spans.items()})
    of_answers = 0.5 * (0.5 * math.log(2) + 0.5 * math.log(4)) + 0.5 * math.log(2)
    assert finetuning_history.guess_loss(HeadConfig("span"), windows) == pytest.approx(of_answers)
    expected = of_answers + 0.5 * math.log(2)
    assert finetuning_history.guess_loss(HeadConfig("answerable_span"), windows) == pytest.approx(expected)


# Flags


@pytest.mark.parametrize("name", ["squad1.1", "cmrc2018", "jsquad"])
def test_a_threshold_of_no_answer_is_refused_where_there_always_is_one(monkeypatch, name):
    values = own_flags.parsed(finetuning_flags, null_score_threshold=-1.5)
    own_flags.use(monkeypatch, finetuning_flags, job_flags, values=values)
    assert job_flags.settings_by_flags(find_task("squad2.0")) == {"null_threshold": -1.5}
    with pytest.raises(InputError, match="--null_score_threshold have no effect on .* max_answer_length$"):
        job_flags.settings_by_flags(find_task(name))
    of_a_model = kind_from_settings(HeadConfig("span"), {"max_seq_length": 32, "null_threshold": None})
    assert kind_from_settings(HeadConfig("span"), of_a_model.settings).settings == of_a_model.settings


# A model that was fine-tuned elsewhere


class Answers:
    """In place of a `Predictor`: always the same answers."""

    def __init__(self, *answers: TextPrediction):
        self.answers = answers

    def of_features(self, features, examples):
        return self.answers


def test_files_of_a_head_without_names_have_a_column_for_each_label(tmp_path):
    kind = kind_from_settings(HeadConfig("classifier", 2), {"max_seq_length": 32})
    split = Split("dev", "dev.tsv", [TextExample("0", "a fine film", label="1")], 1)
    answers = Answers(TextPrediction("0", "1", np.array([0.125, 0.875])))
    data = [finetuning_run.Data(split, features([4]))]
    scores, files = finetuning_run.evaluate(find_task("sst-2"), kind, answers, data, str(tmp_path))
    assert scores["dev"]["accuracy"] == 1.0
    table, page = (pathlib.Path(path).read_text(encoding="utf-8") for path in files["dev"][1:])
    assert table == "id\tprediction\t0\t1\n0\t1\t0.125000\t0.875000\n"
    assert "probability of the gold one</span> 0.875" in page and "0.125" in page


def test_predictions_of_other_examples_are_called_by_their_file(tmp_path):
    output = str(tmp_path)
    (tmp_path / "predictions").mkdir()
    examples = [TextExample("0", "a fine film", label="1")]
    finetuning_predictions.note(output, Split("dev", "dev.tsv", examples, 1), {"accuracy": 1.0})

    def name(split: str, path: str, text: str = "a dull film") -> str:
        split = Split(split, path, [TextExample("0", text, label="1")], 1)
        return finetuning_predictions.name_beside(output, split)

    assert name("dev", "moved/elsewhere.tsv", "a fine film") == "dev"  # the same examples
    assert name("test", "new.tsv") == "test"  # nothing is there to be lost
    assert name("dev", "more/new.v2.tsv.gz") == "dev-new.v2"
    assert name("dev", "RACE/high/") == "dev-high"
    assert name("dev", "dev.tsv") == "dev-dev"  # a file that was changed


def test_a_head_without_names_is_for_tasks_whose_labels_are_numbers():
    nameless = HeadConfig("classifier", 2)
    run_finetuning.check_model("m", nameless, {}, find_task("sst-2"))
    run_finetuning.check_model("m", HeadConfig("classifier", labels=find_task("rte").labels), {}, find_task("rte"))
    with pytest.raises(InputError, match="m has no names for its 2 labels, and those of RTE are entailment, not_ent"):
        run_finetuning.check_model("m", nameless, {}, find_task("rte"))
    with pytest.raises(InputError, match="m has the labels 0, 1, 2, and those of SST-2 are 0, 1: give a model of this"):
        run_finetuning.check_model("m", HeadConfig("classifier", 3), {}, find_task("sst-2"))


# Several seeds


def test_predictions_of_a_seed_leave_those_of_other_files_and_what_is_told_of_them(tmp_path):
    seed, output = str(tmp_path / "seed-1"), str(tmp_path)
    examples = [TextExample("0", "a fine film", label="1")]
    for directory, name, score in ((output, "dev", 0.1), (output, "dev-new", 0.2), (seed, "dev", 0.3)):
        (pathlib.Path(directory) / "predictions").mkdir(parents=True, exist_ok=True)
        (pathlib.Path(directory) / f"predictions/{name}.tsv").write_text(str(score))
        finetuning_predictions.note(directory, Split(name, f"{name}.tsv", examples, 1), {"accuracy": score})
    finetuning_seeds.copy_predictions(seed, output)
    told = finetuning_predictions.read(output)
    assert {name: about["scores"]["accuracy"] for name, about in told.items()} == {"dev": 0.3, "dev-new": 0.2}
    for name, about in told.items():
        assert (tmp_path / f"predictions/{name}.tsv").read_text() == str(about["scores"]["accuracy"])


def test_the_best_seed_has_the_best_score():
    reports = {seed: {"scores": {"dev": {"x": x}}} for seed, x in ((1, 0.5), (2, 0.7), (3, 0.7))}
    assert finetuning_seeds.best_seed(reports, "dev", ["x"]) == 2
    assert finetuning_seeds.best_seed(reports, None, ["x"]) == 1
    for seed, y in ((1, 0.9), (2, 0.1), (3, 0.2)):
        reports[seed]["scores"]["dev"]["y"] = y
    assert finetuning_seeds.best_seed(reports, "dev", ["x", "y"]) == 3
    reports = {seed: {"scores": {"dev": {"x": x}}} for seed, x in ((1, math.nan), (2, 0.1), (3, math.nan), (4, 0.2))}
    assert finetuning_seeds.best_seed(reports, "dev", ["x"]) == 4
    assert finetuning_seeds.best_seed({1: reports[1], 3: reports[3]}, "dev", ["x"]) == 1


def test_a_score_that_some_seeds_lack_is_summed_up_over_the_others():
    """The F1 of a type of entities that a seed alone predicts is there for that seed alone."""
    runs = [{"dev": {"entity_f1": 0.5}}, {"dev": {"entity_f1": 0.75, "entity_f1/LOC": 0.25}}, {"dev": {"entity_f1": 1}}]
    found = finetuning_seeds.summary(runs)["dev"]
    assert found["entity_f1"] == {"seeds": 3, "median": 0.75, "mean": 0.75, "std": 0.25, "min": 0.5, "max": 1.0}
    assert found["entity_f1/LOC"] == {"seeds": 1, "median": 0.25, "mean": 0.25, "std": 0.0, "min": 0.25, "max": 0.25}
    table = [line.split() for line in finetuning_report.summary_table({"dev": found})]
    assert table[0][-2:] == ["max", "seeds"] and table[1][-2:] == ["100.00", "3"] and table[2][-2:] == ["25.00", "1"]


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        ("accuracy", "91.23"),
        ("entity_f1/total", "91.23"),
        ("entity_f1/the_threshold", "91.23"),
        ("cmrc_f1", "91.23"),
        ("mean_squared_error", "0.9123"),
        ("best_f1_threshold", "0.9123"),
        ("characters_best_exact_match_threshold", "0.9123"),
    ],
)
def test_fractions_are_shown_as_percents_and_nothing_else(metric, shown):
    assert finetuning_report.shown(metric, 0.91234) == shown


# Splits


def test_a_file_of_a_flag_takes_the_place_of_all_splits_of_its_kind(tmp_path):
    toy.write_task(tmp_path / "task", 4, 4, 4)
    other = toy.write_tsv(tmp_path / "other.tsv", toy.texts(2, 1), ("text", "label"))
    task, none = text_file_task(), {"train": None, "dev": None, "test": None}
    directory = str(tmp_path / "task")
    found = finetuning_data.find_paths(task, directory, none)
    assert {name: path[len(directory) + 1 :] for name, path in found.items()} == {
        name: f"{name}.tsv" for name in ("train", "dev", "test")
    }
    assert finetuning_data.find_paths(task, directory, {**none, "dev": other})["dev"] == other
    assert finetuning_data.find_paths(task, None, {**none, "train": other}) == {"train": other}
    with pytest.raises(InputError, match="--data_dir is missing"):
        finetuning_data.check_needed(task, None, {"train": other}, ["train", "dev"])


def test_some_examples_are_drawn_in_the_order_of_the_file(tmp_path):
    path = toy.write_tsv(tmp_path / "train.tsv", toy.texts(50, 1), ("text", "label"))
    one, two = (finetuning_data.read_split(text_file_task(), "train", path, most=9, seed=seed) for seed in (1, 2))
    ids = [int(example.id) for example in one.examples]
    assert len(ids) == 9 and ids == sorted(ids) and one.in_file == 50
    assert ids != [int(example.id) for example in two.examples]
    with pytest.raises(InputError, match="one example"):
        finetuning_data.read_split(text_file_task(), "train", toy.write_tsv(tmp_path / "x.tsv", [], ("text", "label")))


def test_labels_of_a_file_to_predict_that_are_none_are_left_out(tmp_path, caplog):
    """As in the files of GLUE's tests that Hugging Face exports."""
    path = tmp_path / "test.csv"

    def read(content: str, name: str = "test_own") -> Split:
        path.write_text(content)
        found = finetuning_data.read_split(text_file_task(), name, str(path))
        return finetuning_data.without_placeholders(found, ("0", "1"))

    with caplog.at_level("WARNING", logger="absl"):
        split = read("text,label\na film,-1\na book,-1\n")
    assert [(example.text_a, example.label) for example in split.examples] == [("a film", None), ("a book", None)]
    assert not finetuning_data.has_labels(split.examples)
    assert "no row has a label of the model (0, 1), the first has '-1': they are taken for unknown" in caplog.text
    assert [example.label for example in read("text,label\na film,1\na book,0\n").examples] == ["1", "0"]
    assert read("text,label\na film,-1\n", "dev").examples[0].label == "-1"
    with pytest.raises(
        InputError, match=r"line 3: the label is '-1', and the model has 0, 1: a file to predict \(--test"
    ):
        read("text,label\na film,1\na book,-1\n")


def test_tags_of_a_file_to_predict_that_are_none_are_left_out():
    sentences = [TagExample("0", ("a", "b"), ("_", "_"), "x", ("x, line 1", "x, line 2"))]
    tags = ("O", "B-X")
    assert finetuning_data.without_placeholders(Split("test", "x", sentences, 1), tags).examples[0].tags is None
    some = [*sentences, TagExample("1", ("c",), ("O",), "x", ("x, line 4",))]
    with pytest.raises(InputError, match="x, line 1: the label is '_'"):
        finetuning_data.without_placeholders(Split("test", "x", some, 2), tags)
    questions = Split("test", "x", [ChoiceExample("0", "", "?", ("a", "b"), 1)], 1)
    assert finetuning_data.without_placeholders(questions, ()) is questions
