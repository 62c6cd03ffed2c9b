"""Writes a model for another runtime, compares it, and only then lets it appear.

A directory holds the runtime's own file or files, and

    albert_config.json, head_config.json    the sizes; the head with its labels in order
    spiece.model or vocab.txt               the vocabulary, and tokenizer_config.json
    task.json                               where the model is for a task: the longest sequence and what else decides it
    comparison.json                         how far it is from the model, see `comparison`

A packed file takes rows with several texts, see `albert_tf.packing`; it is compared through its packer.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from albert_tf import files, packing, task_model
from albert_tf.config import CONFIG_FILE
from albert_tf.errors import InputError
from albert_tf.exporting.parts import Parts
from albert_tf.exporting.runtimes import (
    check_inputs,
    comparison,
    ids_outputs,
    onnx_file,
    openvino_files,
    real_texts,
    tflite_file,
)
from albert_tf.exporting.source import Source
from albert_tf.finetuning_data import has_labels
from albert_tf.formats.checkpoint import Vocabulary
from albert_tf.formats.hugging_face_tokenizer import write_vocabulary
from albert_tf.pretrained_model import PretrainedModel
from albert_tf.tasks.examples import Example
from albert_tf.tasks.own_files import task_of_model
from albert_tf.tasks.task import Task

COMPARISON_FILE = "comparison.json"


class Labelled(NamedTuple):
    """A file to compare the scores on: its path, the task, and its examples."""

    path: str
    task: Task
    examples: Sequence[Example]


class Runtime(NamedTuple):
    """One format.

    Attributes:
        file: what its main file is called.
        weights: the forms of the weights that it can be written with, the usual one first.
        write: the path of that file, the model and a form of weights; where it packs, `packed=True` too.
        function: the path to a function of ids.
        packs: whether there are packed files.
        in_precision: of precisions that the runtime can be told to compute in, where the processor has them, the name
            to such a `function`.
    """

    file: str
    weights: tuple[str, ...]
    write: Callable[..., None]
    function: Callable[[str], check_inputs.Function]
    packs: bool
    in_precision: Mapping[str, Callable[[str], check_inputs.Function]] = types.MappingProxyType({})


RUNTIMES: Mapping[str, Runtime] = {
    "onnx": Runtime(onnx_file.FILE, onnx_file.WEIGHTS, onnx_file.write, onnx_file.OnnxFunction, packs=True),
    "openvino": Runtime(
        openvino_files.FILE,
        openvino_files.WEIGHTS,
        openvino_files.write,
        openvino_files.OpenvinoFunction,
        packs=True,
        in_precision={"bfloat16": functools.partial(openvino_files.OpenvinoFunction, precision="bf16")},
    ),
    "tflite": Runtime(
        tflite_file.FILE, tflite_file.WEIGHTS, tflite_file.write, tflite_file.TfliteFunction, packs=False
    ),
}
_HEADS_THAT_PACK = ("encoder", "classifier", "multiple_choice")


def check_format(name: str, weights: str, packed: bool) -> None:
    """Looks whether a format has such weights, and packed files if they are wanted.

    Raises:
        InputError: it has not.
    """
    runtime = RUNTIMES[name]
    if weights not in runtime.weights:
        raise InputError(f"--weights={weights} is none of --format={name}: it has {', '.join(runtime.weights)}")
    if packed and not runtime.packs:
        formats = " and ".join(name for name, runtime in RUNTIMES.items() if runtime.packs)
        raise InputError(f"--packed is for --format={formats}: leave it out for --format={name}")


def check_packs(model: PretrainedModel) -> None:
    """Looks whether a model reads one vector of a text, as packed files compute it.

    Raises:
        InputError: it reads more, or its encoder has no pooler.
    """
    if model.head.kind not in _HEADS_THAT_PACK or not ids_outputs.output_specs(model, packed=True):
        what = "an encoder without a pooler" if model.head.kind == "encoder" else f"the head {model.head.kind}"
        raise InputError(
            "--packed is for models that answer from one vector of a text (classifiers, regressors, multiple choice, "
            f"the encoder's pooled_output), and this one has {what}: leave it out"
        )


def read_labelled(path: str, source: Source) -> Labelled:
    """Reads a labelled file of a model's task.

    Raises:
        InputError: the model has no head for a task, or the file cannot be read or has no labels.
    """
    if source.kind is None:
        raise InputError(f"--check_file={path} is for a model with a head for a task, and this one has none")
    task = task_of_model(source.model.head, source.about)
    examples = task.read(path)
    if not has_labels(examples):
        raise InputError(f"--check_file={path} has no labels: give a file that {task.title} can be scored on")
    return Labelled(path, task, examples)


def write(
    directory: str, name: str, source: Source, parts: Parts, weights: str, *, packed: bool = False
) -> check_inputs.Function:
    """Fills an empty directory.

    Args:
        directory: where.
        name: of the format, in `RUNTIMES`.
        source, parts: the model, and what its signatures are made of.
        weights: see `Runtime`.
        packed: whether rows hold several texts.

    Returns:
        The file as a function of padded batches.

    Raises:
        InputError: a package is missing, the format has no such weights or no packed files, or the model does not pack.
    """
    check_format(name, weights, packed)
    if packed:
        check_packs(parts.model)
    runtime = RUNTIMES[name]
    path = os.path.join(directory, runtime.file)
    (functools.partial(runtime.write, packed=True) if packed else runtime.write)(path, parts.model, weights)
    parts.model.config.to_json_file(os.path.join(directory, CONFIG_FILE))
    parts.head.write(directory)
    if parts.given_tokenizer is not None:
        vocabulary = Vocabulary.of(parts.tokenizer)
        write_vocabulary(vocabulary, directory, parts.model.config.max_position_embeddings)
    if parts.kind is not None:
        task_model.write_about(directory, {**source.about, "settings": dict(parts.kind.settings)})
    function = runtime.function(path)
    return packing.of_padded(function) if packed else function


def compare(
    directory: str,
    function: check_inputs.Function,
    parts: Parts,
    weights: str,
    *,
    called: str,
    packed: bool = False,
    with_vectors: bool = False,
    texts: str | None = None,
    labelled: Labelled | None = None,
) -> dict[str, Any]:
    """Compares the export with the model, and writes what comes out as comparison.json.

    Args:
        directory: of the export.
        function: of the export, on padded batches.
        parts: as in `write`; without a tokenizer random pieces stand for the texts.
        weights: whose bound holds.
        called: the directory's name for a person; it may be another one until it is complete.
        packed: as in `write`.
        with_vectors: whether the function gives the encoder's too, see `ids_outputs.keras_function`.
        texts: a file with a text on each line, or None, see `real_texts`.
        labelled: what `read_labelled` gave, or None.

    Returns:
        The same.

    Raises:
        InputError: a difference is beyond the bound, or the texts cannot be read.
    """
    specs = ids_outputs.output_specs(parts.model, packed, with_vectors)
    per_position = {name for name, spec in specs.items() if spec.shape.rank > 1 and spec.shape[1] is None}
    keras = ids_outputs.as_arrays(ids_outputs.keras_function(parts.model, with_vectors))

    def model(inputs: check_inputs.Arrays) -> check_inputs.Arrays:
        outputs = keras(inputs)
        return {name: outputs[name] for name in specs}

    if parts.given_tokenizer is None:
        source, count = "random pieces", real_texts.COUNT
        features = check_inputs.random_features(parts, count)
    else:
        some = real_texts.real_texts(texts)
        source, count = texts or "documentation of this Python", len(some)
        features = check_inputs.features_of_texts(parts, some)
    found = comparison.differences(model, function, check_inputs.batches(features, parts.max_seq_length), per_position)
    comparison.check(found, weights, called)
    result: dict[str, Any] = {
        "weights": weights,
        "packed": packed,
        "texts": {"source": source, "count": count},
        "bound": comparison.BOUNDS[weights],
        "outputs": found,
    }
    if labelled is not None:
        result["file"] = _scores(labelled, {"model": model, "export": function}, parts)
    files.write_json(os.path.join(directory, COMPARISON_FILE), result)
    return result


def _scores(labelled: Labelled, functions: Mapping[str, check_inputs.Function], parts: Parts) -> dict[str, Any]:
    path, task, examples = labelled
    features = parts.kind.features(examples, parts.tokenizer, training=False)
    found = comparison.scores(parts, functions, features, examples, task.metrics)
    return {
        "path": path,
        "examples": len(examples),
        "scores": {
            metric: {
                "model": value,
                "export": found["export"][metric],
                "change": found["export"][metric] - value,
            }
            for metric, value in found["model"].items()
        },
    }


def lines(result: Mapping[str, Any]) -> list[str]:
    """What a person reads of a comparison."""
    told = [f"compared with the model on {result['texts']['count']} texts ({result['texts']['source']}):"]
    for name, values in result["outputs"].items():
        told.append(f"  {name}: " + ", ".join(f"{key.replace('_', ' ')} {value:.3g}" for key, value in values.items()))
    for metric, values in result.get("file", {}).get("scores", {}).items():
        told.append(f"  {metric} {values['model']:.4f} -> {values['export']:.4f}, change {values['change']:+.4f}")
    return told
