"""The encoder for inference against the Keras model: sizes, masks, heads, precisions, and what a SavedModel holds."""

from __future__ import annotations

import collections
import math
import re
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.util._pywrap_util_port import IsMklEnabled

from albert_tf.config import AlbertConfig
from albert_tf.exporting import graph_weights, saved_model
from albert_tf.exporting.inference_model import InferenceModel
from albert_tf.exporting.token_packing import TokenPacking
from albert_tf.models import AlbertModel
from tests import exported_models

LENGTH = 13
SIZES = {
    "vocab_size": 50,
    "embedding_size": 8,
    "hidden_size": 24,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 16,
}
CONFIGS = {
    "all shared": {},
    "groups and inner groups": {"num_hidden_groups": 2, "inner_group_num": 2},
    "more groups than layers": {"num_hidden_groups": 8},
    "nothing shared, exact GELU": {"parameter_sharing": "none", "hidden_act": "gelu_erf"},
    "attention shared, ReLU": {"parameter_sharing": "attention", "hidden_act": "relu"},
    "ffn shared, linear": {"parameter_sharing": "ffn", "hidden_act": "linear"},
    "no projection, large epsilon": {"embedding_size": 24, "layer_norm_eps": 0.1},
    "a projection of equal widths": {"embedding_size": 24, "embedding_projection": True, "hidden_act": "tanh"},
    "one layer": {"num_hidden_layers": 1},
}
MASK = np.array(
    [
        [1] * LENGTH,
        [1] * 5 + [0] * (LENGTH - 5),
        [0] * LENGTH,
        [0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1],
        [1] + [0] * (LENGTH - 1),
    ]
)


def encoder(sizes: dict, **arguments) -> AlbertModel:
    """With random weights and biases everywhere."""
    model = AlbertModel(AlbertConfig.from_dict({**SIZES, **sizes}), **arguments)
    random = np.random.default_rng(3)
    for name, variable in model.named_variables().items():
        variable.assign(random.normal(1.0 if name.endswith("gamma") else 0.0, 0.3, variable.shape))
    return model


def batch(mask: np.ndarray) -> dict[str, tf.Tensor]:
    random = np.random.default_rng(0)
    arrays = {
        "input_ids": random.integers(1, 40, mask.shape),
        "input_mask": mask,
        "segment_ids": random.integers(0, 2, mask.shape),
    }
    return {name: tf.constant(array, tf.int32) for name, array in arrays.items()}


def in_graph(model: InferenceModel, inputs: dict[str, tf.Tensor]):
    """In a function, where TensorFlow optimises it, as a server does."""
    return tf.function(model)(inputs)


@pytest.mark.parametrize("name", CONFIGS)
def test_vectors_are_the_models_whatever_the_sizes_and_the_mask(name):
    model = encoder(CONFIGS[name])
    graph = InferenceModel(model)
    for mask in (MASK, MASK[:1], MASK[:, :1]):
        inputs = batch(mask)
        # Scores that all lose 10,000 have lost their last digits too; the softmax is that of no mask at all.
        wanted = model(batch(np.where(mask.any(1, keepdims=True), mask, 1)))
        given = in_graph(graph, inputs)
        assert set(given) == {"sequence_output", "pooled_output"}
        np.testing.assert_allclose(given["pooled_output"], wanted["pooled_output"], atol=1e-5)
        is_piece = mask > 0
        sequence = given["sequence_output"].numpy()
        np.testing.assert_allclose(sequence[is_piece], wanted["sequence_output"].numpy()[is_piece], atol=1e-5)
        is_padding = ~is_piece & is_piece.any(1, keepdims=True) & (np.arange(mask.shape[1]) > 0)
        assert not sequence[is_padding].any()
        as_classifiers_read_it = tf.function(graph._pooled)(inputs)
        np.testing.assert_allclose(as_classifiers_read_it, wanted["pooled_output"], atol=1e-5)


def test_an_encoder_without_a_pooler():
    model = encoder({}, with_pooler=False)
    assert set(InferenceModel(model)(batch(MASK))) == {"sequence_output"}


