"""Optimizers and the parts of an update against NumPy in float64, the released numbers and tensorflow-addons."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import optimization, stack
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.models import AlbertForPreTraining
from tests import logical_devices
from tests.optimizer_oracle import Optimizer as Oracle
from tests.optimizer_oracle import clip_by_global_norm

SHAPES = {
    "bert/embeddings/word_embeddings": (9, 4),
    "bert/embeddings/LayerNorm/gamma": (4,),
    "bert/embeddings/LayerNorm/beta": (4,),
    "bert/pooler/dense/kernel": (4, 4),
    "bert/pooler/dense/bias": (4,),
    "cls/predictions/output_bias": (9,),
    "all_zero/kernel": (3, 3),
    "no_gradient/kernel": (3, 2),
}
UNDECAYED = [name for name in SHAPES if not name.endswith(("kernel", "word_embeddings"))]
ALL = [("lamb", True), ("lamb", False), ("adamw", True), ("adamw", False)]


def initial_weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    weights = {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in SHAPES.items()}
    weights["all_zero/kernel"][:] = 0.0
    return weights


def gradients_of_step(step: int, shapes=SHAPES) -> dict[str, np.ndarray]:
    random = np.random.default_rng(100 + step)
    size = 10.0 ** random.uniform(-2, 1)
    gradients = {name: (size * random.normal(0, 1, shape)).astype(np.float32) for name, shape in shapes.items()}
    if "no_gradient/kernel" in gradients:
        gradients["no_gradient/kernel"][:] = 0.0
    return gradients


def variables_of(weights: dict[str, np.ndarray]) -> dict[str, tf.Variable]:
    # The last part alone is what a layer built by hand calls its variable.
    return {name: tf.Variable(value, name=name.split("/")[-1]) for name, value in weights.items()}


def clip_and_apply(optimizer, named, gradients) -> tf.Tensor:
    clipped, norm = optimization.clip_by_global_norm([gradients[name] for name in named])
    optimization.apply_summed_gradients(optimizer, clipped, list(named.values()))
    return norm


def assert_same(named, expected, atol: float) -> None:
    for name, variable in named.items():
        np.testing.assert_allclose(variable.numpy(), expected[name], rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("name", "bias_correction"), ALL)
def test_steps_are_those_of_the_definition(name, bias_correction, compiled):
    schedule = optimization.LearningRateSchedule(0.05, 20, 3)
    named = variables_of(initial_weights())
    optimizer = optimization.create_optimizer(name, schedule, named, bias_correction=bias_correction)
    oracle = Oracle(name, initial_weights(), UNDECAYED, bias_correction=bias_correction)
    step_function = tf.function(
        lambda gradients: clip_and_apply(optimizer, named, gradients), jit_compile=compiled or None
    )
    for step in range(10):
        gradients = gradients_of_step(step)
        step_function({key: tf.constant(value) for key, value in gradients.items()})
        oracle.step(clip_by_global_norm(gradients), float(schedule(step)))
        assert_same(named, oracle.weights, atol=2e-6)
    assert optimizer.iterations.dtype == tf.int64
    assert int(optimizer.iterations) == 10


def run_golden(arrays, meta, folder_atol: float) -> None:
    names = [variable["name"] for variable in meta["variables"]]
    named = variables_of({name: arrays[f"initial/{name}"] for name in names})
    schedule = optimization.LearningRateSchedule(
        meta["init_learning_rate"], meta["num_train_steps"], meta["num_warmup_steps"], meta["poly_power"]
    )
    optimizer = optimization.create_optimizer(
        meta["optimizer"],
        schedule,
        named,
        weight_decay=meta["weight_decay_rate"],
        beta_1=meta["beta_1"],
        beta_2=meta["beta_2"],
        epsilon=meta["epsilon"],
        bias_correction=meta["bias_correction"],
    )
    excluded = [variable["name"] for variable in meta["variables"] if variable["excluded"]]
    assert [name for name in names if optimizer.is_undecayed(named[name])] == excluded
    step_function = tf.function(lambda gradients: clip_and_apply(optimizer, named, gradients))
    for step in range(1, meta["steps"] + 1):
        rate = float(schedule(optimizer.iterations))
        assert rate == pytest.approx(meta["learning_rate_at_each_step"][step - 1], abs=1e-7)
        norm = step_function({name: tf.constant(arrays[f"step{step}/gradient/{name}"]) for name in names})
        assert float(norm) == pytest.approx(meta["raw_gradient_global_norms"][step - 1], rel=1e-5)
        if f"step{step}/param/{names[0]}" in arrays:
            assert_same(named, {name: arrays[f"step{step}/param/{name}"] for name in names}, folder_atol)
        for name in names:
            for slot, moment in zip(("adam_m", "adam_v"), optimizer.moments(named[name])):
                if f"step{step}/slot/{name}/{slot}" in arrays:
                    expected = arrays[f"step{step}/slot/{name}/{slot}"]
                    np.testing.assert_allclose(moment.numpy(), expected, rtol=1e-5, atol=1e-7, err_msg=name)


def test_released_lamb(repository):
    meta = json.loads((repository / "tests/golden/optimizer_lamb.json").read_text())
    run_golden(np.load(repository / "tests/golden/optimizer_lamb.npz"), meta, 2e-6)


def test_released_optimizers_of_all_fixtures(shared):
    folders = sorted((shared / "fixtures").glob("optimizer_*"))
    assert folders
    for folder in folders:
        run_golden(np.load(folder / "steps.npz"), json.loads((folder / "meta.json").read_text()), 2e-6)


def test_lamb_is_tensorflow_addons_lamb():
    if not stack.has_addons():
        assert stack.KERAS_3
        pytest.skip("tensorflow-addons does not exist for this stack")
    schedule = optimization.LearningRateSchedule(0.05, 20, 3)
    ours, theirs = variables_of(initial_weights()), variables_of(initial_weights())
    our_optimizer = optimization.Lamb(schedule)
    our_optimizer.leave_undecayed(ours[name] for name in UNDECAYED)
    their_optimizer = optimization.create_optimizer("lamb", schedule, theirs)
    assert type(their_optimizer).__mro__[2].__module__.startswith("tensorflow_addons")
    for step in range(10):
        gradients = {name: tf.constant(value) for name, value in gradients_of_step(step).items()}
        clip_and_apply(our_optimizer, ours, gradients)
        clip_and_apply(their_optimizer, theirs, gradients)
        assert_same(ours, {name: variable.numpy() for name, variable in theirs.items()}, atol=1e-6)


@pytest.mark.parametrize(("name", "bias_correction"), ALL)
def test_rate_zero_moves_nothing_even_with_decay(name, bias_correction):
    named = variables_of(initial_weights())
    schedule = optimization.LearningRateSchedule(0.1, 10, 5)
    optimizer = optimization.create_optimizer(name, schedule, named, bias_correction=bias_correction)
    clip_and_apply(optimizer, named, gradients_of_step(1))
    for key, value in initial_weights().items():
        np.testing.assert_array_equal(named[key].numpy(), value)


@pytest.mark.parametrize("bias_correction", [True, False])
def test_adamw_decay_is_scaled_by_the_rate(bias_correction):
    named = variables_of(initial_weights())
    schedule = optimization.LearningRateSchedule(0.1, 10**6)
    optimizer = optimization.create_optimizer("adamw", schedule, named, bias_correction=bias_correction)
    clip_and_apply(optimizer, named, {name: tf.zeros(shape) for name, shape in SHAPES.items()})
    for key, value in initial_weights().items():
        expected = value if key in UNDECAYED else value * (1 - 0.1 * 0.01)
        np.testing.assert_allclose(named[key].numpy(), expected, rtol=2e-7)


def test_defaults_are_the_names_own():
    named = variables_of(initial_weights())
    assert optimization.create_optimizer("lamb", 0.1, named).bias_correction is True
    assert optimization.create_optimizer("adamw", 0.1, named).bias_correction is False


def test_unknown_optimizer_lists_the_known():
    with pytest.raises(InputError, match="'adamx'.*lamb, adamw"):
        optimization.create_optimizer("adamx", 0.1, variables_of(initial_weights()))


@pytest.mark.parametrize(("name", "bias_correction"), ALL)
def test_exactly_the_undecayed_variables_are_excluded(name, bias_correction):
    # Names that say nothing, as those of layers built by hand: the released names alone decide.
    named = {key: tf.Variable(value, name="variable") for key, value in initial_weights().items()}
    optimizer = optimization.create_optimizer(name, 0.1, named, bias_correction=bias_correction)
    assert optimization.undecayed_names(named) == UNDECAYED
    assert [key for key in named if optimizer.is_undecayed(named[key])] == UNDECAYED


def test_undecayed_names_know_a_norm_called_otherwise():
    names = ["block/attention_ln/gamma", "block/attention_ln/beta", "alphabet/kernel", "gamma_rays/kernel"]
    assert optimization.undecayed_names(dict.fromkeys(names)) == names[:2]


def tiny_albert() -> AlbertForPreTraining:
    return AlbertForPreTraining(
        AlbertConfig(
            vocab_size=30,
            embedding_size=4,
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=16,
        )
    )


def test_undecayed_variables_of_the_model():
    named = tiny_albert().named_variables()
    undecayed = optimization.undecayed_names(named)
    assert undecayed == [name for name in named if name.split("/")[-1] in ("gamma", "beta", "bias", "output_bias")]
    assert len(undecayed) == 19
    assert len(named) == 32


def test_excluded_by_path_when_nothing_more_exact_is_said():
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, name="first"), tf.keras.layers.LayerNormalization()])
    model.build([None, 4])
    optimizer = optimization.AdamW(0.1)
    optimizer.build(model.trainable_variables)
    assert [optimizer.is_undecayed(v) for v in model.trainable_variables] == [False, True, True, True]
    assert optimization.AdamW.from_config(optimizer.get_config()).undecayed_patterns == optimizer.undecayed_patterns


def test_keras_own_exclusion_is_honoured():
    weights = [tf.Variable([1.0], name="one"), tf.Variable([1.0], name="two")]
    optimizer = optimization.AdamW(0.1)
    optimizer.exclude_from_weight_decay(var_list=[weights[1]])
    optimizer.build(weights)
    assert [optimizer.is_undecayed(v) for v in weights] == [False, True]
    with pytest.raises(ValueError, match="before"):
        optimizer.exclude_from_weight_decay(var_names=["one"])
    by_name = optimization.AdamW(0.1)
    by_name.exclude_from_weight_decay(var_names=["tw"])
    by_name.build(weights)
    assert [by_name.is_undecayed(v) for v in weights] == [False, True]


def test_patterns_given_as_one_string_are_refused():
    with pytest.raises(ValueError, match="LayerNorm"):
        optimization.AdamW(0.1, undecayed_patterns="LayerNorm")


@pytest.mark.parametrize(("name", "bias_correction"), ALL)
def test_config_round_trip(name, bias_correction):
    named = variables_of(initial_weights())
    optimizer = optimization.create_optimizer(
        name,
        optimization.LearningRateSchedule(0.1, 10, 2),
        named,
        weight_decay=0.03,
        beta_1=0.8,
        beta_2=0.95,
        epsilon=1e-4,
        bias_correction=bias_correction,
    )
    # What a saved model does with an optimizer; tensorflow-addons' puts its numbers into NumPy scalars.
    again = type(optimizer).from_config(json.loads(json.dumps(optimizer.get_config(), default=float)))
    assert json.dumps(again.get_config(), default=float) == json.dumps(optimizer.get_config(), default=float)
    others = variables_of(initial_weights())
    gradients = gradients_of_step(1)
    for _ in range(2):
        clip_and_apply(optimizer, named, gradients)
        clip_and_apply(again, others, gradients)
    assert float(again.beta_2) == pytest.approx(0.95)
    assert [key for key in others if again.is_undecayed(others[key])] == UNDECAYED
    assert_same(others, {key: variable.numpy() for key, variable in named.items()}, atol=0)


@pytest.mark.parametrize(("name", "bias_correction"), [("lamb", True), ("adamw", False)])
def test_fits_a_keras_model(name, bias_correction):
    layers = [tf.keras.layers.Embedding(10, 8), tf.keras.layers.Flatten(), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential([tf.keras.Input([3]), *layers])
    named = {f"{position}/{v.name}": v for position, v in enumerate(model.trainable_variables)}
    schedule = optimization.LearningRateSchedule(0.1, 60, 5)
    optimizer = optimization.create_optimizer(name, schedule, named, bias_correction=bias_correction)
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    inputs = np.random.default_rng(0).integers(0, 10, (32, 3))
    labels = (inputs[:, 0] > 4).astype(np.int32)
    history = model.fit(inputs, labels, epochs=50, batch_size=32, verbose=0, shuffle=False).history["loss"]
    assert history[-1] < 0.5 * history[0]
    assert int(optimizer.iterations) == 50


def test_sparse_gradients_become_dense_with_repeated_rows_summed():
    table = tf.Variable(tf.ones([5, 2]))
    unused = tf.Variable(tf.ones([3]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [1, 1, 4]) * 3.0)
    gradients = tape.gradient(loss, [table, unused])
    dense = optimization.dense_gradients(gradients, [table, unused])
    np.testing.assert_array_equal(dense[0].numpy(), [[0, 0], [6, 6], [0, 0], [0, 0], [3, 3]])
    np.testing.assert_array_equal(dense[1].numpy(), [0, 0, 0])
    _, norm = optimization.clip_by_global_norm(dense)
    assert float(norm) == pytest.approx(np.sqrt(4 * 36 / 2 + 2 * 9), rel=1e-6)


def test_clipping_leaves_the_small_and_shortens_the_large():
    gradients = [tf.constant([3.0, 0.0]), tf.constant([[4.0]])]
    clipped, norm = optimization.clip_by_global_norm(gradients)
    assert float(norm) == 5.0
    np.testing.assert_allclose(clipped[0].numpy(), [0.6, 0.0], rtol=1e-6)
    small, norm = optimization.clip_by_global_norm([g / 100.0 for g in gradients])
    np.testing.assert_allclose(small[1].numpy(), [[0.04]], rtol=1e-6)
    zero, norm = optimization.clip_by_global_norm([tf.zeros([2])])
    assert float(norm) == 0.0
    np.testing.assert_array_equal(zero[0].numpy(), [0, 0])


@pytest.mark.parametrize(("name", "bias_correction"), ALL)
def test_gradients_a_thousand_times_as_large_give_the_same_update(name, bias_correction):
    results = []
    for factor in (1.0, 1000.0):
        named = variables_of(initial_weights())
        optimizer = optimization.create_optimizer(name, 0.05, named, bias_correction=bias_correction)
        gradients = {key: factor * (value + 1.0) for key, value in gradients_of_step(1).items()}
        clip_and_apply(optimizer, named, gradients)
        results.append({key: variable.numpy() for key, variable in named.items()})
    for key in SHAPES:
        np.testing.assert_allclose(results[0][key], results[1][key], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("bias_correction", [True, False])
def test_trust_ratios_are_those_of_the_definition(bias_correction):
    named = variables_of(initial_weights())
    schedule = optimization.LearningRateSchedule(0.05, 20, 3)
    optimizer = optimization.create_optimizer("lamb", schedule, named, bias_correction=bias_correction)
    before = optimization.trust_ratios(optimizer, named)
    assert list(before) == [name for name in SHAPES if name not in UNDECAYED]
    oracle = Oracle("lamb", initial_weights(), UNDECAYED, bias_correction=bias_correction)
    for step in range(4):
        gradients = gradients_of_step(step)
        clip_and_apply(optimizer, named, gradients)
        oracle.step(clip_by_global_norm(gradients), float(schedule(step)))
    ratios = tf.function(lambda: optimization.trust_ratios(optimizer, named))()
    for name, ratio in ratios.items():
        assert float(ratio) == pytest.approx(oracle.ratio(name, oracle.update(name)), rel=1e-4), name
    adamw = optimization.create_optimizer("adamw", schedule, named)
    assert optimization.trust_ratios(adamw, named) == {}


# Runs in a process of its own: new objects, everything from the checkpoint, then three more steps.
RESUME = """
import sys
import numpy as np
from tests import test_optimization as test
name, bias_correction, by_name, prefix, output = sys.argv[1:]
named, optimizer, checkpoint = test.start(name, bias_correction == "True", by_name == "True")
checkpoint.read(prefix).assert_consumed()
np.savez(output, **test.train(named, optimizer, range(3, 6)))
"""


def start(name: str, bias_correction: bool, by_name: bool):
    named = variables_of(initial_weights())
    schedule = optimization.LearningRateSchedule(0.05, 20, 2)
    optimizer = optimization.create_optimizer(name, schedule, named, bias_correction=bias_correction)
    weights = {key.replace("/", "."): variable for key, variable in named.items()}
    if by_name:
        state = optimization.state_variables(optimizer, named)
        return named, optimizer, tf.train.Checkpoint(**weights, **{k.replace("/", "."): v for k, v in state.items()})
    return named, optimizer, tf.train.Checkpoint(optimizer=optimizer, **weights)


def train(named, optimizer, steps: range) -> dict[str, np.ndarray]:
    step_function = tf.function(lambda gradients: clip_and_apply(optimizer, named, gradients))
    for step in steps:
        step_function({name: tf.constant(value) for name, value in gradients_of_step(step).items()})
    state = {f"weights/{name}": variable for name, variable in named.items()}
    state.update(optimization.state_variables(optimizer, named))
    return {name: variable.numpy() for name, variable in state.items()}


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(("name", "bias_correction"), [("lamb", True), ("lamb", False), ("adamw", False)])
def test_resumed_steps_are_the_unbroken_ones_bit_for_bit(name, bias_correction, by_name, tmp_path):
    named, optimizer, _ = start(name, bias_correction, by_name)
    unbroken = train(named, optimizer, range(6))
    named, optimizer, checkpoint = start(name, bias_correction, by_name)
    train(named, optimizer, range(3))
    prefix = checkpoint.write(str(tmp_path / "checkpoint"))
    if by_name and name == "lamb" and bias_correction:  # once is enough: a process costs seconds
        output = tmp_path / "resumed.npz"
        arguments = [name, str(bias_correction), str(by_name), prefix, str(output)]
        root = pathlib.Path(__file__).resolve().parent.parent
        subprocess.run([sys.executable, "-c", RESUME, *arguments], check=True, cwd=root, capture_output=True)
        resumed = dict(np.load(output))
    else:
        named, optimizer, checkpoint = start(name, bias_correction, by_name)
        checkpoint.read(prefix).assert_consumed()
        resumed = train(named, optimizer, range(3, 6))
    assert resumed.keys() == unbroken.keys()
    assert unbroken["iterations"] == 6
    for key, value in unbroken.items():
        np.testing.assert_array_equal(resumed[key], value, err_msg=key)


@pytest.mark.parametrize(("name", "bias_correction"), [("lamb", True), ("lamb", False), ("adamw", False)])
def test_summed_gradients_are_not_summed_again_on_two_replicas(name, bias_correction):
    def run(strategy: tf.distribute.Strategy) -> dict[str, np.ndarray]:
        with strategy.scope():
            named = variables_of(initial_weights())
            schedule = optimization.LearningRateSchedule(0.05, 20, 3)
            optimizer = optimization.create_optimizer(name, schedule, named, bias_correction=bias_correction)

        def replica_step(gradients) -> None:
            context = tf.distribute.get_replica_context()
            share = [gradients[key] / context.num_replicas_in_sync for key in named]
            summed = context.all_reduce(tf.distribute.ReduceOp.SUM, share)
            clipped, _ = optimization.clip_by_global_norm(summed)
            optimization.apply_summed_gradients(optimizer, clipped, list(named.values()))

        step_function = tf.function(lambda gradients: strategy.run(replica_step, args=(gradients,)))
        for step in range(5):
            step_function({key: tf.constant(value) for key, value in gradients_of_step(step).items()})
        state = {**named, **optimization.state_variables(optimizer, named)}
        for variable in state.values():
            copies = strategy.experimental_local_results(variable)
            for copy in copies[1:]:
                np.testing.assert_array_equal(copy.numpy(), copies[0].numpy())
        return {key: variable.numpy() for key, variable in state.items()}

    two = run(logical_devices.mirrored())
    one = run(tf.distribute.OneDeviceStrategy("CPU:0"))
    assert one["iterations"] == two["iterations"] == 5
    for key in one:
        np.testing.assert_allclose(two[key], one[key], rtol=1e-7, atol=1e-12, err_msg=key)
