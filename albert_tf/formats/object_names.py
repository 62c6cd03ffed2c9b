"""Names of the variables in an object-based checkpoint of a tf-models encoder, and their released counterparts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np
from tensorflow.core.protobuf import trackable_object_graph_pb2

from albert_tf.formats.optimizer_slots import slots_among
from albert_tf.formats.tensor_bundle import VARIABLE_KEY_END

_SCOPE = re.compile(r"((?:.*/)?)word_embeddings/embeddings")
_LAYER = re.compile(r"transformer/(?:layer_(\d+)/)?(.+)/(\w+)")
# What stands in a layer of official.nlp.modeling's encoders -> the same in the released names.
_LAYER_PARTS = {
    "self_attention/query": "attention_1/self/query",
    "self_attention/key": "attention_1/self/key",
    "self_attention/value": "attention_1/self/value",
    "self_attention/attention_output": "attention_1/output/dense",
    "self_attention_output": "attention_1/output/dense",
    "self_attention_layer_norm": "LayerNorm",
    "intermediate": "ffn_1/intermediate/dense",
    "output": "ffn_1/intermediate/output/dense",
    "output_layer_norm": "LayerNorm_1",
}
_OTHER_PARTS = (
    (r"word_embeddings/embeddings", "bert/embeddings/word_embeddings"),
    (r"position_embeddings?/embeddings", "bert/embeddings/position_embeddings"),
    (r"type_embeddings/embeddings", "bert/embeddings/token_type_embeddings"),
    (r"embeddings/layer_norm/(gamma|beta)", r"bert/embeddings/LayerNorm/\1"),
    (r"embedding_projection/(kernel|bias)", r"bert/encoder/embedding_hidden_mapping_in/\1"),
    (r"pooler_transform/(kernel|bias)", r"bert/pooler/dense/\1"),
    (r"(?:bert/)?cls/predictions/output_bias/bias", "cls/predictions/output_bias"),
    (r"(?:bert/)?cls/predictions/transform/(dense|LayerNorm)/(\w+)", r"cls/predictions/transform/\1/\2"),
)


def stored_names(graph: bytes) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables of a checkpoint's object graph.

    Returns:
        Key in the checkpoint -> the variable's own name, or its place among the objects where it has none that is
        unique; and the keys of optimizer slots and counters.
    """
    nodes = trackable_object_graph_pb2.TrackableObjectGraph.FromString(graph).nodes
    names = {a.checkpoint_key: a.full_name for node in nodes for a in node.attributes if a.name == "VARIABLE_VALUE"}
    slot_nodes = {slot.slot_variable_node_id for node in nodes for slot in node.slot_variables}
    slots = {a.checkpoint_key for i in slot_nodes for a in nodes[i].attributes}
    counts = Counter(names.values())
    for key, name in names.items():
        if not name or counts[name] > 1:
            names[key] = key[: -len(VARIABLE_KEY_END)] if key.endswith(VARIABLE_KEY_END) else key
    counters = set(slots_among(names.values()))
    slots |= {key for key, name in names.items() if name in counters or name.startswith(("optimizer/", "_optimizer/"))}
    return {key: name for key, name in names.items() if key not in slots}, tuple(sorted(slots))


def has_numbered_layers(names: Mapping[str, str]) -> bool:
    """Whether each layer has parameters of its own, as in a BERT.

    Args:
        names: key -> the variable's name.
    """
    return any(re.search(r"(^|/)transformer/layer_\d+/", name) for name in names.values())


def released_names(names: Mapping[str, str]) -> dict[str, str] | None:
    """Key -> released name; a name that is not of an encoder is kept. None where there is no tf-models encoder.

    Args:
        names: key -> the variable's name.
    """
    scopes = {match[1] for match in map(_SCOPE.fullmatch, names.values()) if match}
    if len(scopes) != 1:
        return None
    scope = scopes.pop()
    return {
        key: _released_name(name[len(scope) :] if name.startswith(scope) else name) or name
        for key, name in names.items()
    }


def _released_name(name: str) -> str | None:
    match = _LAYER.fullmatch(name)
    if match and match[2] in _LAYER_PARTS:
        group = int(match[1] or 0)
        return f"bert/encoder/transformer/group_{group}/inner_group_0/{_LAYER_PARTS[match[2]]}/{match[3]}"
    for pattern, replacement in _OTHER_PARTS:
        match = re.fullmatch(pattern, name)
        if match:
            return match.expand(replacement)
    return None


def released_shape(name: str, value: np.ndarray) -> np.ndarray:
    """A kernel or bias with axes for the heads, [H,N,D], [N,D,H] or [N,D], with these axes joined: [H,H] or [H]."""
    if re.search(r"/attention_1/(self/\w+|output/dense)/kernel$", name) and value.ndim == 3:
        width = value.shape[-1] if name.endswith("/output/dense/kernel") else value.shape[0]
        return value.reshape(-1, width) if name.endswith("/output/dense/kernel") else value.reshape(width, -1)
    if re.search(r"/attention_1/self/\w+/bias$", name) and value.ndim == 2:
        return value.reshape(-1)
    return value