@pytest.mark.parametrize("name", exported_models.HEADS)
def test_every_head_answers_as_in_the_model(name):
    model, _ = exported_models.make(name)
    inputs = batch(np.array([[1] * 9, [1] * 7 + [0] * 2]))
    if name == "AlbertForMultipleChoice":
        inputs = {key: tf.stack([value, value[::-1], value], axis=1) for key, value in inputs.items()}
    if "MaskedLM" in name or "PreTraining" in name:
        inputs["masked_lm_positions"] = tf.constant([[2, 4], [6, 0]])
    wanted, given = model(inputs), in_graph(InferenceModel(model), inputs)
    wanted, given = (some if isinstance(some, dict) else {"output": some} for some in (wanted, given))
    of_vectors = {"embedding_output", "projected_embedding", "all_layer_outputs"}
    assert set(given) == set(wanted) - of_vectors
    for key, value in given.items():
        assert value.shape == wanted[key].shape and value.dtype == wanted[key].dtype
        for row, size in enumerate((9, 7)):
            some = (wanted[key][row], value[row])
            if key in ("output", "sequence_output", "start_logits", "end_logits") and value.shape[1] == 9:
                some = tuple(values[:size] for values in some)
            np.testing.assert_allclose(some[1], some[0], atol=1e-5, err_msg=key)


@pytest.mark.parametrize(("precision", "rounding"), [("bfloat16", 2**-8), ("float16", 2**-11)])
def test_half_precision_rounds_and_no_more(precision, rounding):
    """The bound: sqrt(20 L / 3) roundings.

    A block rounds twenty times: input, kernel, bias and output of four dense products, scores, probabilities and what
    they weigh, and the activation. Each is off by the share `rounding` at most, by 1 / sqrt(3) of it in the mean
    square, and LayerNorm brings a block's output back to the size of its input, so that independent errors add up.
    """
    model = encoder({})
    inputs, is_piece = batch(MASK), MASK > 0
    wanted = model(inputs)["sequence_output"].numpy()[is_piece]
    given = in_graph(InferenceModel(model, precision), inputs)["sequence_output"]
    assert given.dtype == tf.float32
    errors = given.numpy()[is_piece] - wanted
    share = np.sqrt(np.square(errors).mean() / np.square(wanted).mean())
    assert 0.1 * rounding < share < math.sqrt(20 * SIZES["num_hidden_layers"] / 3) * rounding


def test_training_is_refused():
    with pytest.raises(ValueError, match="for inference"):
        InferenceModel(encoder({"num_hidden_layers": 1}))(batch(MASK), training=True)


def test_tokens_are_packed_and_spread():
    rows = np.arange(1.0, MASK.size + 1, dtype=np.float32)[:, np.newaxis] * [[1, 10]]
    packing = TokenPacking.of_mask(tf.constant(MASK))
    kept = MASK > 0
    kept[2], kept[:, 0] = True, True
    tokens = packing.pack(tf.constant(rows, tf.float32))
    np.testing.assert_array_equal(tokens, rows[kept.ravel()])
    np.testing.assert_array_equal(packing.first(tokens)[:, 0], rows[:: MASK.shape[1], 0])
    np.testing.assert_array_equal(packing.spread(tokens).numpy()[kept.ravel()], rows[kept.ravel()])
    back = packing.with_zeros(tokens).numpy()
    np.testing.assert_array_equal(back, np.where(kept[..., np.newaxis], rows.reshape(*MASK.shape, 2), 0))


def nodes(directory) -> list:
    """All nodes of the SavedModel's graph and its functions."""
    from tensorflow.core.protobuf import saved_model_pb2

    message = saved_model_pb2.SavedModel.FromString((directory / "saved_model.pb").read_bytes())
    graph = message.meta_graphs[0].graph_def
    return [*graph.node, *(node for function in graph.library.function for node in function.node_def)]


def kernels(directory) -> list[tf.DType]:
    """The types of all constants of the SavedModel that are as large as the kernel of queries, keys and values."""
    found = [node.attr["value"].tensor for node in nodes(directory) if node.op == "Const"]
    shape = [SIZES["hidden_size"], 3 * SIZES["hidden_size"]]
    return [tf.as_dtype(t.dtype) for t in found if [dim.size for dim in t.tensor_shape.dim] == shape]


def test_constants_are_in_the_directory_once(tmp_path):
    model = encoder({})
    saved_model.export_saved_model(tmp_path / "exported", model, precision="bfloat16")
    assert kernels(tmp_path / "exported") == [tf.bfloat16]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_repeated_block_is_in_the_graph_once(tmp_path, precision):
    saved_model.export_saved_model(tmp_path / "exported", encoder({"num_hidden_layers": 12}), precision=precision)
    norms = [node for node in nodes(tmp_path / "exported") if node.op == "FusedBatchNormV3"]
    assert len(norms) == 3  # of the embeddings, and two of the block


def test_blocks_of_unlike_weights_are_in_the_graph_each(tmp_path):
    model = encoder({"parameter_sharing": "none"})
    saved_model.export_saved_model(tmp_path / "exported", model, precision="bfloat16")
    assert kernels(tmp_path / "exported") == [tf.bfloat16] * 4


