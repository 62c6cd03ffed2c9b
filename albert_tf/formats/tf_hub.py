"""Reads TF-Hub modules of ALBERT: the TF1 form of 2019 and the TF2 form of 2020, without executing them."""

from __future__ import annotations

import os
from typing import Any

from albert_tf import config_files
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import archives, object_names, tf1
from albert_tf.formats.checkpoint import Checkpoint, find_vocabulary
from albert_tf.formats.head_names import head_from_weights
from albert_tf.formats.saved_model_graph import SavedModelGraph
from albert_tf.formats.tensor_bundle import OBJECT_GRAPH, TensorBundle
from albert_tf.formats.weight_sizes import sizes_from_weights

FORM = "TF-Hub module"
_LOWER_CASE = "do_lower_case"
_RELEASED = ("albert_base_v2", "albert_large_v2", "albert_xlarge_v2", "albert_xxlarge_v2")


def read(path: str | os.PathLike[str], config: AlbertConfig | None = None) -> Checkpoint:
    """Reads a module: saved_model.pb, variables/ and assets/ with the vocabulary.

    A module has no JSON with its sizes. They are taken from the shapes of its variables, and from its graph, which
    tells the layers, the heads, the activation and the LayerNorms' epsilon.

    Args:
        path: the module's directory, or an archive of it.
        config: the sizes, for a module whose graph does not tell them.

    Raises:
        InputError: a file is missing or damaged, it is no ALBERT or BERT, or its sizes are not told anywhere.
    """
    path = os.fspath(path)
    if archives.is_archive(path):
        with archives.unpacked(path) as directory:
            return _read_unpacked(directory, path, config)
    return _read_unpacked(path, path, config)


def _read_unpacked(directory: str, path: str, config: AlbertConfig | None) -> Checkpoint:
    graph = SavedModelGraph(directory)
    bundle = TensorBundle(os.path.join(directory, "variables", "variables"))
    if bundle.is_object_based:
        checkpoint, facts = _read_objects(bundle, graph, path)
    else:
        checkpoint, is_bert = tf1.read_bundle(bundle, path, FORM)
        facts = {"is_bert": is_bert, _LOWER_CASE: graph.lower_case()}
    notes: tuple[str, ...] = ()
    if config is None:
        config, notes = _infer_config(checkpoint, graph, facts)
    return checkpoint.replace(
        config=config,
        vocabulary=find_vocabulary(os.path.join(directory, "assets"), facts[_LOWER_CASE]),
        notes=(*checkpoint.notes, *notes),
    )


def _read_objects(bundle: TensorBundle, graph: SavedModelGraph, path: str) -> tuple[Checkpoint, dict[str, Any]]:
    """The TF2 form: a checkpoint without config and vocabulary, and facts that `_infer_config` uses."""
    names, slots = object_names.stored_names(bundle.object_graph())
    released = object_names.released_names(names)
    if released is None:
        examples = ", ".join(sorted(names.values())[:3])
        raise InputError(
            f"{path} is a SavedModel, but not of an ALBERT encoder of tf-models (TF-Hub's TF2 form): its variables "
            f"are {examples}, …; give the directory or checkpoint its weights came from"
        )
    values, notes = bundle.read(names)
    settings = [key for key in names if key.partition("/")[0] == _LOWER_CASE]
    query = "bert/encoder/transformer/group_0/inner_group_0/attention_1/self/query/kernel"
    query_key = next((key for key, name in released.items() if name == query), None)
    weights = {
        released[key]: object_names.released_shape(released[key], value)
        for key, value in values.items()
        if key not in settings
    }
    is_bert = object_names.has_numbered_layers(names)
    facts: dict[str, Any] = {
        "is_bert": is_bert,
        _LOWER_CASE: bool(values[settings[0]]) if settings else None,
        "layers": graph.applications(names[query_key]) if query_key else None,
        "heads": values[query_key].shape[1] if query_key and values[query_key].ndim == 3 else None,
    }
    others = {key for key in bundle.shapes if key not in names and key not in slots and key != OBJECT_GRAPH}
    checkpoint = Checkpoint(
        path=path,
        form=FORM,
        weights=weights,
        head=head_from_weights(weights),
        slots=slots,
        left_out={
            **({_LOWER_CASE: "it is a setting of the tokenizer"} if settings else {}),
            **dict.fromkeys(sorted(others), "it is no variable"),
        },
        notes=(*notes, *(("it is a BERT: each layer has parameters of its own",) if is_bert else ())),
    )
    return checkpoint, facts


def _infer_config(
    checkpoint: Checkpoint, graph: SavedModelGraph, facts: dict[str, Any]
) -> tuple[AlbertConfig, tuple[str, ...]]:
    sizes = sizes_from_weights(checkpoint.weights, checkpoint.path)
    stored = graph.keras_config()
    notes = []
    heads = facts.get("heads") or graph.attention_heads(sizes["hidden_size"]) or stored.get("num_attention_heads")
    layers = facts.get("layers") or graph.layer_scopes() or stored.get("num_layers")
    if facts["is_bert"]:
        layers = sizes["num_hidden_groups"]
        sizes.update(num_hidden_groups=1, parameter_sharing="none")
    if layers is None and heads is not None:
        layers = _released_layers(sizes["hidden_size"], sizes["intermediate_size"], heads)
        notes.append(f"the number of layers, {layers}, is that of the released model of this size")
    if layers is None or heads is None:
        unknown = "num_attention_heads" if heads is None else "num_hidden_layers"
        raise InputError(
            f"{checkpoint.path} does not tell its {unknown} and has not the size of a released ALBERT: give a config "
            "(an albert_config.json) with it"
        )
    activation = graph.activation()
    if activation is None:
        activation = "gelu"
        notes.append("hidden_act is not told by the module, 'gelu' of the released models was taken")
    epsilons = graph.layer_norm_epsilons()
    if len(epsilons) > 1:
        raise InputError(f"{checkpoint.path} has LayerNorms of several epsilons ({sorted(epsilons)}): no ALBERT has")
    rates: dict[str, Any] = {
        "hidden_dropout_prob": stored.get("dropout_rate"),
        "attention_probs_dropout_prob": stored.get("attention_dropout_rate"),
    }
    if None in rates.values():
        rates = dict.fromkeys(rates, 0.0)
        notes.append("dropout rates are not told by the module, 0.0 was taken")
    config = AlbertConfig(
        **sizes,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        hidden_act=activation,
        layer_norm_eps=epsilons.pop() if epsilons else 1e-12,
        **rates,
    )
    return config, tuple(notes)


def _released_layers(hidden_size: int, intermediate_size: int, heads: int) -> int | None:
    for name in _RELEASED:
        config = AlbertConfig.from_json_file(config_files.config_path(name))
        if (config.hidden_size, config.intermediate_size, config.num_attention_heads) == (
            hidden_size,
            intermediate_size,
            heads,
        ):
            return config.num_hidden_layers
    return None
