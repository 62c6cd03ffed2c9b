"""Parameters that layers share, as parameters of each layer's own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from albert_tf import weight_names
from albert_tf.config import AlbertConfig


def copied_to_layers(config: AlbertConfig, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights with group l for layer l, each half of it a copy of the one that the layer had (paper section 3.1).

    Args:
        config: which layers share what.
        weights: released name to array; what is in no block stays as it is, and a group that no layer uses is left out.
    """
    copies = {name: value for name, value in weights.items() if not weight_names.BLOCK.fullmatch(name)}
    for match in filter(None, map(weight_names.BLOCK.fullmatch, weights)):
        half = 1 if weight_names.is_feed_forward(match[0]) else 0
        for layer, groups in enumerate(config.layer_parts()):
            if int(match[2]) == groups[half]:
                copies[f"{match[1]}{layer}{match[3]}"] = weights[match[0]]
    return copies
