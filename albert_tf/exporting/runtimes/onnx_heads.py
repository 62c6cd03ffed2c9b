"""The heads as ONNX graphs; `ids_outputs` names their outputs.

B rows, S their length, H hidden size, C labels, V vocabulary, K starts that are followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from albert_tf.exporting.runtimes.onnx_encoder import MASK, SEGMENTS, Network
from albert_tf.exporting.runtimes.onnx_graph import ACTIVATIONS
from albert_tf.head_config import MULTI_LABEL, REGRESSION, HeadConfig
from albert_tf.task_heads import NOT_ALLOWED

Outputs = dict[str, str]  # name of an output to the value that it is


class Head:
    """Adds one head.

    Args:
        network: the parts of the model.
        head: what stands on it.
        search: k1 and k2 of an answerable span.
    """

    def __init__(self, network: Network, head: HeadConfig, search: tuple[int, int] = (0, 0)):
        self.network = network
        self.graph = network.graph
        self.head = head
        self.search = search

    def outputs(self) -> Outputs:
        """All outputs of the model."""
        only_first = self.network.is_packed or self.head.kind in ("classifier", "multiple_choice")
        return _HEADS[self.head.kind](self, self.network.sequence_output(only_first))

    def encoder(self, sequence_output: str) -> Outputs:
        outputs = {} if self.network.is_packed else {"sequence_output": sequence_output}
        if "bert/pooler/dense/kernel" in self.network.weights:
            outputs["pooled_output"] = self.network.pooled_output(sequence_output)
        return outputs

    def classifier(self, sequence_output: str) -> Outputs:
        logits = self.network.output_layer(self.network.pooled_output(sequence_output), "")
        if self.head.problem == REGRESSION:
            return {"value": self._column(logits, 0)}
        if self.head.problem == MULTI_LABEL:
            probabilities = self.graph.op("Sigmoid", logits)
            is_label = self.graph.op("Greater", probabilities, self.graph.scalar(0.5))
            return {"logits": logits, "probabilities": probabilities, "is_label": is_label}
        probabilities = self.graph.op("Softmax", logits, axis=-1)
        best = self.graph.op("ReduceMax", probabilities, self.graph.integers(-1), keepdims=0)
        return {"logits": logits, "probabilities": probabilities, "probability": best}

    def multiple_choice(self, sequence_output: str) -> Outputs:
        logits = self.network.output_layer(self.network.pooled_output(sequence_output), "")
        return {"logits": self._column(logits, 0)}

    def tagger(self, sequence_output: str) -> Outputs:
        logits = self.network.output_layer(sequence_output, "")
        return {"logits": logits, "probabilities": self.graph.op("Softmax", logits, axis=-1)}

    def span(self, sequence_output: str) -> Outputs:
        logits = self.network.output_layer(sequence_output, "cls/squad/")
        return {"start_logits": self._column(logits, 0), "end_logits": self._column(logits, 1)}

    def masked_lm(self, sequence_output: str) -> Outputs:
        network, name = self.network, "cls/predictions/transform"
        inner = ACTIVATIONS[network.config.hidden_act](self.graph, network.dense(sequence_output, f"{name}/dense"))
        inner = network.norm(inner, f"{name}/LayerNorm")
        table = network.weights["bert/embeddings/word_embeddings"]
        bias = network.weights["cls/predictions/output_bias"]
        return {"masked_lm_logits": self.graph.tied_product(inner, "bert/embeddings/word_embeddings", table, bias)}

    def answerable_span(self, sequence_output: str) -> Outputs:
        """As `AnswerableSpanHead`: the search sees the K likeliest starts."""
        op, (starts, ends) = self.graph.op, self.search
        mask = self._answer_mask()  # [B,S] float32, 1 where no answer may be
        start_logits = self._masked(
            self._column(self.network.dense(sequence_output, "start_logits/dense", exact=True), 0), mask
        )
        log_probs, start_index = op(
            "TopK", op("LogSoftmax", start_logits, axis=-1), self.graph.integers(starts), outputs=2, axis=-1
        )
        end_logits = self._end_logits(sequence_output, start_index, mask)
        end_log_probs, end_index = op(
            "TopK", op("LogSoftmax", end_logits, axis=-1), self.graph.integers(ends), outputs=2, axis=-1
        )  # [B,k1,k2]
        flat = self.graph.integers(0, starts * ends)
        return {
            "start_logits": start_logits,
            "cls_logits": self._answerability(sequence_output, start_logits),
            "start_top_log_probs": log_probs,
            "start_top_index": op("Cast", start_index, to="int32"),
            "end_top_log_probs": op("Reshape", end_log_probs, flat),
            "end_top_index": op("Cast", op("Reshape", end_index, flat), to="int32"),
        }

    def _end_logits(self, sequence_output: str, starts: str, mask: str) -> str:
        """[B,S,H], [B,K], [B,S] to [B,K,S]."""
        op, graph, weights = self.graph.op, self.graph, self.network.weights
        width, kernel = self.network.config.hidden_size, weights["end_logits/dense_0/kernel"]
        rows = op("Unsqueeze", starts, graph.integers(2))
        start_vectors = op("GatherND", sequence_output, rows, batch_dims=1)  # [B,K,H]
        of_sequence = graph.product(sequence_output, "end_logits/dense_0/sequence", kernel[:width])
        of_start = graph.product(
            start_vectors, "end_logits/dense_0/start", kernel[width:], weights["end_logits/dense_0/bias"]
        )
        hidden = op(
            "Add",
            op("Unsqueeze", of_sequence, graph.integers(1)),
            op("Unsqueeze", of_start, graph.integers(2)),
        )  # [B,K,S,H]
        hidden = self.network.norm(op("Tanh", hidden), "end_logits/LayerNorm")
        logits = self._column(self.network.dense(hidden, "end_logits/dense_1", exact=True), 0)
        return self._masked(logits, op("Unsqueeze", mask, graph.integers(1)))

    def _answerability(self, sequence_output: str, start_logits: str) -> str:
        op, graph, network = self.graph.op, self.graph, self.network
        chances = op("Unsqueeze", op("Softmax", start_logits, axis=-1), graph.integers(1))  # [B,1,S]
        start_vector = op("Squeeze", op("MatMul", chances, sequence_output), graph.integers(1))  # [B,H]
        features = op("Concat", start_vector, network.first(sequence_output), axis=-1)
        hidden = op("Tanh", network.dense(features, "answer_class/dense_0"))
        kernel = network.weights["answer_class/dense_1/kernel"]
        return self._column(graph.product(hidden, "answer_class/dense_1", kernel, exact=True), 0)

    def _answer_mask(self) -> str:
        """1 where an answer can neither start nor end: all but position 0 and the second segment without its [SEP]."""
        op, graph = self.graph.op, self.graph
        in_context = op("Cast", op("Mul", SEGMENTS, MASK), to="float32")  # [B,S]
        last = np.iinfo(np.int64).max
        others = op("Slice", in_context, graph.integers(1), graph.integers(last), graph.integers(1))
        following = op("Pad", others, graph.integers(0, 0, 0, 1))
        inside = op("Mul", in_context, following)  # the last piece of the context is [SEP]
        length = op("Shape", MASK, start=1, end=2)
        first = op(
            "Pad",
            graph.constant("one", [1.0]),
            op("Concat", graph.integers(0), op("Sub", length, graph.integers(1)), axis=0),
        )
        return op("Sub", graph.scalar(1.0), op("Max", inside, first))  # type: ignore[no-any-return]

    def _masked(self, logits: str, mask: str) -> str:
        op, graph = self.graph.op, self.graph
        kept = op("Mul", logits, op("Sub", graph.scalar(1.0), mask))
        return op("Sub", kept, op("Mul", mask, graph.scalar(NOT_ALLOWED)))  # type: ignore[no-any-return]

    def _column(self, x: str, number: int) -> str:
        """[...,C] to [...]."""
        return self.graph.op("Gather", x, self.graph.constant(f"column_{number}", number, np.int64), axis=-1)  # type: ignore[no-any-return]


_HEADS: Mapping[str, Callable[[Head, str], Outputs]] = {
    "encoder": Head.encoder,
    "pretraining": Head.masked_lm,
    "masked_lm": Head.masked_lm,
    "classifier": Head.classifier,
    "multiple_choice": Head.multiple_choice,
    "tagger": Head.tagger,
    "span": Head.span,
    "answerable_span": Head.answerable_span,
}
