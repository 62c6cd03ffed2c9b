"""One contender of `inference.py` in a process of its own, which needs no more than the contender's packages.

It reads a line of JSON with a batch to make, runs it, and writes a line with what that took; see `serve`.

B rows, S their padded length, R packed rows, L their length.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Sizes = Mapping[str, Any]  # the keys of albert_config.json
Inputs = dict[str, np.ndarray]
Run = Callable[[Inputs], Any]  # input_ids, input_mask, segment_ids [B,S] int32, or what packed files take


@dataclasses.dataclass(frozen=True)
class Contender:
    """How a model is loaded.

    Attributes:
        load: files of ours, sizes, and threads to what answers a batch.
        packages: what has to be installed; the first one's version is told.
        file: of ours, below the folder of files; None for another library's model, with random weights.
        packed: R and L where several sentences share a row, as `albert_tf.packing` lays them; None for padded batches.
    """

    load: Callable[[str, Sizes, int], Run]
    packages: tuple[str, ...]
    file: str | None = None
    packed: tuple[int, int] | None = None


def saved_model(name: str) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        signature = tensorflow(threads).saved_model.load(os.path.join(files, name)).signatures["ids"]

        def run(inputs: Inputs) -> Any:
            return [value.numpy() for value in signature(**_tensors(inputs)).values()]

        return run

    return Contender(load, ("tensorflow",), name)


def tensorflow(threads: int, rewrite: bool = False) -> Any:
    """The package, set to a number of threads; with `rewrite` its products are made bfloat16 in any graph."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    if rewrite:
        tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": True})
    return tf


def _tensors(inputs: Inputs) -> dict[str, Any]:
    import tensorflow as tf

    return {name: tf.constant(array) for name, array in inputs.items()}


def _graph(tf: Any, call: Callable[[Any, Any, Any], Any], jit_compile: bool | None = None) -> Run:
    """A model as one traced graph of any batch; with XLA, one for each shape."""
    specs = [tf.TensorSpec([None, None], tf.int32) for _ in range(3)]
    function = tf.function(call, input_signature=specs, autograph=False, jit_compile=jit_compile)
    return lambda inputs: tf.nest.map_structure(
        lambda value: value.numpy(), function(*(tf.constant(inputs[name]) for name in _INPUTS))
    )


def tf_transformers(rewrite: bool = False, jit_compile: bool | None = None) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
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
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
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

        def run(inputs: Inputs) -> Any:
            tensors = (torch.from_numpy(inputs[name].astype(np.int64)) for name in _INPUTS)
            with torch.inference_mode():
                outputs = model(*tensors)
                return outputs.last_hidden_state.float().numpy(), outputs.pooler_output.float().numpy()

        return run

    return Contender(load, ("torch", "transformers"))


def openvino_transformers(precision: str) -> Contender:
    """What transformers has, made OpenVINO's; the first answer waits for that, too."""

    def load(files: str, sizes: Sizes, threads: int) -> Run:
        import openvino as library
        import torch
        import transformers

        config = transformers.AlbertConfig(**_common(sizes), attn_implementation="sdpa")
        example = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in _INPUTS)
        model = library.convert_model(transformers.AlbertModel(config).eval(), example_input=example)
        compiled = library.Core().compile_model(model, "CPU", _openvino_settings(precision, threads))
        request = compiled.create_infer_request()

        def run(inputs: Inputs) -> Any:
            found = request.infer([inputs[name].astype(np.int64) for name in _INPUTS])
            return [np.array(value) for value in found.values()]

        return run

    return Contender(load, ("openvino", "torch", "transformers"))


def _openvino_settings(precision: str, threads: int) -> dict[str, Any]:
    return {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
    }


def _common(sizes: Sizes) -> dict[str, Any]:
    """What transformers calls the same."""
    names = (
        "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size embedding_size "
        "num_hidden_groups inner_group_num max_position_embeddings type_vocab_size"
    ).split()
    return {**{name: sizes[name] for name in names if name in sizes}, "hidden_act": "gelu_new"}


def onnx(name: str, packed: tuple[int, int] | None = None) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        path = os.path.join(files, name)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda inputs: session.run(None, inputs)

    return Contender(load, ("onnxruntime", *_packages(packed)), name, packed)


