"""Whose names a TF1 file uses: the released ALBERT's, a BERT's, or those of the other family called ALBERT."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import hugging_face_config

_WORD_TABLE = re.compile(r"((?:.*/)?)embeddings/word_embeddings")
_OTHER_FAMILY = re.compile(r"(^|/)(word_embeddings_2|layer_shared\w*)(/|$)")
_BERT_LAYER = re.compile(r"bert/encoder/layer_(\d+)/(.+)/(\w+)")
# What stands between the layer and the last part of a BERT's name -> the same of ours (modeling.py of both releases).
_BERT_PARTS = {
    "attention/self/query": "attention_1/self/query",
    "attention/self/key": "attention_1/self/key",
    "attention/self/value": "attention_1/self/value",
    "attention/output/dense": "attention_1/output/dense",
    "attention/output/LayerNorm": "LayerNorm",
    "intermediate/dense": "ffn_1/intermediate/dense",
    "output/dense": "ffn_1/intermediate/output/dense",
    "output/LayerNorm": "LayerNorm_1",
}


@dataclasses.dataclass(frozen=True)
class Translation:
    """How the names of one file are read.

    Attributes:
        names: name in the file -> released name; a name that is no ALBERT's or BERT's is kept.
        is_bert: whether each layer has parameters of its own under a BERT's names.
        notes: what was translated, one sentence each.
    """

    names: Mapping[str, str]
    is_bert: bool
    notes: tuple[str, ...]


def translate(names: Iterable[str], path: str) -> Translation:
    """Finds the family of a file from its names, and what each is called in the released ALBERT.

    A scope in front of all encoder names (`module/`) is taken away, and one of another name in the place of `bert/`
    is renamed. A BERT is an ALBERT with E = H and nothing shared, so its names have exact counterparts.

    Args:
        names: of all variables, optimizer slots left out.
        path: for messages.

    Raises:
        InputError: the file is of the other ALBERT family, whose LayerNorm stands behind the widening to H.
    """
    names = list(names)
    other = [name for name in names if _OTHER_FAMILY.search(name)]
    if other:
        raise InputError(
            f"{path} is not a google-style ALBERT checkpoint but one of the other family of that name (it has "
            f"{other[0]}): its embeddings are normalised at the hidden size, which this model cannot compute; use a "
            "checkpoint released by Google for the language, or one retrained with google-style names"
        )
    translated, scope = _without_scope(names)
    notes = []
    if scope not in (None, "bert/"):
        notes.append(f"the encoder's names begin with {scope!r} in the file, which was read as 'bert/'")
    layers = {_released_bert_name(name) for name in translated.values()} - {None}
    if layers:
        translated = {name: _released_bert_name(read) or read for name, read in translated.items()}
        notes.append("it is a BERT: an ALBERT with embedding_size = hidden_size and parameter_sharing 'none'")
    return Translation(translated, bool(layers), tuple(notes))


def config_from(values: Any, is_bert: bool, source: str, has_projection: bool = False) -> AlbertConfig:
    """The config of a file's JSON; a BERT's has no embedding_size and shares nothing.

    JSON of Hugging Face's kind, which has `model_type` or `architectures`, is read by its own meaning of the keys.

    Args:
        values: what the file holds.
        is_bert: whether the weights are a BERT's.
        source: the file, for messages.
        has_projection: whether the weights have a projection to H, which Hugging Face's JSON leaves open with E = H.

    Raises:
        InputError: the JSON describes no model, or a BERT with an embedding_size other than its hidden_size, or
            Hugging Face's JSON one that is not computed here.
    """
    if not isinstance(values, dict):
        raise InputError(f"{source} holds no JSON object with the keys of a model configuration")
    if {"model_type", "architectures"} & set(values):
        config = hugging_face_config.read_config(values, source)
        return config if has_projection else config.replace(embedding_projection=None)
    if is_bert:
        hidden_size = values.get("hidden_size")
        if values.get("embedding_size", hidden_size) != hidden_size:
            raise InputError(
                f"{source} has embedding_size {values['embedding_size']} and hidden_size {hidden_size}, but the "
                "weights beside it are a BERT's, where both are equal: it belongs to another checkpoint"
            )
        values = {**values, "embedding_size": hidden_size, "parameter_sharing": "none"}
    return AlbertConfig.from_dict(values, source)


def _without_scope(names: list[str]) -> tuple[dict[str, str], str | None]:
    """Name -> name with `bert/` for the encoder's scope; and that scope, None where there is not exactly one."""
    scopes = {match[1] for match in map(_WORD_TABLE.fullmatch, names) if match}
    if len(scopes) != 1:
        return {name: name for name in names}, None
    scope = scopes.pop()
    outer = scope.rstrip("/").rpartition("/")[0]
    outer = f"{outer}/" if outer else ""
    encoder = tuple(f"{scope}{part}/" for part in ("embeddings", "encoder", "pooler"))
    translated = {}
    for name in names:
        if name.startswith(encoder):
            translated[name] = f"bert/{name[len(scope) :]}"
        elif outer and name.startswith(outer):
            translated[name] = name[len(outer) :]
        else:
            translated[name] = name
    if len(set(translated.values())) < len(names):
        return {name: name for name in names}, None
    return translated, scope


def _released_bert_name(name: str) -> str | None:
    match = _BERT_LAYER.fullmatch(name)
    if not match or match[2] not in _BERT_PARTS:
        return None
    return f"bert/encoder/transformer/group_{int(match[1])}/inner_group_0/{_BERT_PARTS[match[2]]}/{match[3]}"
