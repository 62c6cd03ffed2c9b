"""The learning rate against the released numbers and the formula."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.schedules import LearningRateSchedule


def rates(schedule: LearningRateSchedule, steps: range) -> np.ndarray:
    return np.array([float(schedule(tf.constant(step, tf.int64))) for step in steps])


def test_released_rates(repository):
    golden = json.loads((repository / "tests/golden/optimizer_lamb.json").read_text())
    schedule = LearningRateSchedule(
        golden["init_learning_rate"], golden["num_train_steps"], golden["num_warmup_steps"], golden["poly_power"]
    )
    expected = golden["learning_rate_at_each_step"]
    np.testing.assert_array_equal(rates(schedule, range(len(expected))), expected)


def test_decay_from_the_end_of_the_warmup_starts_at_the_peak():
    schedule = LearningRateSchedule(0.5, 20, warmup_steps=4, power=2.0, decay_start="warmup_end")
    expected = [0.5 * k / 4 if k < 4 else 0.5 * (1 - (k - 4) / 16) ** 2 for k in range(20)]
    np.testing.assert_allclose(rates(schedule, range(20)), expected, rtol=1e-6)


@pytest.mark.parametrize("decay_start", ["zero", "warmup_end"])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("warmup", [0, 1, 9, 10, 15])
def test_always_finite_and_zero_from_the_last_step_on(warmup, power, decay_start):
    values = rates(LearningRateSchedule(0.1, 10, warmup, power, decay_start), range(30))
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert (values <= np.float32(0.1)).all()
    assert (values[10:] == 0).all()
    if warmup == 0:
        assert values[0] == np.float32(0.1)
    else:
        assert values[0] == 0
        assert values[min(warmup, 10) - 1] > 0 or warmup == 1


def test_a_rate_inside_a_compiled_function_is_the_same():
    schedule = LearningRateSchedule(0.00176, 125000, 3125)
    compiled = tf.function(schedule, jit_compile=True)
    for step in (0, 1, 3124, 3125, 60000, 124999, 125000):
        assert float(compiled(tf.constant(step, tf.int64))) == pytest.approx(float(schedule(step)), rel=1e-6)


def test_config_round_trip():
    schedule = LearningRateSchedule(0.1, 10, 3, 2.0, "warmup_end")
    again = tf.keras.optimizers.schedules.deserialize(tf.keras.optimizers.schedules.serialize(schedule))
    assert again.get_config() == schedule.get_config()
    np.testing.assert_array_equal(rates(again, range(12)), rates(schedule, range(12)))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"peak": -1.0}, "-1.0"),
        ({"peak": float("nan")}, "nan"),
        ({"total_steps": 0}, "got 0"),
        ({"warmup_steps": -2}, "-2"),
        ({"power": -0.5}, "-0.5"),
        ({"decay_start": "middle"}, "zero, warmup_end"),
    ],
)
def test_refuses_what_makes_no_schedule(arguments, told):
    with pytest.raises(InputError, match=told):
        LearningRateSchedule(**{"peak": 0.1, "total_steps": 10, **arguments})
