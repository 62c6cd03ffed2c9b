"""One contender of `inference.py` in a process of its own, which needs no more than the contender's packages.

It reads a line of JSON with a batch to make, runs it, and writes a line with what that took; see `serve`.

B rows, S their padded length, H hidden size.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Sizes = Mapping[str, Any]  # the keys of albert_config.json
Run = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]  # input_ids, input_mask, segment_ids [B,S] int32


@dataclasses.dataclass(frozen=True)
class Contender:
    """How a model is loaded.

    Attributes:
        load: files of ours, sizes, and threads to what answers a batch.
        packages: what has to be installed; the first one's version is told.
        file: of ours, below the folder of files; None for another library's model, with random weights.
    """

    load: Callable[[str, Sizes, int], Run]
    packages: tuple[str, ...]
    file: str | None = None


def saved_model(name: str) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        signature = tensorflow(threads).saved_model.load(os.path.join(files, name)).signatures["ids"]

        def run(ids: np.ndarray, mask: np.ndarray, segments: np.ndarray) -> Any:
            return [value.numpy() for value in signature(**_tensors(ids, mask, segments)).values()]

        return run

    return Contender(load, ("tensorflow",), name)


def tensorflow(threads: int, rewrite: bool = False) -> Any:
    """The package, set to a number of threads; with `rewrite` its products are made bfloat16 in any graph."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    if rewrite:
        tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": True})
    return tf


def _tensors(ids: np.ndarray, mask: np.ndarray, segments: np.ndarray) -> dict[str, Any]:
    import tensorflow as tf

    return {"input_ids": tf.constant(ids), "input_mask": tf.constant(mask), "segment_ids": tf.constant(segments)}


def _graph(tf: Any, call: Callable[[Any, Any, Any], Any], jit_compile: bool | None = None) -> Run:
    """A model as one traced graph of any batch; with XLA, one for each shape."""
    specs = [tf.TensorSpec([None, None], tf.int32) for _ in range(3)]
    function = tf.function(call, input_signature=specs, autograph=False, jit_compile=jit_compile)
    return lambda *arrays: tf.nest.map_structure(lambda value: value.numpy(), function(*map(tf.constant, arrays)))


def tf_transformers(rewrite: bool = False, jit_compile: bool | None = None) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        tf = tensorflow(threads, rewrite)
        import transformers

        model = transformers.TFAlbertModel(transformers.AlbertConfig(**_common(sizes)))

        def call(ids: Any, mask: Any, segments: Any) -> Any:
            outputs = model(input_ids=ids, attention_mask=mask, token_type_ids=segments, training=False)
            return outputs.last_hidden_state, outputs.pooler_output

        return _graph(tf, call, jit_compile)

    module = "transformers.models.albert.modeling_tf_albert"  # transformers 5 has it no more
    return Contender(load, ("transformers", "tensorflow", module))


def tf_models(rewrite: bool = False, jit_compile: bool | None = None) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        tf = tensorflow(threads, rewrite)
        from official.nlp.modeling import networks

        network = networks.AlbertEncoder(
            vocab_size=sizes["vocab_size"],
            embedding_width=sizes["embedding_size"],
            hidden_size=sizes["hidden_size"],
            num_layers=sizes["num_hidden_layers"],
            num_attention_heads=sizes["num_attention_heads"],
            max_sequence_length=sizes["max_position_embeddings"],
            type_vocab_size=sizes["type_vocab_size"],
            intermediate_size=sizes["intermediate_size"],
        )
        return _graph(tf, lambda *inputs: network(list(inputs), training=False), jit_compile)

    return Contender(load, ("official",))


def keras_hub(rewrite: bool = False, dtype: str = "float32") -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        os.environ["KERAS_BACKEND"] = "tensorflow"
        tf = tensorflow(threads, rewrite)
        import keras_hub as library

        backbone = library.models.AlbertBackbone(
            vocabulary_size=sizes["vocab_size"],
            num_layers=sizes["num_hidden_layers"],
            num_heads=sizes["num_attention_heads"],
            embedding_dim=sizes["embedding_size"],
            hidden_dim=sizes["hidden_size"],
            intermediate_dim=sizes["intermediate_size"],
            max_sequence_length=sizes["max_position_embeddings"],
            dtype=dtype,
        )

        def call(ids: Any, mask: Any, segments: Any) -> Any:
            outputs = backbone({"token_ids": ids, "padding_mask": mask, "segment_ids": segments}, training=False)
            return tf.nest.map_structure(lambda value: tf.cast(value, tf.float32), outputs)

        return _graph(tf, call)

    return Contender(load, ("keras_hub", "tensorflow"))


