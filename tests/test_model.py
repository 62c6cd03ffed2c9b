"""The network against recorded numbers of the released code, and against NumPy for every way of sharing."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import fused, weight_names
from albert_tf.config import AlbertConfig
from albert_tf.layers import LayerNorm, dropout, gelu
from albert_tf.models import AlbertForPreTraining, AlbertModel
from tests import oracle

GOLDEN = pathlib.Path(__file__).parent / "golden"
SMALL = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "embedding_size": 8,
    "max_position_embeddings": 16,
}


@pytest.fixture(autouse=True)
def _float32_policy():
    yield
    tf.keras.mixed_precision.set_global_policy("float32")


def random_inputs(config: AlbertConfig, batch: int = 3, length: int = 12, predictions: int = 4, seed: int = 0):
    random = np.random.default_rng(seed)
    lengths = random.integers(predictions, length + 1, batch)
    mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
    return {
        "input_ids": random.integers(0, config.vocab_size, (batch, length), dtype=np.int32),
        "input_mask": mask,
        "segment_ids": random.integers(0, config.type_vocab_size, (batch, length), dtype=np.int32),
        "masked_lm_positions": random.integers(0, length, (batch, predictions), dtype=np.int32),
    }


def randomise(model, seed: int = 1) -> dict[str, np.ndarray]:
    """Gives every variable values of its own, biases and norms too, and returns them by released name."""
    random = np.random.default_rng(seed)
    weights = {}
    for name, variable in model.named_variables().items():
        weights[name] = random.normal(1.0 if name.endswith("gamma") else 0.0, 0.2, variable.shape).astype(np.float32)
        variable.assign(weights[name])
    return weights


def compare(outputs: dict, expected: dict) -> None:
    for key in ("embedding_output", "projected_embedding", "sequence_output", "pooled_output", "sentence_order_logits"):
        np.testing.assert_allclose(outputs[key], expected[key], atol=2e-5, rtol=1e-5, err_msg=key)
    np.testing.assert_allclose(outputs["masked_lm_logits"], expected["masked_lm_logits"], atol=5e-5)
    assert len(outputs["all_layer_outputs"]) == len(expected["all_layer_outputs"])
    for ours, theirs in zip(outputs["all_layer_outputs"], expected["all_layer_outputs"]):
        np.testing.assert_allclose(ours, theirs, atol=2e-5, rtol=1e-5)


def released_outputs(outputs: dict[str, np.ndarray], vocab_size: int, batch: int) -> dict:
    """The recorded arrays under our names."""
    layers = sorted(key for key in outputs if key.startswith("encoder_layer_"))
    projected = outputs.get("embedding_hidden_mapping_in_output", outputs["embedding_output"])
    return {
        "embedding_output": outputs["embedding_output"],
        "projected_embedding": projected,
        "all_layer_outputs": [outputs[key] for key in layers],
        "sequence_output": outputs[layers[-1]],
        "pooled_output": outputs["pooled_output"],
        "masked_lm_logits": outputs["masked_lm_logits"].reshape(batch, -1, vocab_size),
        "sentence_order_logits": outputs["sentence_order_logits"],
    }


def test_recorded_numbers_of_the_released_code():
    golden = np.load(GOLDEN / "model_groups.npz")
    config = AlbertConfig.from_json_file(GOLDEN / "model_groups.json")
    model = AlbertForPreTraining(config)
    variables = model.named_variables()
    recorded = {name[len("weight/") :]: golden[name] for name in golden.files if name.startswith("weight/")}
    assert set(recorded) == set(variables)
    for name, value in recorded.items():
        variables[name].assign(value)
    inputs = {name[len("input/") :]: golden[name] for name in golden.files if name.startswith("input/")}
    outputs = {name[len("output/") :]: golden[name] for name in golden.files if name.startswith("output/")}
    expected = released_outputs(outputs, config.vocab_size, len(inputs["input_ids"]))
    compare(model(inputs), expected)


def test_every_model_fixture(shared):
    folders = sorted((shared / "fixtures").glob("model_*"))
    assert folders
    for folder in folders:
        config = AlbertConfig.from_json_file(folder / "config.json")
        model = AlbertForPreTraining.from_pretrained(folder / "model.ckpt")
        assert model.config == config and not model.load_report.missing and not model.load_report.unused
        inputs, outputs = dict(np.load(folder / "inputs.npz")), dict(np.load(folder / "outputs.npz"))
        compare(model(inputs), released_outputs(outputs, config.vocab_size, len(inputs["input_ids"])))


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
@pytest.mark.parametrize("embedding_size, groups, inner", [(8, 1, 1), (24, 1, 1), (8, 2, 1), (8, 1, 2), (24, 2, 2)])
def test_every_way_of_sharing_against_numpy(sharing, embedding_size, groups, inner):
    if sharing == "none":
        groups = 1
    config = AlbertConfig.from_dict(
        {
            **SMALL,
            "embedding_size": embedding_size,
            "num_hidden_groups": groups,
            "inner_group_num": inner,
            "parameter_sharing": sharing,
        }
    )
    model = AlbertForPreTraining(config)
    weights = randomise(model)
    assert {name: value.shape for name, value in weights.items()} == weight_names.variable_shapes(config)
    assert sum(value.size for value in weights.values()) == model.count_params() == config.parameter_count(heads=True)
    inputs = random_inputs(config)
    compare(model(inputs), oracle.forward(config, weights, inputs))


def test_named_variables_are_all_variables_once_and_each_gets_a_gradient():
    model = AlbertForPreTraining(AlbertConfig(**SMALL))
    variables = model.named_variables()
    assert {id(v) for v in variables.values()} == {id(v) for v in model.trainable_variables}
    assert len({id(v) for v in variables.values()}) == len(variables)
    randomise(model)
    with tf.GradientTape() as tape:
        outputs = model(random_inputs(model.config))
        loss = tf.reduce_sum(tf.square(outputs["masked_lm_logits"])) + tf.reduce_sum(outputs["sentence_order_logits"])
    for name, gradient in zip(variables, tape.gradient(loss, list(variables.values()))):
        assert gradient is not None, name
        if not name.endswith("self/key/bias"):  # the softmax does not see a shift of all scores
            assert float(tf.reduce_max(tf.abs(tf.convert_to_tensor(gradient)))) > 0, name


def test_initial_values():
    tf.keras.utils.set_random_seed(5)
    config = AlbertConfig.from_dict({**SMALL, "vocab_size": 2000, "hidden_size": 96, "embedding_size": 64})
    first = AlbertForPreTraining(config).named_variables()
    tf.keras.utils.set_random_seed(5)
    again = AlbertForPreTraining(config).named_variables()
    kernels = []
    for name, variable in first.items():
        value = np.asarray(variable)
        np.testing.assert_array_equal(value, np.asarray(again[name]))
        if name.endswith("gamma"):
            assert (value == 1).all()
        elif "bias" in name or name.endswith("beta"):
            assert (value == 0).all()
        else:
            assert np.abs(value).max() <= 0.0400001
            kernels.append(value.ravel())
    assert abs(np.concatenate(kernels).std() - 0.0176) < 0.0005  # 0.02 before the cut at two standard deviations
    assert len({kernel[:8].tobytes() for kernel in kernels}) == len(kernels)


def test_masked_lm_is_tied_to_the_word_embeddings():
    config = AlbertConfig(**SMALL)
    model = AlbertForPreTraining(config)
    tables = [name for name, v in model.named_variables().items() if config.vocab_size in v.shape and len(v.shape) > 1]
    assert tables == ["bert/embeddings/word_embeddings"]
    inputs = random_inputs(config)
    inputs["input_ids"] = np.where(inputs["input_ids"] == 7, 8, inputs["input_ids"])
    table = model.named_variables()[tables[0]]
    randomise(model)
    before = model(inputs)["masked_lm_logits"].numpy()
    value = np.array(table)
    value[7] += 1.0
    table.assign(value)
    changed = np.abs(model(inputs)["masked_lm_logits"].numpy() - before).max(axis=(0, 1))
    assert changed[7] > 1e-3 and np.delete(changed, 7).max() == 0


def test_defaults_of_the_inputs_and_logits_for_all_positions():
    model = AlbertForPreTraining(AlbertConfig(**SMALL))
    ids = random_inputs(model.config)["input_ids"]
    bare = model({"input_ids": ids})
    full = model({"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)})
    assert bare["masked_lm_logits"].shape == (3, 12, 50)
    np.testing.assert_array_equal(bare["masked_lm_logits"], full["masked_lm_logits"])


def test_padding_does_not_move_real_positions():
    model = AlbertModel(AlbertConfig.from_dict({**SMALL, "max_position_embeddings": 128}))
    ids = np.arange(5, 15, dtype=np.int32)[None]
    outputs = []
    for length in (16, 128):
        padding = [(0, 0), (0, length - 10)]
        outputs.append(model({"input_ids": np.pad(ids, padding), "input_mask": np.pad(np.ones_like(ids), padding)}))
    short, long = outputs
    np.testing.assert_allclose(short["sequence_output"][:, :10], long["sequence_output"][:, :10], atol=1e-5)
    np.testing.assert_allclose(short["pooled_output"], long["pooled_output"], atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_is_finite_and_logits_are_float32(policy):
    tf.keras.mixed_precision.set_global_policy(policy)
    model = AlbertForPreTraining(AlbertConfig(**SMALL))
    weights = randomise(model)
    inputs = random_inputs(model.config)
    exact = oracle.forward(model.config, weights, inputs)
    outputs = model(inputs)
    assert outputs["masked_lm_logits"].dtype == outputs["sentence_order_logits"].dtype == tf.float32
    np.testing.assert_allclose(outputs["sequence_output"], exact["sequence_output"], atol=0.15)
    inputs["input_mask"] = np.zeros_like(inputs["input_mask"])
    assert all(np.isfinite(value).all() for value in tf.nest.flatten(model(inputs)))
    assert all("float32" in str(variable.dtype) for variable in model.trainable_variables)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_layer_norm_keeps_the_released_epsilon(policy):
    tf.keras.mixed_precision.set_global_policy(policy)
    np.testing.assert_allclose(LayerNorm(1e-12)(tf.constant([[0.0, 2e-6]])), [[-0.70711, 0.70711]], atol=1e-5)


def test_gelu_is_the_tanh_form(shared):
    recorded = np.load(shared / "fixtures" / "gelu" / "gelu.npz")
    np.testing.assert_allclose(gelu(tf.constant(recorded["x"])), recorded["y"], atol=1e-6)


def test_gelu_against_numpy():
    x = np.linspace(-8, 8, 2001).astype(np.float32)
    np.testing.assert_allclose(gelu(tf.constant(x)), oracle.gelu_tanh(x.astype(np.float64)), atol=2e-6)


def seeded(model, inputs, seed):
    return model(inputs, training=True, dropout_seed=tf.constant([seed, 3]))["sequence_output"].numpy()


@pytest.mark.parametrize("rate", ["hidden_dropout_prob", "attention_probs_dropout_prob"])
def test_each_dropout_rate_acts_alone_and_the_seed_decides(rate):
    model = AlbertForPreTraining(AlbertConfig.from_dict({**SMALL, rate: 0.9}))
    inputs = random_inputs(model.config)
    randomise(model)
    first, same, other = (seeded(model, inputs, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert np.abs(first - other).max() > 1e-3
    unseeded = [model(inputs, training=True)["sequence_output"].numpy() for _ in range(2)]
    assert np.abs(unseeded[0] - unseeded[1]).max() > 1e-3
    np.testing.assert_array_equal(model(inputs)["sequence_output"], model(inputs, training=False)["sequence_output"])


def test_without_dropout_training_changes_nothing():
    model = AlbertForPreTraining(AlbertConfig(**SMALL))
    inputs = random_inputs(model.config)
    np.testing.assert_array_equal(model(inputs, training=True)["masked_lm_logits"], model(inputs)["masked_lm_logits"])


def test_dropout_keeps_the_share_and_the_mean():
    kept = dropout(tf.ones([200, 1000]), 0.1, tf.constant([1, 2])).numpy()
    assert abs((kept == 0).mean() - 0.1) < 0.003
    assert abs(kept.mean() - 1) < 0.003


@pytest.mark.parametrize(("rate", "activation"), [(0.1, "gelu"), (0.0, "relu")])
def test_one_pass_and_xla_give_the_same_outputs_dropout_and_gradients(rate, activation):
    model = AlbertForPreTraining(
        AlbertConfig.from_dict(
            {
                **SMALL,
                "hidden_act": activation,
                "hidden_dropout_prob": rate,
                "attention_probs_dropout_prob": rate,
            }
        )
    )
    randomise(model)
    inputs = {key: tf.constant(value) for key, value in random_inputs(model.config).items()}
    variables = model.named_variables()

    def run():
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True, dropout_seed=tf.constant([1, 2]))
            loss = tf.reduce_mean(tf.square(outputs["masked_lm_logits"])) + outputs["sentence_order_logits"][0, 1]
        gradients = tape.gradient(loss, list(variables.values()))
        return outputs["masked_lm_logits"], [tf.convert_to_tensor(gradient) for gradient in gradients]

    def run_in_one_pass():
        with fused.one_pass():
            return run()

    expected_logits, expected_gradients = run()
    for form in (tf.function(run_in_one_pass), tf.function(run, jit_compile=True)):
        logits, gradients = form()
        np.testing.assert_allclose(logits, expected_logits, atol=2e-5)
        for name, gradient, expected in zip(variables, gradients, expected_gradients):
            np.testing.assert_allclose(gradient, expected, atol=2e-5, rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_one_pass_in_half_precision(policy):
    tf.keras.mixed_precision.set_global_policy(policy)
    model = AlbertForPreTraining(AlbertConfig(**SMALL))
    randomise(model)
    inputs = random_inputs(model.config)
    plain = model(inputs)["sequence_output"]
    with fused.one_pass():
        np.testing.assert_allclose(model(inputs)["sequence_output"], plain, atol=0.1)


def test_a_sequence_longer_than_the_positions_is_refused_with_both_numbers():
    model = AlbertModel(AlbertConfig.from_dict({**SMALL, "max_position_embeddings": 512}))
    with pytest.raises(ValueError, match="513 pieces.*512 positions"):
        model({"input_ids": np.ones((1, 513), np.int32)})


def test_an_id_outside_the_vocabulary_is_refused():
    model = AlbertModel(AlbertConfig(**SMALL))
    with pytest.raises(tf.errors.InvalidArgumentError, match="50"):
        model({"input_ids": np.full((1, 4), 50, np.int32)})


def test_inside_a_functional_model_and_fit():
    albert = AlbertModel(AlbertConfig.from_dict({**SMALL, "hidden_dropout_prob": 0.1}))
    ids = tf.keras.Input((None,), dtype="int32", name="input_ids")
    output = tf.keras.layers.Dense(1)(albert({"input_ids": ids})["pooled_output"])
    model = tf.keras.Model(ids, output)
    model.compile("sgd", "mse")
    before = np.array(albert.named_variables()["bert/pooler/dense/kernel"])
    model.fit(random_inputs(albert.config)["input_ids"], np.ones((3, 1)), verbose=0)
    assert np.abs(np.array(albert.named_variables()["bert/pooler/dense/kernel"]) - before).max() > 0


def test_keras_file_round_trip(tmp_path):
    config = AlbertConfig.from_dict({**SMALL, "parameter_sharing": "attention"})
    model = AlbertForPreTraining(config)
    randomise(model)
    inputs = random_inputs(config)
    expected = model(inputs)["masked_lm_logits"]
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert loaded.config == config
    np.testing.assert_array_equal(loaded(inputs)["masked_lm_logits"], expected)