@pytest.mark.skipif(not IsMklEnabled(), reason="TensorFlow's oneDNN is switched off on this processor")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_session_runs_fused_operations(tmp_path, precision):
    """TensorFlow Serving asks in a session, whose graph is optimised in another way than that of a loaded function."""
    model = encoder({"hidden_size": 96, "intermediate_size": 384})
    saved_model.export_saved_model(tmp_path / "exported", model, precision=precision)
    inputs = {name: value.numpy() for name, value in batch(MASK).items()}
    ran: collections.Counter[str] = collections.Counter()
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(tmp_path / "exported")).signature_def["ids"]
        metadata = v1.RunMetadata()
        session.run(
            signature.outputs["sequence_output"].name,
            {signature.inputs[name].name: value for name, value in inputs.items()},
            options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE),
            run_metadata=metadata,
        )
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            ran.update(re.findall(r"= (\w+)\(", node.timeline_label))
    assert ran["_MklLayerNorm"] == 1 + 2 * SIZES["num_hidden_layers"], ran
    assert not [name for name in ran if "FusedBatchNorm" in name], ran  # which several requests must not run at once
    assert ran["_MklFusedBatchMatMulV2"] == SIZES["num_hidden_layers"], ran
    assert not ran["Tanh"], ran  # GELU belongs to the product before it


AT_ONCE = """
import sys, threading
import numpy as np, tensorflow as tf
v1 = tf.compat.v1
session = v1.Session(graph=tf.Graph())
with session.graph.as_default():
    signature = v1.saved_model.load(session, ["serve"], sys.argv[1]).signature_def["ids"]

def ask(number):
    shape = (1 + number % 3, 5 + number)
    values = {signature.inputs[name].name: np.ones(shape, np.int32) for name in signature.inputs}
    return session.run(signature.outputs["pooled_output"].name, values)

def ask_often(number):
    for _ in range(60):
        if not np.allclose(ask(number), alone[number], atol=1e-5):
            wrong.append(number)

alone, wrong = [ask(number) for number in range(8)], []
threads = [threading.Thread(target=ask_often, args=[number]) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(f"wrong answers to {wrong}" if wrong else 0)
"""


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_several_requests_at_once_in_a_session(tmp_path, precision):
    saved_model.export_saved_model(tmp_path / "exported", encoder({"hidden_size": 96}), precision=precision)
    command = [sys.executable, "-c", AT_ONCE, str(tmp_path / "exported")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]


def test_constants_that_are_too_large_are_variables(tmp_path, monkeypatch, caplog):
    model = encoder({})
    monkeypatch.setattr(graph_weights, "LARGEST", 1000)
    with caplog.at_level("WARNING", logger="absl"):
        saved_model.export_saved_model(tmp_path / "exported", model, precision="bfloat16")
    assert "they are variables" in caplog.text
    assert kernels(tmp_path / "exported") == []
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    assert len(loaded.trainable_variables) == len(model.named_variables())
    inputs = batch(MASK[:2])
    given, wanted = loaded.signatures["ids"](**inputs), in_graph(InferenceModel(model, "bfloat16"), inputs)
    np.testing.assert_allclose(given["pooled_output"], wanted["pooled_output"], atol=0.05)


def test_a_batch_costs_what_its_tokens_cost():
    model = encoder(
        {
            "hidden_size": 192,
            "intermediate_size": 768,
            "num_hidden_layers": 6,
            "max_position_embeddings": 512,
        }
    )
    graph = InferenceModel(model)
    ids = saved_model.ids_function(saved_model.HeadSignatures(graph.encoder_outputs, None, ()))
    padded = np.zeros([32, 128], int)
    padded[:, :4], padded[0] = 1, 1
    masks = {
        "long": np.ones([1, 400], int),
        "short": np.ones([1, 20], int),
        "full": np.ones([32, 128], int),
        "padded": padded,
    }
    inputs = {name: batch(mask) for name, mask in masks.items()}
    for one in inputs.values():
        ids(**one)
    rounds = [{name: cpu_seconds(lambda some=one: ids(**some)) for name, one in inputs.items()} for _ in range(7)]
    least = {name: min(times[name] for times in rounds) for name in masks}
    # A seventh and a quarter where this was written: the bounds leave room for the caches of another machine.
    assert least["short"] < least["long"] / 3
    assert least["padded"] < least["full"] / 2
    assert ids.experimental_get_tracing_count() == 1


def cpu_seconds(call) -> float:
    """Of all threads: what others do on the machine does not count."""
    begin = time.process_time()
    call()
    return time.process_time() - begin
