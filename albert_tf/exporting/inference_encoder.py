"""The encoder as a graph for answering alone: fast, in plain operations, and without a gradient.

What it does otherwise than `albert_tf.encoder`, which computes the same:

* the weights lie ready for its products, in bfloat16 or float16 if wanted; the residual and LayerNorm are float32;
* products are made of tokens alone, and padding comes in for the attention only;
* where the first position is all that is asked for, the last block computes no other one;
* a block that is repeated is in the graph once (`inference_block`);
* LayerNorm, products with bias and GELU, and scores with factor and mask are written in the form that TensorFlow's
  remapper takes for one operation of oneDNN.

B rows, S their padded length, T tokens without padding, E embedding width, H hidden size.
"""

from __future__ import annotations

import itertools

import tensorflow as tf

from albert_tf.encoder import attention_bias
from albert_tf.exporting.graph_layers import APART, dense, layer_norm
from albert_tf.exporting.graph_weights import GraphWeights
from albert_tf.exporting.inference_block import InferenceBlock
from albert_tf.exporting.inference_weights import EMBEDDINGS, block_parts, inference_weights
from albert_tf.exporting.token_packing import TokenPacking
from albert_tf.models import AlbertModel
from albert_tf.pretrained_model import ENCODER_INPUTS

_SPECS = [tf.TensorSpec([None, None], tf.int32, name=name) for name in ENCODER_INPUTS]


class InferenceEncoder:
    """Ids to vectors.

    Args:
        albert: whose weights are taken over as they are now; its tables of embeddings are read as variables.
        precision: of the products, "float32", "bfloat16" or "float16".

    Attributes:
        sequence: `input_ids`, `input_mask` and `segment_ids` [B,S] int32 to [B,S,H] float32, zero at padding.
        first: the same inputs to the first position's vector, [B,H] float32.
        variables: what has to be saved with it beside the model's own variables.
    """

    def __init__(self, albert: AlbertModel, precision: str = "float32"):
        config = self._config = albert.config
        self._dtype = tf.as_dtype(precision)
        self._embeddings = albert.embeddings
        self._weights = GraphWeights(inference_weights(albert, precision), constant=precision != "float32")
        self.variables = self._weights.variables
        parts = block_parts(config)
        blocks = {names: InferenceBlock(config, self._weights, *names, self._dtype) for names in set(parts)}
        width = tf.TensorSpec([None, config.embedding_size], tf.float32)
        self._project = tf.function(self._normalised, input_signature=[width], **APART)
        self._runs = [(blocks[names], len(list(run))) for names, run in itertools.groupby(parts)]
        # Functions, so that all signatures of a SavedModel call the same ones.
        self.sequence = tf.function(self._sequence, input_signature=_SPECS, autograph=False)
        self.first = tf.function(self._first, input_signature=_SPECS, autograph=False)

    def _sequence(self, input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> tf.Tensor:
        packing = TokenPacking.of_mask(input_mask)
        return packing.with_zeros(self._encode(input_ids, segment_ids, packing, only_first=False))

    def _first(self, input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> tf.Tensor:
        return self._encode(input_ids, segment_ids, TokenPacking.of_mask(input_mask), only_first=True)

    def _encode(
        self, input_ids: tf.Tensor, segment_ids: tf.Tensor, packing: TokenPacking, only_first: bool
    ) -> tf.Tensor:
        """To [T,H], or with `only_first` to [B,H]."""
        hidden = self._embed(input_ids, segment_ids, packing)
        bias = tf.cast(attention_bias(packing.is_piece), self._dtype)  # [B,1,1,S]
        for number, (block, times) in enumerate(self._runs):
            is_last = only_first and number == len(self._runs) - 1
            hidden = block.repeated(hidden, bias, packing, times - 1 if is_last else times)
            hidden = block.first(hidden, bias, packing) if is_last else hidden
        return hidden

    def _embed(self, input_ids: tf.Tensor, segment_ids: tf.Tensor, packing: TokenPacking) -> tf.Tensor:
        """[B,S] to [T,H] float32."""
        tables = self._embeddings
        words = tf.gather(tf.convert_to_tensor(tables.word_embeddings), input_ids)
        segments = tf.gather(tf.convert_to_tensor(tables.token_type_embeddings), segment_ids)
        positions = tf.convert_to_tensor(tables.position_embeddings)[: tf.shape(input_ids)[1]]
        joined = packing.pack(tf.reshape(words + segments + positions, [-1, self._config.embedding_size]))
        hidden: tf.Tensor = self._project(joined)
        return hidden

    def _normalised(self, joined: tf.Tensor) -> tf.Tensor:
        """[T,E] to [T,H]."""
        weights = self._weights(EMBEDDINGS)
        embedded = layer_norm(joined, weights["norm"], self._config.layer_norm_eps)
        if "projection" not in weights:
            return embedded
        return tf.cast(dense(tf.cast(embedded, self._dtype), weights["projection"]), tf.float32)
