"""The encoder as an ONNX graph, from the weights under their released names.

B rows, S their length, E embedding size, H hidden size, N heads, D = H / N.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.encoder import MASK_BIAS
from albert_tf.exporting.runtimes import block_weights
from albert_tf.exporting.runtimes.onnx_graph import ACTIVATIONS, Graph

Weights = Mapping[str, np.ndarray]
SIZES = ("rows", "length")
IDS, MASK, SEGMENTS = "input_ids", "input_mask", "segment_ids"


class Network:
    """Adds the parts of a model to a graph.

    Args:
        graph: to add to.
        config: the sizes.
        weights: released name to values; layers that share a part share its constants.

    Attributes:
        inputs: of the graph, all int32: name to what its sizes are called.
        output_sizes: what the first sizes of an output are called.
        is_packed: whether a row holds several texts, of which only the first positions are computed to the end.
    """

    inputs: Mapping[str, tuple[str, ...]] = dict.fromkeys((IDS, MASK, SEGMENTS), SIZES)
    output_sizes: tuple[str, ...] = SIZES
    is_packed = False

    def __init__(self, graph: Graph, config: AlbertConfig, weights: Weights):
        self.graph = graph
        self.config = config
        self.weights = weights

    def sequence_output(self, only_first: bool = False) -> str:
        """[B,S,H] of the inputs; with `only_first` [B,1,H], and the last block computes no other position."""
        hidden = self._embeddings()
        unseen = self.graph.op("Sub", self.graph.scalar(1.0), self.graph.op("Cast", self._seen(), to="float32"))
        bias = self.graph.op("Mul", unseen, self.graph.scalar(MASK_BIAS))
        blocks = block_weights.names(self.config)
        for number, (attention, feed_forward) in enumerate(blocks):
            hidden = self._attention(hidden, bias, attention, only_first and number == len(blocks) - 1)
            hidden = self._feed_forward(hidden, feed_forward)
        return hidden

    def pooled_output(self, sequence_output: str) -> str:
        """[B,S,H] to [B,H]."""
        return self.graph.op("Tanh", self.dense(self.first(sequence_output), "bert/pooler/dense"))  # type: ignore[no-any-return]

    def first(self, hidden: str) -> str:
        """[B,S,H], or what `sequence_output` gives with `only_first`, to [B,H]: that of position 0."""
        return self.graph.op("Gather", hidden, self.graph.constant("first", 0, np.int64), axis=1)  # type: ignore[no-any-return]

    def dense(self, x: str, name: str, *, exact: bool = False) -> str:
        """A dense layer with its bias, [...,in] to [...,out]; see `Graph.product`."""
        kernel, bias = self.weights[f"{name}/kernel"], self.weights[f"{name}/bias"]
        return self.graph.product(x, name, kernel, bias, exact=exact)

    def output_layer(self, x: str, prefix: str) -> str:
        """One whose weights lie transposed, as in the released heads."""
        kernel, bias = self.weights[f"{prefix}output_weights"].T, self.weights[f"{prefix}output_bias"]
        return self.graph.product(x, f"{prefix}output", kernel, bias, exact=True)

    def norm(self, x: str, name: str) -> str:
        """LayerNorm over the last axis."""
        gamma, beta = (
            self.graph.constant(f"{name}/{part}", self.weights[f"{name}/{part}"]) for part in ("gamma", "beta")
        )
        return self.graph.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=self.config.layer_norm_eps)  # type: ignore[no-any-return]

    def _seen(self) -> str:
        """1 where a position is read by others, [B,1,1,S]."""
        return self.graph.op("Unsqueeze", MASK, self.graph.integers(1, 2))  # type: ignore[no-any-return]

    def _positions(self, table: str) -> str:
        """The table of positions to the rows to add, [S,E]."""
        length = self.graph.op("Shape", IDS, start=1, end=2)
        return self.graph.op("Slice", table, self.graph.integers(0), length, self.graph.integers(0))  # type: ignore[no-any-return]

    def _embeddings(self) -> str:
        graph, prefix = self.graph, "bert/embeddings/"
        words = graph.rows(IDS, f"{prefix}word_embeddings", self.weights[f"{prefix}word_embeddings"])
        segments = graph.constant(f"{prefix}token_type_embeddings", self.weights[f"{prefix}token_type_embeddings"])
        positions = graph.constant(f"{prefix}position_embeddings", self.weights[f"{prefix}position_embeddings"])
        summed = graph.op("Add", words, graph.op("Gather", segments, SEGMENTS))
        summed = graph.op("Add", summed, self._positions(positions))
        embedded = self.norm(summed, f"{prefix}LayerNorm")
        if not self.config.has_projection:
            return embedded
        return self.dense(embedded, "bert/encoder/embedding_hidden_mapping_in")

    def _attention(self, hidden: str, bias: str, block: str, only_first: bool) -> str:
        graph, config, name = self.graph, self.config, f"{block}/attention_1/self"
        kernel, biases = block_weights.query_key_value(self.weights, name, config.head_size)
        joined = graph.product(hidden, f"{name}/query_key_value", kernel, biases)
        width, shape = config.hidden_size, graph.integers(0, 0, config.num_attention_heads, config.head_size)
        split = graph.op("Split", joined, graph.integers(width, width, width), outputs=3, axis=-1)
        if only_first:
            split[0], hidden = self._first_before(split[0]), self._first_before(hidden)
        query, key, value = (
            graph.op("Transpose", graph.op("Reshape", part, shape), perm=order)
            for part, order in zip(split, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        )  # [B,N,S,D], [B,N,D,S], [B,N,S,D]
        scores = graph.op("Add", graph.op("MatMul", query, key), bias)
        context = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)
        context = graph.op("Reshape", graph.op("Transpose", context, perm=[0, 2, 1, 3]), graph.integers(0, 0, width))
        if only_first:
            context, hidden = self._first_behind(context), self._first_behind(hidden)
        output = self.dense(context, f"{block}/attention_1/output/dense")
        return self.norm(graph.op("Add", hidden, output), f"{block}/LayerNorm")

    def _first_before(self, hidden: str) -> str:
        """The first positions before the last attention, where it can leave out the others: [B,S,H] to [B,1,H]."""
        bounds = (self.graph.integers(number) for number in (0, 1, 1))
        return self.graph.op("Slice", hidden, *bounds)  # type: ignore[no-any-return]

    def _first_behind(self, hidden: str) -> str:
        """The first positions behind the last attention."""
        return hidden

    def _feed_forward(self, hidden: str, block: str) -> str:
        name = f"{block}/ffn_1/intermediate"
        inner = ACTIVATIONS[self.config.hidden_act](self.graph, self.dense(hidden, f"{name}/dense"))
        output = self.dense(inner, f"{name}/output/dense")
        return self.norm(self.graph.op("Add", hidden, output), f"{block}/LayerNorm_1")
