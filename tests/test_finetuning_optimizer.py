"""The optimizer for `compile`: its rate, and clipping by the norm of the whole, dense gradient."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import stack
from albert_tf.errors import InputError
from tests import logical_devices

IDS = np.array([[1, 1, 1, 1], [1, 1, 2, 1], [2, 2, 1, 1], [1, 1, 1, 1]], np.int32)  # few words, often repeated
TARGETS = np.array([[50.0], [-20.0], [30.0], [10.0]], np.float32)
LAST = ("embedding", "kernel", "bias")


class Words(tf.keras.Model):
    """The mean of word vectors, then a dense layer: the smallest model with a sparse gradient."""

    def __init__(self) -> None:
        super().__init__()
        ones = tf.keras.initializers.Ones()
        self.table = tf.keras.layers.Embedding(3, 2, embeddings_initializer=ones)
        self.dense = tf.keras.layers.Dense(1, kernel_initializer=ones)

    def call(self, ids):
        return self.dense(tf.reduce_mean(self.table(ids), axis=1))


def clipped_gradients(clip_norm: float) -> tuple[list[np.ndarray], float]:
    """Table, kernel and bias, of the mean squared error at weights of 1 and bias 0; and the norm before."""
    predictions = np.full((4, 1), 2.0)
    upstream = 2 * (predictions - TARGETS) / len(TARGETS)  # [B,1]
    table = np.zeros((3, 2))
    for row, ids in zip(upstream, IDS):
        for piece in ids:
            table[piece] += row[0] / len(ids)
    gradients = [table, np.full((2, 1), upstream.sum()), upstream.sum(0)]
    norm = np.sqrt(sum(np.square(gradient).sum() for gradient in gradients))
    return [gradient * min(1.0, clip_norm / norm) for gradient in gradients], norm


def first_moments(model) -> list[np.ndarray]:
    variables = [model.table.trainable_variables[0], *model.dense.trainable_variables]
    return [np.asarray(model.optimizer.moments(stack.native_variable(variable))[0]) for variable in variables]


def one_update(model, clip_norm: float) -> None:
    model.compile(albert_tf.finetuning_adamw(1e-3, 10, clip_norm=clip_norm), "mse")
    model.fit(IDS, TARGETS, batch_size=4, verbose=0)


@pytest.mark.parametrize("clip_norm", [1.0, 1e6])
def test_the_clipped_norm_is_that_of_the_dense_gradient(clip_norm):
    wanted, norm = clipped_gradients(clip_norm)
    assert 10.0 < norm < 1e6
    model = Words()
    one_update(model, clip_norm)
    for moment, gradient in zip(first_moments(model), wanted):
        np.testing.assert_allclose(moment, 0.1 * gradient, rtol=1e-4)


def test_two_replicas_clip_what_one_clips():
    wanted, _ = clipped_gradients(1.0)
    with logical_devices.mirrored().scope():
        model = Words()
        one_update(model, 1.0)
    for moment, gradient in zip(first_moments(model), wanted):
        np.testing.assert_allclose(moment, 0.1 * gradient, rtol=1e-4)


def test_the_rate_rises_for_a_tenth_and_falls_to_zero():
    optimizer = albert_tf.finetuning_adamw(2e-5, 100)
    schedule = tf.keras.optimizers.schedules.deserialize(
        optimizer.get_config()["learning_rate"], {"LearningRateSchedule": type(optimizer._learning_rate)}
    )
    rates = [float(schedule(step)) for step in (0, 5, 10, 55, 100)]
    np.testing.assert_allclose(rates, [0.0, 1e-5, 1.8e-5, 0.9e-5, 0.0], rtol=1e-6)


def test_the_config_makes_the_same_optimizer_again():
    optimizer = albert_tf.finetuning_adamw(2e-5, 100, warmup_steps=7, weight_decay_rate=0.02, clip_norm=0.5)
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    assert (again.global_clipnorm, again.weight_decay_rate) == (0.5, 0.02)


def test_numbers_out_of_range_are_refused():
    with pytest.raises(InputError, match="training steps must be at least 1, got 0"):
        albert_tf.finetuning_adamw(2e-5, 0)
    with pytest.raises(InputError, match="warm-up steps must be at least 0, got -1"):
        albert_tf.finetuning_adamw(2e-5, 10, warmup_steps=-1)