def torch_transformers(dtype: str) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        import torch
        import transformers

        torch.set_num_threads(threads)
        model = transformers.AlbertModel(transformers.AlbertConfig(**_common(sizes))).eval().to(getattr(torch, dtype))

        def run(ids: np.ndarray, mask: np.ndarray, segments: np.ndarray) -> Any:
            inputs = (torch.from_numpy(array.astype(np.int64)) for array in (ids, mask, segments))
            with torch.inference_mode():
                outputs = model(*inputs)
                return outputs.last_hidden_state.float().numpy(), outputs.pooler_output.float().numpy()

        return run

    return Contender(load, ("torch", "transformers"))


def _common(sizes: Sizes) -> dict[str, Any]:
    """What transformers calls the same."""
    names = (
        "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size embedding_size "
        "num_hidden_groups inner_group_num max_position_embeddings type_vocab_size"
    ).split()
    return {**{name: sizes[name] for name in names if name in sizes}, "hidden_act": "gelu_new"}


def onnx(name: str) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        path = os.path.join(files, name)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda *arrays: session.run(None, dict(zip(_INPUTS, arrays)))

    return Contender(load, ("onnxruntime",), name)


def openvino(name: str, precision: str) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        import openvino as library

        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": threads,
        }
        request = library.Core().compile_model(os.path.join(files, name), "CPU", settings).create_infer_request()
        return lambda *arrays: [np.array(value) for value in request.infer(dict(zip(_INPUTS, arrays))).values()]

    return Contender(load, ("openvino",), name)


def litert(name: str) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        from ai_edge_litert.interpreter import Interpreter

        runner = Interpreter(os.path.join(files, name), num_threads=threads).get_signature_runner("ids")
        return lambda *arrays: list(runner(**dict(zip(_INPUTS, arrays))).values())

    return Contender(load, ("ai_edge_litert",), name)


_INPUTS = ("input_ids", "input_mask", "segment_ids")
CONTENDERS: Mapping[str, Contender] = {
    "SavedModel float32": saved_model("saved_model_float32"),
    "SavedModel bfloat16": saved_model("saved_model_bfloat16"),
    "SavedModel float32 classifier": saved_model("classifier_float32"),
    "SavedModel bfloat16 classifier": saved_model("classifier_bfloat16"),
    "ONNX float32": onnx("onnx_float32/model.onnx"),
    "ONNX int8": onnx("onnx_int8/model.onnx"),
    "OpenVINO float32": openvino("openvino_float32/model.xml", "f32"),
    "OpenVINO bfloat16": openvino("openvino_float32/model.xml", "bf16"),
    "OpenVINO int8": openvino("openvino_int8/model.xml", "f32"),
    "LiteRT float32": litert("tflite_float32/model.tflite"),
    "LiteRT int8": litert("tflite_int8/model.tflite"),
    "transformers-TensorFlow float32": tf_transformers(),
    "transformers-TensorFlow float32 XLA": tf_transformers(jit_compile=True),
    "transformers-TensorFlow bfloat16": tf_transformers(rewrite=True),
    "tf-models float32": tf_models(),
    "tf-models bfloat16": tf_models(rewrite=True),
    "keras-hub float32": keras_hub(),
    "keras-hub bfloat16": keras_hub(rewrite=True),
    "keras-hub bfloat16 policy": keras_hub(dtype="mixed_bfloat16"),
    "transformers-torch float32": torch_transformers("float32"),
    "transformers-torch bfloat16": torch_transformers("bfloat16"),
}


def installed() -> dict[str, str]:
    """The contenders whose packages this Python has, and the version of the first of them."""
    found = {}
    for name, contender in CONTENDERS.items():
        if all(importlib.util.find_spec(package) for package in contender.packages):
            first = contender.packages[0]
            names = importlib.metadata.packages_distributions().get(first, [first])
            found[name] = f"{first} {importlib.metadata.version(names[0])}"
    return found


def serve(name: str, files: str, sizes: Sizes, threads: int) -> None:
    """Loads the contender and answers requests until there are no more.

    A request is a list of batches, each a list of the lengths of its rows; its reply has the seconds of all of them
    together, on the clock (`wall`) and of all threads (`cpu`), and the most memory so far in MiB.
    """
    run = CONTENDERS[name].load(files, sizes, threads)
    for line in sys.stdin:
        made = [_batch(lengths, sizes["vocab_size"]) for lengths in json.loads(line)]
        wall, cpu = time.perf_counter(), time.process_time()
        for arrays in made:
            run(*arrays)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"wall": wall, "cpu": cpu, "memory": memory}), file=_REPLIES, flush=True)


def _batch(lengths: list[int], vocab_size: int) -> tuple[np.ndarray, ...]:
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, np.newaxis]).astype(np.int32)
    ids = np.random.default_rng(0).integers(5, vocab_size, mask.shape).astype(np.int32)
    return ids * mask, mask, 0 * mask


if __name__ == "__main__":
    # Libraries print; what is printed goes to stderr, and the replies alone to stdout.
    _REPLIES = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if sys.argv[1] == "--installed":
        print(json.dumps(installed()), file=_REPLIES, flush=True)
    else:
        serve(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]))
