"""What smaller numbers cost and give: scores, speed and bytes on disk of every format that a model is exported to.

    python benchmarks/quantisation.py --model=fine/model --check_file=../shared/data/glue/SST-2/dev.tsv

Scores are those of the fine-tuned model on the labelled file. Speed and bytes are those of a model of --config's size
with random weights, which take as long as any others: all formats answer the same ids in turn, so that a noisy machine
is noisy for all, and the table has medians. A format whose package is missing is left out. On a machine that others use
too, --threads=1 --cpu_time counts the seconds of the processor instead of those of the clock.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf
from random_weights import shake

import albert_tf
from albert_tf import config_files
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.exporting import saved_model, source
from albert_tf.exporting.runtimes import check_inputs, comparison, ids_outputs, openvino_files, runtime_export

MODEL = "TensorFlow, the model itself"
SECONDS_OF_A_SHAPE = 4.0  # of each contender, at most
MOST_RUNS = 30


class Contender(NamedTuple):
    """A row of the table: a format with a form of weights, and how its file becomes a function."""

    format: str
    weights: str
    function: Callable[[str, int], check_inputs.Function]


def _runtime(name: str) -> Callable[[str, int], check_inputs.Function]:
    function: Any = runtime_export.RUNTIMES[name].function
    return function  # type: ignore[no-any-return]


CONTENDERS: Mapping[str, Contender] = {
    "ONNX Runtime float32": Contender("onnx", "float32", _runtime("onnx")),
    "ONNX Runtime int8": Contender("onnx", "int8", _runtime("onnx")),
    "OpenVINO float32": Contender("openvino", "float32", _runtime("openvino")),
    "OpenVINO bfloat16, weights float16": Contender(
        "openvino", "float16", lambda path, threads: openvino_files.OpenvinoFunction(path, threads, "bf16")
    ),
    "OpenVINO int8": Contender("openvino", "int8", _runtime("openvino")),
    "LiteRT float32": Contender("tflite", "float32", _runtime("tflite")),
    "LiteRT int8": Contender("tflite", "int8", _runtime("tflite")),
}


def write_all(folder: str, model: Any, threads: int) -> tuple[dict[str, check_inputs.Function], dict[str, int]]:
    """Every contender as a function, and the bytes of its files; the model itself, compiled by TensorFlow, is first."""
    functions: dict[str, check_inputs.Function] = {MODEL: ids_outputs.as_arrays(ids_outputs.keras_function(model))}
    sizes = {MODEL: 4 * sum(int(np.prod(value.shape)) for value in model.named_variables().values())}
    for name, contender in CONTENDERS.items():
        directory = os.path.join(folder, f"{contender.format}_{contender.weights}")
        path = os.path.join(directory, runtime_export.RUNTIMES[contender.format].file)
        try:
            if not os.path.exists(path):
                os.makedirs(directory, exist_ok=True)
                runtime_export.RUNTIMES[contender.format].write(path, model, contender.weights)
            functions[name] = contender.function(path, threads)
        except InputError as error:
            print(f"{name} is left out: {error}", flush=True)
            continue
        sizes[name] = sum(file.stat().st_size for file in pathlib.Path(directory).iterdir())
    return functions, sizes


def seconds(
    functions: Mapping[str, check_inputs.Function],
    rows: int,
    length: int,
    vocab_size: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median seconds of each function for full rows on a clock, the functions in turn."""
    random = np.random.default_rng(0)
    ids = random.integers(5, vocab_size, (rows, length)).astype(np.int32)
    inputs = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function(inputs)  # makes its plan for this shape
    end = clock() + SECONDS_OF_A_SHAPE * len(functions)
    while clock() < end and len(taken[MODEL]) < MOST_RUNS:
        for name, function in functions.items():
            start = clock()
            function(inputs)
            taken[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in taken.items()}


def scores_of(folder: str, path: str, labelled: str, threads: int) -> tuple[str, dict[str, float]]:
    """The first metric of the model's task, and its value for each contender."""
    loaded = source.load(path)
    parts = saved_model.make_parts(loaded.model, loaded.tokenizer, kind=loaded.kind)
    _, task, examples = runtime_export.read_labelled(labelled, loaded)
    features = parts.kind.features(examples, parts.tokenizer, training=False)
    functions, _ = write_all(folder, loaded.model, threads)
    found = comparison.scores(parts, functions, features, examples, task.metrics)
    return task.metrics[0], {name: values[task.metrics[0]] for name, values in found.items()}


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """Columns by title, each with a cell for a row's name, as a Markdown table."""
    rows = list(next(iter(columns.values())))
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    lines += ["| " + " | ".join([row, *(cells.get(row, "") for cells in columns.values())]) + " |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a fine-tuned model, for the scores")
    parser.add_argument("--check_file", help="a labelled file of its task")
    parser.add_argument("--config", default="albert_base_v2", help="sizes of the model for speed and bytes")
    parser.add_argument("--shapes", nargs="*", default=["1x32", "8x128"], help="rows x pieces")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu_time", action="store_true", help="count the processor's seconds, of all threads")
    arguments = parser.parse_args()

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    clock = time.process_time if arguments.cpu_time else time.perf_counter

    config = AlbertConfig.from_json_file(config_files.config_path(arguments.config))
    columns: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = albert_tf.AlbertForSequenceClassification(config, labels=("0", "1"))
        shake(model)
        functions, sizes = write_all(os.path.join(folder, "sized"), model, arguments.threads)
        columns["MB on disk"] = {name: f"{size / 1e6:.1f}" for name, size in sizes.items()}
        for shape in arguments.shapes:
            rows, length = map(int, shape.split("x"))
            times = seconds(functions, rows, length, config.vocab_size, clock)
            columns[f"{shape}, ms"] = {name: f"{1000 * value:.1f}" for name, value in times.items()}
            columns[f"{shape}, times as fast"] = {name: f"{times[MODEL] / value:.2f}" for name, value in times.items()}
            print(table(columns), flush=True)
        if arguments.model and arguments.check_file:
            metric, scores = scores_of(
                os.path.join(folder, "scored"), arguments.model, arguments.check_file, arguments.threads
            )
            columns[metric] = {name: f"{100 * value:.2f}" for name, value in scores.items()}
            columns["change"] = {name: f"{100 * (value - scores[MODEL]):+.2f}" for name, value in scores.items()}
    print(table(columns))


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
