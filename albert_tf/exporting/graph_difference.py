"""How far the vectors of the graph for inference are from those of the model it was made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.exporting import forward
from albert_tf.exporting.inference_model import InferenceModel
from albert_tf.pretrained_model import PretrainedModel

_ROWS, _LONGEST = 4, 64


class Difference(NamedTuple):
    """The largest difference of any number, and the root of the mean square of the model's own."""

    largest: float
    size: float

    def sentence(self, precision: str) -> str:
        """For a person."""
        return (
            f"in {precision} the vectors differ from the model's by {self.largest:.1e} at most, "
            f"where their own size is {self.size:.2f}"
        )


def graph_difference(model: PretrainedModel, graph: InferenceModel, seed: int = 0) -> Difference:
    """Asks both for the vectors of random pieces, in rows of several lengths."""
    config, random = model.config, np.random.default_rng(seed)
    length = min(_LONGEST, config.max_position_embeddings)
    sizes = np.linspace(length, 1, _ROWS).astype(int)
    mask = np.arange(length) < sizes[:, np.newaxis]
    arrays = {
        "input_ids": random.integers(config.vocab_size, size=mask.shape),
        "input_mask": mask,
        "segment_ids": random.integers(config.type_vocab_size, size=mask.shape),
    }
    inputs = {name: tf.constant(array, tf.int32) for name, array in arrays.items()}
    wanted, given = (forward.encoder_outputs(some, inputs)["sequence_output"].numpy()[mask] for some in (model, graph))
    return Difference(float(np.abs(given - wanted).max()), float(np.sqrt(np.square(wanted).mean())))
