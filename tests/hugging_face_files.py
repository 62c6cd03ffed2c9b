"""Hugging Face files for tests, written from the definition of their names, without transformers or PyTorch."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np
import safetensors.numpy

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "embedding_size": 8,
    "hidden_size": 24,
    "num_hidden_layers": 4,
    "num_hidden_groups": 1,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "inner_group_num": 1,
    "max_position_embeddings": 16,
}
CLASSES = {
    "AlbertModel": "encoder",
    "AlbertForPreTraining": "pretraining",
    "AlbertForMaskedLM": "masked_lm",
    "AlbertForSequenceClassification": "classifier",
    "AlbertForMultipleChoice": "multiple_choice",
    "AlbertForQuestionAnswering": "span",
    "AlbertForTokenClassification": "tagger",
}
_WITHOUT_POOLER = ("AlbertForMaskedLM", "AlbertForQuestionAnswering", "AlbertForTokenClassification")


def config_values(architecture: str, **changes: Any) -> dict[str, Any]:
    """config.json as transformers writes it, keys without effect included."""
    values = {**SIZES, "architectures": [architecture], "model_type": "albert", "hidden_act": "gelu_new", **changes}
    if architecture in ("AlbertForSequenceClassification", "AlbertForTokenClassification"):
        values.setdefault("id2label", {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"})
        values.setdefault("label2id", {label: int(number) for number, label in values["id2label"].items()})
    return {**values, "torch_dtype": "float32", "transformers_version": "4.46.3", "output_past": True, "gap_size": 0}


def linear(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    """A torch.nn.Linear from `columns` to `rows`."""
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def tensor_shapes(architecture: str, values: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Name to shape of all tensors of a class, as PyTorch spells them."""
    v, e, h, i = (values[key] for key in ("vocab_size", "embedding_size", "hidden_size", "intermediate_size"))
    shapes = {
        "embeddings.word_embeddings.weight": (v, e),
        "embeddings.position_embeddings.weight": (values["max_position_embeddings"], e),
        "embeddings.token_type_embeddings.weight": (2, e),
        "embeddings.LayerNorm.weight": (e,),
        "embeddings.LayerNorm.bias": (e,),
        **linear("encoder.embedding_hidden_mapping_in", h, e),
    }
    for group in range(values["num_hidden_groups"]):
        for inner in range(values["inner_group_num"]):
            block = f"encoder.albert_layer_groups.{group}.albert_layers.{inner}"
            for part in ("query", "key", "value", "dense"):
                shapes.update(linear(f"{block}.attention.{part}", h, h))
            for norm in ("attention.LayerNorm", "full_layer_layer_norm"):
                shapes.update({f"{block}.{norm}.weight": (h,), f"{block}.{norm}.bias": (h,)})
            shapes.update(linear(f"{block}.ffn", i, h))
            shapes.update(linear(f"{block}.ffn_output", h, i))
    if architecture not in _WITHOUT_POOLER:
        shapes.update(linear("pooler", h, h))
    if architecture == "AlbertModel":
        return shapes
    shapes = {f"albert.{name}": shape for name, shape in shapes.items()}
    if architecture in ("AlbertForPreTraining", "AlbertForMaskedLM"):
        shapes.update(linear("predictions.dense", e, h))
        shapes.update({"predictions.LayerNorm.weight": (e,), "predictions.LayerNorm.bias": (e,)})
        shapes["predictions.bias"] = (v,)
    if architecture == "AlbertForPreTraining":
        shapes.update(linear("sop_classifier.classifier", 2, h))
    if architecture in ("AlbertForSequenceClassification", "AlbertForTokenClassification"):
        shapes.update(linear("classifier", len(values["id2label"]), h))
    if architecture == "AlbertForMultipleChoice":
        shapes.update(linear("classifier", 1, h))
    if architecture == "AlbertForQuestionAnswering":
        shapes.update(linear("qa_outputs", 2, h))
    return shapes


def random_tensors(architecture: str, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A value for every tensor of a class; every one of them is different."""
    random = np.random.default_rng(3)
    return {
        name: random.normal(0, 0.2, shape).astype(np.float32)
        for name, shape in tensor_shapes(architecture, values).items()
    }


def write_directory(
    directory: pathlib.Path, values: Mapping[str, Any] | None, tensors: Mapping[str, np.ndarray]
) -> pathlib.Path:
    """config.json, if there are values for it, and model.safetensors."""
    directory.mkdir(parents=True, exist_ok=True)
    if values is not None:
        (directory / "config.json").write_text(json.dumps(values))
    contiguous = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    safetensors.numpy.save_file(contiguous, directory / "model.safetensors", metadata={"format": "pt"})
    return directory


def write_bfloat16(path: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> None:
    """A .safetensors of the upper halves of float32 numbers, by the format's definition: NumPy has no such type."""
    header, data = {}, b""
    for name, value in tensors.items():
        part = (np.ascontiguousarray(value).view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": value.shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)


def write_shards(path: pathlib.Path, tensors: Mapping[str, np.ndarray], count: int) -> None:
    """model-0000i-of-0000n.safetensors and their index in a directory."""
    weight_map = {}
    for shard in range(count):
        file = f"model-{shard + 1:05d}-of-{count:05d}.safetensors"
        part = {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)[shard::count]}
        safetensors.numpy.save_file(part, path / file)
        weight_map.update(dict.fromkeys(part, file))
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def keras_name(name: str, architecture: str) -> str:
    """The path of a variable in the tf_model.h5 that transformers 4.46 writes for the TensorFlow class."""
    snake = {
        "AlbertModel": "tf_albert_model",
        "AlbertForPreTraining": "tf_albert_for_pre_training",
        "AlbertForMaskedLM": "tf_albert_for_masked_lm",
        "AlbertForSequenceClassification": "tf_albert_for_sequence_classification",
        "AlbertForMultipleChoice": "tf_albert_for_multiple_choice",
        "AlbertForQuestionAnswering": "tf_albert_for_question_answering",
        "AlbertForTokenClassification": "tf_albert_for_token_classification",
    }[architecture]
    if architecture == "AlbertModel":
        name = f"albert.{name}"
    prefix, _, leaf = name.rpartition(".")
    if leaf == "weight":
        if prefix.endswith("_embeddings"):
            leaf = "weight" if prefix.endswith("word_embeddings") else "embeddings"
        else:
            leaf = "gamma" if prefix.lower().endswith(("layernorm", "layer_norm")) else "kernel"
    elif prefix.lower().endswith(("layernorm", "layer_norm")):
        leaf = "beta"
    path = prefix.replace("albert_layer_groups.", "albert_layer_groups_._").replace(
        "albert_layers.", "albert_layers_._"
    )
    path = path.replace("_._", "\0").replace(".", "/").replace("\0", "_._")
    return f"{path.split('/')[0]}/{snake}/{path}/{leaf}:0"


def write_h5(path: pathlib.Path, architecture: str, tensors: Mapping[str, np.ndarray]) -> None:
    """tf_model.h5; kernels lie the other way round there, and the output bias stands in it twice."""
    tensors = dict(tensors)
    if "predictions.bias" in tensors:
        tensors["predictions.decoder.bias"] = tensors["predictions.bias"]
    with h5py.File(path, "w") as file:
        for name, value in tensors.items():
            stored = keras_name(name, architecture)
            file[stored] = value.T if stored.endswith("kernel:0") else value
            if "predictions.bias" in tensors and "/albert/embeddings/" in stored:  # the head holds that layer, too
                file[stored.replace("albert/", "predictions/", 1)] = value
