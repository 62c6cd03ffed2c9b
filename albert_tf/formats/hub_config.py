"""The config of a TF-Hub module, which has no JSON of it: from its variables, its graph and, else, a given one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tf import config_files
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Checkpoint
from albert_tf.formats.saved_model_graph import SavedModelGraph
from albert_tf.formats.weight_sizes import sizes_from_weights

_RELEASED = ("albert_base_v2", "albert_large_v2", "albert_xlarge_v2", "albert_xxlarge_v2")
_SHARING = ("num_hidden_groups", "parameter_sharing")


def infer(
    checkpoint: Checkpoint, graph: SavedModelGraph, facts: Mapping[str, Any], given: AlbertConfig | None
) -> tuple[AlbertConfig, tuple[str, ...]]:
    """The config, and a note for each value that neither the module nor a given config tells.

    Args:
        checkpoint: the module's weights under released names.
        graph: its graph.
        facts: `is_bert`; `layers` and `heads` where its objects tell them.
        given: for what the module does not tell; where they disagree, the module's value is returned.

    Raises:
        InputError: it is no ALBERT, its layers or heads are told nowhere, or its values do not fit together.
    """
    sizes = sizes_from_weights(checkpoint.weights, checkpoint.path)
    stored = graph.keras_config()
    layers = facts.get("layers") or graph.layer_scopes() or stored.get("num_layers")
    if facts["is_bert"]:
        layers = sizes["num_hidden_groups"]
        sizes.update(num_hidden_groups=1, parameter_sharing="none")
    activations, epsilons = graph.activations(), graph.layer_norm_epsilons()
    if len(epsilons) > 1:
        raise InputError(f"{checkpoint.path} has LayerNorms of several epsilons ({sorted(epsilons)}): no ALBERT has")
    told = {
        **sizes,
        "num_hidden_layers": layers,
        "num_attention_heads": facts.get("heads")
        or graph.attention_heads(sizes["hidden_size"])
        or stored.get("num_attention_heads"),
        "hidden_act": next(iter(activations)) if len(activations) == 1 else None,
        "layer_norm_eps": next(iter(epsilons), None),
    }
    told = {key: value for key, value in told.items() if value is not None}
    if given is not None:
        return _completed(told, given, checkpoint.path), ()
    rates = {
        "hidden_dropout_prob": stored.get("dropout_rate"),
        "attention_probs_dropout_prob": stored.get("attention_dropout_rate"),
    }
    told.update((key, rate) for key, rate in rates.items() if rate is not None)
    guesses, notes = _guesses(told, activations)
    return _config({**guesses, **told}, checkpoint.path), notes


def _completed(told: Mapping[str, Any], given: AlbertConfig, path: str) -> AlbertConfig:
    """The given config with what is told in its place; what is the same in other words stays as it was given."""
    config = _config({**given.to_dict(), "embedding_projection": None, "parameter_sharing": "all", **told}, path)
    if config.num_hidden_layers == given.num_hidden_layers and config.layer_parts() == given.layer_parts():
        config = config.replace(**{key: getattr(given, key) for key in _SHARING})
    if config.embedding_size == given.embedding_size and config.has_projection == given.has_projection:
        config = config.replace(embedding_projection=given.embedding_projection)
    return config


def _guesses(told: Mapping[str, Any], activations: set[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What is taken for values that are told nowhere, those of the released models."""
    guesses: dict[str, Any] = {}
    notes = []
    layers = _released_layers(told)
    if "num_hidden_layers" not in told and layers is not None:
        guesses["num_hidden_layers"] = layers
        notes.append(f"the number of layers, {layers}, is that of the released model of this size")
    if "hidden_act" not in told:
        guesses["hidden_act"] = "gelu"
        found = f" (it has the operations of {', '.join(sorted(activations))})" if activations else ""
        notes.append(f"hidden_act is not told by the module{found}, 'gelu' of the released models was taken")
    if "layer_norm_eps" not in told:
        guesses["layer_norm_eps"] = 1e-12
        notes.append("layer_norm_eps is not told by the module, 1e-12 of the released models was taken")
    rates = [key for key in ("hidden_dropout_prob", "attention_probs_dropout_prob") if key not in told]
    if rates:
        guesses.update(dict.fromkeys(rates, 0.0))
        notes.append(f"dropout rates ({', '.join(rates)}) are not told by the module, 0.0 was taken")
    return guesses, tuple(notes)


def _config(values: Mapping[str, Any], path: str) -> AlbertConfig:
    for key in ("num_attention_heads", "num_hidden_layers"):
        if key not in values:
            raise InputError(
                f"{path} does not tell its {key} and has not the size of a released ALBERT: give a config (an "
                "albert_config.json) with it"
            )
    return AlbertConfig.from_dict(values, path)


def _released_layers(told: Mapping[str, Any]) -> int | None:
    for name in _RELEASED:
        config = AlbertConfig.from_json_file(config_files.config_path(name))
        if all(
            told.get(key) == getattr(config, key) for key in ("hidden_size", "intermediate_size", "num_attention_heads")
        ):
            return config.num_hidden_layers
    return None
