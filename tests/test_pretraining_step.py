"""albert_tf.pretraining_step and evaluation: the released training steps, and no dependence on how a batch is cut."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import distribution, evaluation, losses, optimization, pretraining_step
from albert_tf.config import AlbertConfig
from albert_tf.loss_scale import LossScale
from albert_tf.models import AlbertForPreTraining
from albert_tf.pretraining_step import StepSettings
from tests import logical_devices
from tests import pretraining_records as toy

ONE = tf.distribute.get_strategy()


def config(**changes) -> AlbertConfig:
    small = {"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 32, "embedding_size": 8}
    return AlbertConfig.from_dict({**toy.CONFIG, "initializer_range": 0.1, **small, **changes})


NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class Trainer:
    """A small model with its optimizer and step function."""

    def __init__(self, settings=None, strategy=ONE, *, loss_scale=None, seed=1, **changes):
        settings = settings or StepSettings()
        with strategy.scope():
            tf.keras.utils.set_random_seed(seed)
            self.model = AlbertForPreTraining(config(**changes))
            self.weights = self.model.named_variables()
            schedule = optimization.LearningRateSchedule(0.01, 100, 0)
            self.optimizer = optimization.create_optimizer("lamb", schedule, self.weights)
        self.loss_scale = loss_scale
        self.step = pretraining_step.make_train_step(self.model, self.optimizer, strategy, settings, loss_scale)

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.array(variable) for name, variable in self.weights.items()}


def make_batch(count=8, seed=0):
    """A batch in which examples have 0 to 3 predictions, so that means of means would be wrong."""
    records = toy.examples(count, seed)
    batch = {name: np.array([record[name] for record in records], np.int32) for name in records[0]}
    batch["sentence_order_label"] = batch["sentence_order_label"][:, 0]
    weights = np.zeros((count, toy.P), np.float32)
    for row in range(count):
        weights[row, : row % (toy.P + 1)] = 1.0
    return {**{name: tf.constant(value) for name, value in batch.items()}, "masked_lm_weights": tf.constant(weights)}


def assert_near(first: dict[str, np.ndarray], second: dict[str, np.ndarray], atol: float) -> None:
    for name, value in first.items():
        # The key bias has a zero gradient by mathematics: its update is rounding noise over epsilon.
        np.testing.assert_allclose(value, second[name], atol=1e-2 if "key/bias" in name else atol, err_msg=name)


# The released steps


def test_six_released_lamb_steps(shared):
    folder = shared / "fixtures/train_steps_lamb"
    inputs, outputs = np.load(folder / "inputs.npz"), np.load(folder / "outputs.npz")
    meta = json.loads((folder / "meta.json").read_text())
    model = AlbertForPreTraining.from_pretrained(folder / "model.ckpt")
    weights = model.named_variables()
    schedule = optimization.LearningRateSchedule(
        meta["init_learning_rate"], meta["num_train_steps"], meta["num_warmup_steps"], meta["poly_power"]
    )
    optimizer = optimization.create_optimizer("lamb", schedule, weights, bias_correction=False)
    train_step = tf.function(pretraining_step.make_train_step(model, optimizer, ONE, StepSettings()))
    for step, expected in enumerate(meta["losses_before_each_step"]):
        prefix = f"step{step + 1}/"
        batch = {name[len(prefix) :]: tf.constant(inputs[name]) for name in inputs if name.startswith(prefix)}
        batch["sentence_order_label"] = batch.pop("next_sentence_labels")[:, 0]
        sums = train_step(batch, tf.constant(step))
        assert float(sums.loss) == pytest.approx(expected["total_loss"], abs=2e-5)
        metrics = losses.pretraining_metrics(sums.losses)
        assert float(metrics["masked_lm_loss"]) == pytest.approx(expected["masked_lm_loss"], abs=2e-5)
        assert float(metrics["sentence_order_loss"]) == pytest.approx(expected["sentence_order_loss"], abs=2e-5)
        assert float(sums.gradient_norm) == pytest.approx(expected["gradient_global_norm"], rel=1e-5)
        for after, atol in ((2, 2e-5), (6, 1e-4)):
            if step + 1 == after:
                for name, variable in weights.items():
                    noise = "attention_1/self/key/bias" in name
                    np.testing.assert_allclose(
                        np.array(variable),
                        outputs[f"param_after_step{after}/{name}"],
                        rtol=0,
                        atol=2e-4 if noise else atol,
                        err_msg=name,
                    )


# However the batch is cut


@pytest.mark.parametrize("micro_batches", [2, 4])
def test_accumulated_parts_give_the_update_of_the_whole_batch(micro_batches):
    whole, parts = Trainer(**NO_DROPOUT), Trainer(StepSettings(micro_batches=micro_batches), **NO_DROPOUT)
    batch = make_batch()
    expected, found = whole.step(batch, tf.constant(0)), parts.step(batch, tf.constant(0))
    assert_near(whole.arrays(), parts.arrays(), 1e-6)
    for name in ("loss", "gradient_norm", "pieces"):
        assert float(getattr(found, name)) == pytest.approx(float(getattr(expected, name)), rel=1e-5)
    np.testing.assert_allclose(np.array(found.losses), np.array(expected.losses), rtol=1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_two_replicas_give_the_update_of_one(jit_compile):
    strategy = logical_devices.mirrored()
    one = Trainer(**NO_DROPOUT)
    two = Trainer(StepSettings(micro_batches=2, jit_compile=jit_compile), strategy, **NO_DROPOUT)
    step = tf.function(two.step, autograph=False)
    for number in range(2):
        batch = make_batch(seed=number)
        halves = strategy.experimental_distribute_values_from_function(
            lambda context, batch=batch: {
                name: value[context.replica_id_in_sync_group * 4 :][:4] for name, value in batch.items()
            }
        )
        expected, found = one.step(batch, tf.constant(number)), step(halves, tf.constant(number))
        assert float(found.loss) == pytest.approx(float(expected.loss), rel=1e-5)
        assert float(found.gradient_norm) == pytest.approx(float(expected.gradient_norm), rel=1e-4)
        np.testing.assert_allclose(np.array(found.losses), np.array(expected.losses), rtol=1e-4)
        assert float(found.pieces) == 8 * 15
    assert_near(one.arrays(), two.arrays(), 2e-6)


def test_the_whole_step_compiles_with_xla_and_gives_the_same():
    plain = Trainer(StepSettings(micro_batches=2))
    compiled = Trainer(StepSettings(micro_batches=2, jit_compile=True))
    for number in range(2):
        batch = make_batch(seed=number)
        expected, found = plain.step(batch, tf.constant(number)), compiled.step(batch, tf.constant(number))
        assert float(found.loss) == pytest.approx(float(expected.loss), rel=1e-5)
        assert float(found.gradient_norm) == pytest.approx(float(expected.gradient_norm), rel=1e-4)
    assert_near(plain.arrays(), compiled.arrays(), 2e-5)
    assert "HloModule" in compiled.step.experimental_get_compiler_ir(batch, tf.constant(0))(stage="hlo")


def test_steps_give_the_same_bits_however_they_are_grouped_in_calls():
    def run(groups):
        trainer = Trainer()
        loop = pretraining_step.make_train_loop(trainer.step)
        iterator = iter(tf.data.Dataset.range(6).map(lambda step: make_all(step)))
        interval = {n: tf.constant(v, tf.float64) for n, v in pretraining_step.empty_interval().items()}
        done = 0
        for count in groups:
            interval = loop(iterator, tf.constant(done), tf.constant(count), interval)
            done += count
        return trainer.arrays(), {name: float(value) for name, value in interval.items()}

    many = [make_batch(seed=number) for number in range(6)]
    stacked = {name: tf.stack([batch[name] for batch in many]) for name in many[0]}

    def make_all(step):
        return {name: value[step] for name, value in stacked.items()}

    weights, interval = run([6])
    other_weights, other_interval = run([1, 3, 2])
    assert interval == other_interval and interval["steps"] == 6 and interval["not_finite_at"] == -1
    for name, value in weights.items():
        np.testing.assert_array_equal(value, other_weights[name])


# Dropout


def test_dropout_depends_on_seed_and_step_alone():
    batch = make_batch()

    def loss(seed, step):
        return float(Trainer(StepSettings(seed=seed)).step(batch, tf.constant(step)).loss)

    assert loss(1, 0) == loss(1, 0)
    assert len({loss(1, 0), loss(1, 1), loss(2, 0)}) == 3


def test_micro_batches_and_replicas_draw_different_dropout():
    # The same examples twice: with the same masks in both halves the sums would be exactly twice those of one half.
    half = make_batch(4)
    batch = {name: tf.concat([value, value], axis=0) for name, value in half.items()}
    once = Trainer(StepSettings(seed=3)).step(half, tf.constant(0)).losses.masked_lm_loss
    twice = Trainer(StepSettings(seed=3, micro_batches=2)).step(batch, tf.constant(0)).losses.masked_lm_loss
    assert abs(float(twice) - 2 * float(once)) > 1e-3


# Objectives and edges


def test_without_a_sentence_objective_its_head_does_not_learn():
    trainer = Trainer(StepSettings(sentence_objective=False), **NO_DROPOUT)
    batch = make_batch()
    del batch["sentence_order_label"]
    before = trainer.arrays()
    sums = trainer.step(batch, tf.constant(0))
    metrics = losses.pretraining_metrics(sums.losses)
    assert float(sums.loss) == pytest.approx(float(metrics["masked_lm_loss"]), rel=1e-6)
    after = trainer.arrays()
    name = "cls/seq_relationship/output_bias"
    np.testing.assert_array_equal(before[name], after[name])
    assert np.abs(before["cls/predictions/output_bias"] - after["cls/predictions/output_bias"]).max() > 0


def test_a_batch_without_a_masked_piece_is_fine():
    trainer = Trainer()
    batch = {**make_batch(), "masked_lm_weights": tf.zeros([8, toy.P])}
    sums = trainer.step(batch, tf.constant(0))
    assert float(sums.losses.masked_lm_loss) == 0.0 and math.isfinite(float(sums.loss))
    assert all(np.isfinite(value).all() for value in trainer.arrays().values())


def test_the_first_step_that_is_not_finite_is_remembered():
    good = pretraining_step.StepSums(losses.LossSums(*[tf.constant(1.0)] * 6), *[tf.constant(2.0)] * 4)
    bad = good._replace(loss=tf.constant(float("nan")))
    interval = pretraining_step.empty_interval()
    interval = {name: tf.constant(value, tf.float64) for name, value in interval.items()}
    for step, sums in enumerate((good, bad, good, bad)):
        interval = pretraining_step.accumulate(interval, sums, tf.constant(step))
    assert float(interval["not_finite_at"]) == 1 and float(interval["steps"]) == 4
    assert float(interval["masked_lm_weight"]) == 4 and float(interval["gradient_norm"]) == 8


def test_float16_trains_and_leaves_out_an_update_that_overflows():
    try:
        distribution.set_precision("float16")
        scale = LossScale()
        trainer = Trainer(loss_scale=scale)
    finally:
        distribution.set_precision("float32")
    step = tf.function(trainer.step, autograph=False)
    for number in range(20):
        sums = step(make_batch(seed=number), tf.constant(number))
        assert math.isfinite(float(sums.loss)) and float(sums.taken) == 1.0
    before = trainer.arrays()
    scale.value.assign(2.0**120)
    sums = step(make_batch(), tf.constant(20))
    assert float(sums.taken) == 0.0 and float(sums.gradient_norm) == 0.0 and float(scale.value) == 2.0**119
    assert math.isfinite(float(sums.loss))
    for name, value in trainer.arrays().items():
        np.testing.assert_array_equal(value, before[name])


# Evaluation


def test_evaluation_counts_padded_examples_as_nothing():
    trainer = Trainer()
    evaluation_step = pretraining_step.make_evaluation_step(trainer.model, ONE)
    whole = make_batch(10)

    def parts(size):
        for start in range(0, 10, size):
            rows = [min(row, 9) for row in range(start, start + size)]
            real = tf.constant([float(row < 10) for row in range(start, start + size)])
            part = {name: tf.gather(value, rows) for name, value in whole.items()}
            part["masked_lm_weights"] *= real[:, tf.newaxis]
            yield {**part, "example_weight": real}

    expected = evaluation.evaluate(evaluation_step, parts(10))
    assert expected["examples"] == 10 and expected["predictions"] == float(tf.reduce_sum(whole["masked_lm_weights"]))
    for size in (4, 16):
        assert evaluation.evaluate(evaluation_step, parts(size)) == pytest.approx(expected, rel=1e-5)

    outputs = trainer.model(
        {name: whole[name] for name in ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")}
    )
    logits = outputs["masked_lm_logits"].numpy().astype(np.float64)
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    weights, ids = whole["masked_lm_weights"].numpy(), whole["masked_lm_ids"].numpy()
    each = -np.take_along_axis(log_probabilities, ids[..., None], -1)[..., 0]
    assert expected["masked_lm_loss"] == pytest.approx((each * weights).sum() / weights.sum(), rel=1e-5)
    right = (logits.argmax(-1) == ids) * weights
    assert expected["masked_lm_accuracy"] == pytest.approx(right.sum() / weights.sum(), rel=1e-5)


def test_unigram_loss_is_the_cross_entropy_of_smoothed_counts():
    training, held_out = np.array([6.0, 1.0, 0.0]), np.array([2.0, 0.0, 1.0])
    expected = -(2 * math.log(7 / 10) + math.log(1 / 10)) / 3
    assert evaluation.unigram_loss(training, held_out) == pytest.approx(expected)
