"""Reads TF-Hub modules of ALBERT: the TF1 form of 2019 and the TF2 form of 2020, without executing them."""

from __future__ import annotations

import os
from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import archives, hub_config, object_names, tf1
from albert_tf.formats.checkpoint import Checkpoint, find_vocabulary
from albert_tf.formats.head_names import head_from_weights
from albert_tf.formats.renaming import renamed
from albert_tf.formats.saved_model_graph import SavedModelGraph
from albert_tf.formats.tensor_bundle import OBJECT_GRAPH, TensorBundle

FORM = "TF-Hub module"
_LOWER_CASE = "do_lower_case"


def read(path: str | os.PathLike[str], config: AlbertConfig | None = None) -> Checkpoint:
    """Reads a module: saved_model.pb, variables/ and assets/ with the vocabulary.

    A module has no JSON with its sizes. They are taken from the shapes of its variables, and from its graph, which
    tells the layers, the heads, the activation and the LayerNorms' epsilon.

    Args:
        path: the module's directory, or an archive of it.
        config: for what the module does not tell: its rates, and with some modules layers, heads, activation or
            epsilon. What it tells stays.

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
    config, notes = hub_config.infer(checkpoint, graph, facts, config)
    return checkpoint.replace(
        config=config,
        vocabulary=find_vocabulary(os.path.join(directory, "assets"), facts[_LOWER_CASE]),
        notes=(*checkpoint.notes, *notes),
    )


def _read_objects(bundle: TensorBundle, graph: SavedModelGraph, path: str) -> tuple[Checkpoint, dict[str, Any]]:
    """The TF2 form: a checkpoint without config and vocabulary, and facts that `hub_config.infer` uses."""
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
    variables = {key: value for key, value in values.items() if key not in settings}
    weights = {
        name: object_names.released_shape(name, value) for name, value in renamed(variables, released, path).items()
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
