"""Models that Hugging Face's classes cannot hold as they are, turned into ones they can hold, with the same numbers.

There every layer of a group shares all its parameters, and embeddings are always projected to H.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from albert_tf import weight_names
from albert_tf.config import AlbertConfig
from albert_tf.formats.hugging_face_config import group_of_layer
from albert_tf.formats.unsharing import copied_to_layers

Weights = Mapping[str, np.ndarray]
Fitted = tuple[AlbertConfig, Weights, tuple[str, ...]]  # the last are notes: what was changed, one sentence each

_PROJECTION = "bert/encoder/embedding_hidden_mapping_in"


def fit(config: AlbertConfig, weights: Weights) -> Fitted:
    """A model with the same outputs that Hugging Face's classes can hold.

    Sharing of one part alone, and groups that Hugging Face's rule cuts elsewhere, become parameters of its own for
    each layer; E = H without projection gets the identity for one.
    """
    config, weights, notes = _fit_groups(config, weights)
    if config.has_projection:
        return config, weights, notes
    identity = {
        f"{_PROJECTION}/kernel": np.eye(config.hidden_size, dtype=np.float32),
        f"{_PROJECTION}/bias": np.zeros(config.hidden_size, np.float32),
    }
    note = "embeddings are of the hidden size and not projected; an identity projection was added"
    return config.replace(embedding_projection=True), {**weights, **identity}, (*notes, note)


def drop_identity(config: AlbertConfig, weights: Weights) -> Fitted:
    """Takes out a projection between equal widths that changes nothing, as `fit` adds it."""
    kernel, bias = weights.get(f"{_PROJECTION}/kernel"), weights.get(f"{_PROJECTION}/bias")
    identity = np.eye(config.hidden_size, dtype=np.float32)
    if config.embedding_size != config.hidden_size or kernel is None or bias is None:
        return config, weights, ()
    if bias.any() or not np.array_equal(kernel, identity):
        return config, weights, ()
    kept = {name: value for name, value in weights.items() if not name.startswith(_PROJECTION)}
    return (
        config.replace(embedding_projection=None),
        kept,
        ("the projection of the embeddings is the identity: left out",),
    )


def _fit_groups(config: AlbertConfig, weights: Weights) -> Fitted:
    layers = config.num_hidden_layers
    present = {int(match[2]) for match in map(weight_names.BLOCK.fullmatch, weights) if match}
    for groups in (config.num_hidden_groups, layers):
        theirs = [group_of_layer(layer, layers, groups) for layer in range(layers)]
        if config.layer_parts() == [*zip(theirs, theirs)] and present == {*range(groups)}:
            return config.replace(num_hidden_groups=groups), weights, ()
    note = (
        f"parameter_sharing {config.parameter_sharing!r} with num_hidden_groups {config.num_hidden_groups} was turned "
        f"into {layers} groups: each of the {layers} layers has a copy of the parameters it shared"
    )
    unshared = config.replace(parameter_sharing="none", num_hidden_groups=layers)
    return unshared, copied_to_layers(config, weights), (note,)
