"""The tensors in Hugging Face files of any kind, by PyTorch's names and orientation: whole files and sharded ones."""

from __future__ import annotations

import importlib.util
import os
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import safetensors

from albert_tf import files
from albert_tf.errors import InputError
from albert_tf.formats.hugging_face_h5 import read_h5
from albert_tf.formats.hugging_face_names import from_keras

Tensors = dict[str, np.ndarray]

# In the order of preference where several are there.
FILE_NAMES = ("model.safetensors", "pytorch_model.bin", "tf_model.h5")
INDEX_END = ".index.json"

# As safetensors calls them.
_TYPES = {
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F32": np.float32,
    "F64": np.float64,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
_OTHER_FLOATS = ("float16", "bfloat16", "float64")


def find_file(directory: str) -> str:
    """The weights in a directory: the path of a whole file or of the index of a sharded one.

    Raises:
        InputError: there are none, or only in a form that is not read.
    """
    names = set(os.listdir(directory)) if os.path.isdir(directory) else set()
    found = [name for file in FILE_NAMES for name in (file, file + INDEX_END) if name in names]
    readable = [name for name in found if not name.startswith("pytorch_model") or _has_torch()]
    if found:
        return os.path.join(directory, (readable or found)[0])
    looked_for = ", ".join(FILE_NAMES)
    if "flax_model.msgpack" in names:
        raise InputError(
            f"{directory} holds flax_model.msgpack alone, which is not read: take one of {looked_for}, or save it with "
            "transformers' from_flax=True first"
        )
    raise InputError(f"{directory} holds no Hugging Face weights: none of {looked_for} (or their {INDEX_END}) is there")


def read_tensors(path: str) -> tuple[Tensors, tuple[str, ...]]:
    """Name to array for one file, or for all shards of an index; and notes on what was changed.

    Raises:
        InputError: a file is missing, damaged, or needs a package that is not there.
    """
    tensors: Tensors = {}
    for file in _shards(path) if path.endswith(INDEX_END) else [path]:
        for name, value in _reader(file)(file).items():
            if name in tensors:
                raise InputError(f"{file}: {name} is in an earlier shard of {path}, too")
            tensors[name] = value
    translated: Tensors = {}
    for name, value in tensors.items():
        new_name, transposed = from_keras(name) or (name, False)
        value = value.T if transposed else value
        # A TensorFlow class with a masked-LM head stored the embeddings in the part of the head, too.
        if not np.array_equal(translated.setdefault(new_name, value), value):
            raise InputError(f"{path} has two different values for {new_name}")
    return _to_float32(path, translated)


def _shards(index: str) -> list[str]:
    values = files.read_json(index)
    weight_map = values.get("weight_map") if isinstance(values, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise InputError(f"{index} has no 'weight_map' that names the files of the weights")
    shards = sorted(set(map(str, weight_map.values())))
    for shard in shards:
        if os.path.basename(shard) != shard:
            raise InputError(f"{index} names the file {shard!r}: shards must lie beside their index")
        if not os.path.isfile(os.path.join(os.path.dirname(index), shard)):
            raise InputError(f"{index} names the shard {shard}, which is not beside it")
    return [os.path.join(os.path.dirname(index), shard) for shard in shards]


def _reader(path: str) -> Callable[[str], Tensors]:
    for ending, reader in ((".safetensors", _read_safetensors), (".bin", _read_bin), (".h5", read_h5)):
        if path.endswith(ending):
            return reader
    raise InputError(f"{path} is no Hugging Face file: its name must end in .safetensors, .bin or .h5")


def _read_safetensors(path: str) -> Tensors:
    """By `deserialize`: safetensors.numpy, from 0.4 to 0.8, ends with a KeyError where a tensor is bfloat16."""
    try:
        with open(path, "rb") as file:
            entries = safetensors.deserialize(file.read())
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    tensors = {}
    for name, entry in entries:
        kind = entry["dtype"]
        if kind not in _TYPES:
            raise InputError(f"{path}: {name} is of the type {kind}, which is not read: save the model in float32")
        tensors[name] = np.frombuffer(entry["data"], _TYPES[kind]).reshape(entry["shape"])
    return tensors


def _read_bin(path: str) -> Tensors:
    if not _has_torch():
        raise InputError(
            f"{path} can be read only where PyTorch is installed: run pip install torch, or take the model's "
            ".safetensors"
        )
    torch = importlib.import_module("torch")
    try:
        values = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (EOFError, RuntimeError, KeyError, ValueError, pickle.UnpicklingError) as error:
        raise InputError(
            f"cannot read {path}: it is damaged, or holds more than tensors, which is not opened for it could run code"
        ) from error
    if not isinstance(values, dict) or not all(isinstance(value, torch.Tensor) for value in values.values()):
        raise InputError(f"{path} holds more than named tensors: save the model's state_dict() alone")
    return {name: _to_numpy(torch, value.detach()) for name, value in values.items()}


def _to_numpy(torch: Any, value: Any) -> np.ndarray:
    if value.dtype == torch.bfloat16:
        return value.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return value.numpy()


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def _to_float32(path: str, tensors: Tensors) -> tuple[Tensors, tuple[str, ...]]:
    """Other floating-point types become float32; whole numbers stay, they are no weights."""
    others = {name: str(value.dtype) for name, value in tensors.items() if str(value.dtype) in _OTHER_FLOATS}
    if not others:
        return tensors, ()
    converted = {name: value.astype(np.float32) if name in others else value for name, value in tensors.items()}
    types = " and ".join(sorted(set(others.values())))
    return converted, (f"{len(others)} tensors of {path} are {types}; they were turned into float32",)
