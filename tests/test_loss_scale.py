"""The float16 loss scale: its course, and that an overflow leaves weights and optimizer as they were."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import optimization, training_log
from albert_tf.loss_scale import LossScale, all_finite
from tests import logical_devices


def test_scaling_and_unscaling_change_no_digit():
    scale = LossScale(2.0**13)
    gradients = [tf.random.stateless_normal([7], [1, 2]), tf.constant([[1e-30]])]
    back = scale.unscale([scale.scale(gradient) for gradient in gradients])
    for gradient, again in zip(gradients, back):
        np.testing.assert_array_equal(gradient.numpy(), again.numpy())


def test_halves_on_overflow_and_doubles_after_enough_good_steps():
    scale = LossScale(1024.0, growth_interval=3)
    course = []
    for finite in [True, True, True, True, True, False, True, True, True, False, False]:
        scale.update(tf.constant(finite))
        course.append((float(scale.value), int(scale.good_steps)))
    assert course == [
        (1024, 1),
        (1024, 2),
        (2048, 0),
        (2048, 1),
        (2048, 2),
        (1024, 0),
        (1024, 1),
        (1024, 2),
        (2048, 0),
        (1024, 0),
        (512, 0),
    ]


def test_stays_between_one_and_its_largest():
    scale = LossScale(2.0, growth_interval=1)
    for _ in range(4):
        scale.update(tf.constant(False))
    assert float(scale.value) == 1.0
    for _ in range(40):
        scale.update(tf.constant(True))
    assert float(scale.value) == 2.0**24


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_all_finite(bad):
    good = [tf.ones([3]), tf.zeros([2, 2])]
    assert bool(all_finite(good))
    assert not bool(all_finite([*good, tf.constant([0.0, bad])]))


def test_checkpoint_holds_value_and_count(tmp_path):
    scale = LossScale(8.0)
    scale.update(tf.constant(True))
    prefix = tf.train.Checkpoint(loss_scale=scale).write(str(tmp_path / "checkpoint"))
    again = LossScale()
    tf.train.Checkpoint(loss_scale=again).read(prefix).assert_consumed()
    assert (float(again.value), int(again.good_steps)) == (8.0, 1)


@pytest.mark.parametrize("bias_correction", [True, False])
@pytest.mark.parametrize("make_strategy", [lambda: tf.distribute.OneDeviceStrategy("CPU:0"), logical_devices.mirrored])
def test_an_overflow_is_skipped_on_every_replica(make_strategy, bias_correction):
    strategy = make_strategy()
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        named = {"kernel": tf.Variable([1.0, 2.0])}
        optimizer = optimization.create_optimizer("lamb", 0.1, named, bias_correction=bias_correction)
        scale = LossScale(4.0, growth_interval=2)

    def gradients_of(factor):
        with tf.GradientTape() as tape:
            loss = scale.scale(tf.reduce_sum(named["kernel"] * factor)) / replicas
        gradients = tape.gradient(loss, list(named.values()))
        summed = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        return scale.unscale(summed)

    def apply(gradients):
        optimization.apply_summed_gradients(optimizer, gradients, list(named.values()))

    @tf.function
    def step(factor):
        return scale.apply_if_finite(strategy, strategy.run(gradients_of, args=(factor,)), apply)

    states = []
    for factor in (0.5, np.inf, 0.5, 0.5):
        taken = bool(step(tf.constant(factor, tf.float32)))
        assert taken == np.isfinite(factor)
        states.append(
            (
                named["kernel"].numpy().copy(),
                optimizer.moments(named["kernel"])[1].numpy(),
                int(optimizer.iterations.numpy()),
            )
        )
    np.testing.assert_array_equal(states[0][0], states[1][0])
    np.testing.assert_array_equal(states[0][1], states[1][1])
    assert [state[2] for state in states] == [1, 1, 2, 3]
    assert (states[3][0] < states[1][0]).all()
    assert scale.value.numpy() == 4.0  # halved by the overflow, doubled after two good steps
    np.testing.assert_allclose(states[0][1], 0.001 * 0.25, rtol=1e-4)  # the gradient itself, unscaled


def test_compiles_on_one_device():
    named = {"kernel": tf.Variable([1.0, 2.0])}
    optimizer = optimization.create_optimizer("lamb", 0.1, named)
    scale = LossScale()
    strategy = tf.distribute.get_strategy()

    @tf.function(jit_compile=True)
    def step(gradient):
        return scale.apply_if_finite(
            strategy,
            [gradient],
            lambda gradients: optimization.apply_summed_gradients(optimizer, gradients, list(named.values())),
        )

    assert bool(step(tf.constant([1.0, 1.0])))
    after = named["kernel"].numpy().copy()
    assert not bool(step(tf.constant([1.0, np.nan])))
    np.testing.assert_array_equal(named["kernel"].numpy(), after)


def test_the_log_tells_it_on_several_replicas():
    with logical_devices.mirrored().scope():
        scale = LossScale(2.0**10)
    line = training_log.loss_scale_line(scale, {training_log.STEPS: 5.0, "taken": 3.0})
    assert line == {"loss_scale": 1024.0, "skipped_updates": 2.0}