def openvino(name: str, precision: str, packed: tuple[int, int] | None = None) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        import openvino as library

        settings = _openvino_settings(precision, threads)
        core = library.Core()
        model = core.read_model(os.path.join(files, name))

        @functools.cache
        def request(sizes: tuple[tuple[str, tuple[int, ...]], ...] = ()) -> Any:
            if sizes:
                model.reshape({name: list(shape) for name, shape in sizes})
            return core.compile_model(model, "CPU", settings).create_infer_request()

        def run(inputs: Inputs) -> Any:
            shapes = tuple((name, array.shape) for name, array in inputs.items()) if packed else ()
            return [np.array(value) for value in request(shapes).infer(inputs).values()]

        return run

    return Contender(load, ("openvino", *_packages(packed)), name, packed)


def litert(name: str) -> Contender:
    def load(files: str, sizes: Sizes, threads: int) -> Run:
        from ai_edge_litert.interpreter import Interpreter

        runner = Interpreter(os.path.join(files, name), num_threads=threads).get_signature_runner("ids")
        return lambda inputs: list(runner(**inputs).values())

    return Contender(load, ("ai_edge_litert",), name)


def _packages(packed: tuple[int, int] | None) -> tuple[str, ...]:
    return ("albert_tf",) if packed else ()  # with the packer


AWAKE = 0.5  # seconds; a process whose turn it was not has lost its place in caches and page tables
_INPUTS = ("input_ids", "input_mask", "segment_ids")
CONTENDERS: Mapping[str, Contender] = {
    "SavedModel float32": saved_model("saved_model_float32"),
    "SavedModel bfloat16": saved_model("saved_model_bfloat16"),
    "SavedModel float32 classifier": saved_model("classifier_float32"),
    "SavedModel bfloat16 classifier": saved_model("classifier_bfloat16"),
    "ONNX float32": onnx("onnx_float32/model.onnx"),
    "ONNX int8": onnx("onnx_int8/model.onnx"),
    "ONNX int8 packed": onnx("onnx_packed_int8/model.onnx", (4, 128)),
    "OpenVINO float32": openvino("openvino_float32/model.xml", "f32"),
    "OpenVINO bfloat16": openvino("openvino_float32/model.xml", "bf16"),
    "OpenVINO int8": openvino("openvino_int8/model.xml", "f32"),
    "OpenVINO bfloat16 packed": openvino("openvino_packed_float32/model.xml", "bf16", (4, 128)),
    "OpenVINO int8 packed": openvino("openvino_packed_int8/model.xml", "f32", (4, 128)),
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
    "transformers-OpenVINO float32": openvino_transformers("f32"),
    "transformers-OpenVINO bfloat16": openvino_transformers("bf16"),
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
    together, on the clock (`wall`) and of all threads (`cpu`), and the most memory so far in MiB. What packs its rows
    does so with those of each batch, within that time. The first batch is answered for `AWAKE` seconds before, but not
    of the first request, whose reply tells how long a start takes.
    """
    contender = CONTENDERS[name]
    run = contender.load(files, sizes, threads)
    for number, line in enumerate(sys.stdin):
        made = [_batch(lengths, sizes["vocab_size"]) for lengths in json.loads(line)]
        call = run if contender.packed is None else _packing(run, *contender.packed)
        begin = time.perf_counter()
        while number and time.perf_counter() - begin < AWAKE:
            call(made[0])
        wall, cpu = time.perf_counter(), time.process_time()
        for inputs in made:
            call(inputs)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps({"wall": wall, "cpu": cpu, "memory": _most_memory()}), file=_REPLIES, flush=True)


def _most_memory() -> float:
    """MiB that this program has had at most, where Linux tells; `ru_maxrss` would begin with what its parent had."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    return float("nan")


def _packing(run: Run, rows: int, length: int) -> Run:
    """A function of packed batches as one of padded ones."""
    from albert_tf import packing

    return packing.of_padded(lambda inputs: dict(enumerate(run(dict(inputs)))), rows, length)


def _batch(lengths: list[int], vocab_size: int) -> Inputs:
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, np.newaxis]).astype(np.int32)
    ids = np.random.default_rng(0).integers(5, vocab_size, mask.shape).astype(np.int32)
    return dict(zip(_INPUTS, (ids * mask, mask, 0 * mask)))


if __name__ == "__main__":
    # Libraries print; what is printed goes to stderr, and the replies alone to stdout.
    _REPLIES = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if sys.argv[1] == "--installed":
        print(json.dumps(installed()), file=_REPLIES, flush=True)
    else:
        serve(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]))
