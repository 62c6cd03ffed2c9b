"""The heads of fine-tuning: classes, tags, answer spans. Every logit is computed in float32.

Letters: B examples, S positions, H hidden size, C classes.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers import Float32Layer, LayerNorm, build_child, dense, dropout, matmul, truncated_normal

# As released, whatever the config's initializer_range.
HEAD_INITIALIZER_RANGE = 0.02
NOT_ALLOWED = 1e30  # taken from the logit of a position that cannot be an answer; as released


class OutputLayer(Float32Layer):
    """x @ output_weights^T + output_bias: [...,H] to [...,C] float32; the weights lie as in released checkpoints."""

    def __init__(self, config: AlbertConfig, classes: int, name: str, **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.classes = classes

    def build(self, input_shape: Any = None) -> None:
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(self.classes, self.config.hidden_size),
            initializer=truncated_normal(HEAD_INITIALIZER_RANGE),
        )
        self.output_bias = self.add_weight(name="output_bias", shape=(self.classes,), initializer="zeros")
        self.built = True

    def logits(self, x: tf.Tensor) -> tf.Tensor:
        """[...,H] to [...,C]."""
        weights = tf.convert_to_tensor(self.output_weights)
        return tf.matmul(x, weights, transpose_b=True) + tf.convert_to_tensor(self.output_bias)


class ClassifierHead(OutputLayer):
    """Dropout, then one score for each class: [B,H] to [B,C] (released run_classifier.py; RACE with C = 1)."""

    def __init__(self, config: AlbertConfig, classes: int, name: str = "classifier", **kwargs: Any):
        super().__init__(config, classes, name=name, **kwargs)

    def call(self, hidden: tf.Tensor, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """[...,H] float32 to [...,C] float32; `dropout_seed` int32 [2], or None for no dropout."""
        return self.logits(dropout(hidden, self.config.classifier_dropout_prob, dropout_seed))


class TaggerHead(ClassifierHead):
    """The classifier at every position: [B,S,H] to [B,S,C] (Hugging Face's token classification)."""

    def __init__(self, config: AlbertConfig, classes: int, name: str = "tagger", **kwargs: Any):
        super().__init__(config, classes, name=name, **kwargs)


class SpanHead(OutputLayer):
    """Scores of each position as start and as end of the answer, padding and question too (SQuAD v1 as released)."""

    def __init__(self, config: AlbertConfig, name: str = "span", **kwargs: Any):
        super().__init__(config, 2, name=name, **kwargs)

    def call(self, sequence_output: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """[B,S,H] to start logits and end logits, [B,S] float32 each."""
        start_logits, end_logits = tf.unstack(self.logits(sequence_output), axis=-1)
        return start_logits, end_logits


class AnswerableSpanHead(Float32Layer):
    """Start, end given the start, and whether there is an answer (SQuAD v2, released squad_utils.py).

    The end head sees [sequence output ; start vector]; the answerability head sees
    [softmax(start)-weighted sum of the sequence output ; sequence output at position 0].

    Args:
        config: the sizes.
        start_n_top: k1, how many starts are followed.
        end_n_top: k2, how many ends are kept for each of them.
    """

    def __init__(
        self,
        config: AlbertConfig,
        start_n_top: int = 5,
        end_n_top: int = 5,
        name: str = "answerable_span",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.start_n_top = start_n_top
        self.end_n_top = end_n_top
        width, spread = config.hidden_size, config.initializer_range
        self.start = dense(1, spread, "start")
        self.end_dense_0 = dense(width, spread, "end_dense_0")
        self.end_layer_norm = LayerNorm(config.layer_norm_eps, name="end_LayerNorm")
        self.end_dense_1 = dense(1, spread, "end_dense_1")
        self.answer_dense_0 = dense(width, spread, "answer_dense_0")
        self.answer_dense_1 = tf.keras.layers.Dense(
            1, use_bias=False, kernel_initializer=truncated_normal(spread), name="answer_dense_1"
        )

    def build(self, input_shape: Any = None) -> None:
        width = self.config.hidden_size
        for child in (self.start, self.end_layer_norm, self.end_dense_1, self.answer_dense_1):
            build_child(child, None, width)
        for child in (self.end_dense_0, self.answer_dense_0):
            build_child(child, None, 2 * width)
        self.built = True

    def call(
        self,
        sequence_output: tf.Tensor,
        p_mask: tf.Tensor,
        start_positions: tf.Tensor | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> dict[str, tf.Tensor]:
        """Scores answers.

        Args:
            sequence_output: [B,S,H] float32.
            p_mask: [B,S], 1 where an answer can neither start nor end; position 0, [CLS], is allowed, and stands for
                no answer.
            start_positions: [B] or [B,1] integer, the true starts, which the end is then scored for.
            dropout_seed: int32 [2], or None for no dropout.

        Returns:
            A dict, float32 but for the indices: `start_logits` [B,S]; `cls_logits` [B], above 0 where there is no
            answer; `end_logits` [B,S], with `start_positions`; and of the search, which never sees `start_positions`,
            `start_top_log_probs` and `start_top_index` [B,k1], `end_top_log_probs` and `end_top_index` [B,k1*k2], the
            k2 ends of the first start before those of the second. k1 and k2 are at most S.
        """
        p_mask = tf.cast(p_mask, tf.float32)
        start_logits = _masked(self._scores(self.start, sequence_output), p_mask)
        outputs = {
            "start_logits": start_logits,
            "cls_logits": self._answerability(sequence_output, tf.nn.softmax(start_logits), dropout_seed),
        }
        if start_positions is not None:
            starts = tf.reshape(start_positions, [-1, 1])
            outputs["end_logits"] = self._end_logits(sequence_output, starts, p_mask)[:, 0]
        return {**outputs, **self._beam(sequence_output, start_logits, p_mask)}

    def _scores(self, layer: Any, hidden: tf.Tensor) -> tf.Tensor:
        """[...,H] to [...], by a dense layer of width 1."""
        # Not tf.matmul: with [B,1,S,H] and a matrix it writes outside its memory in TensorFlow 2.21 on CPUs.
        scores = tf.einsum("...h,h->...", hidden, tf.convert_to_tensor(layer.kernel)[:, 0])
        return scores if layer.bias is None else scores + tf.convert_to_tensor(layer.bias)[0]

    def _end_logits(self, sequence_output: tf.Tensor, starts: tf.Tensor, p_mask: tf.Tensor) -> tf.Tensor:
        """The end's logits for each of K starts: [B,S,H], [B,K], [B,S] to [B,K,S]."""
        width, dtype = self.config.hidden_size, self.product_dtype
        start_vectors = tf.gather(sequence_output, starts, batch_dims=1)  # [B,K,H]
        # The product with [sequence ; start] is the sum of two products, of which the first is the same for all starts.
        kernel = tf.convert_to_tensor(self.end_dense_0.kernel)
        of_sequence = tf.cast(matmul(tf.cast(sequence_output, dtype), kernel[:width]), tf.float32)  # [B,S,H]
        of_start = tf.cast(matmul(tf.cast(start_vectors, dtype), kernel[width:]), tf.float32)  # [B,K,H]
        hidden = of_sequence[:, tf.newaxis] + of_start[:, :, tf.newaxis] + tf.convert_to_tensor(self.end_dense_0.bias)
        hidden = self.end_layer_norm(tf.tanh(hidden))  # [B,K,S,H]
        return _masked(self._scores(self.end_dense_1, hidden), p_mask[:, tf.newaxis])

    def _beam(self, sequence_output: tf.Tensor, start_logits: tf.Tensor, p_mask: tf.Tensor) -> dict[str, tf.Tensor]:
        length = sequence_output.shape[1]
        start_n, end_n = (min(n, length or n) for n in (self.start_n_top, self.end_n_top))
        start_log_probs, start_index = tf.math.top_k(tf.nn.log_softmax(start_logits), start_n)
        end_logits = self._end_logits(sequence_output, start_index, p_mask)
        end_log_probs, end_index = tf.math.top_k(tf.nn.log_softmax(end_logits), end_n)  # [B,k1,k2]
        return {
            "start_top_log_probs": start_log_probs,
            "start_top_index": start_index,
            "end_top_log_probs": tf.reshape(end_log_probs, [-1, start_n * end_n]),
            "end_top_index": tf.reshape(end_index, [-1, start_n * end_n]),
        }

    def _answerability(
        self, sequence_output: tf.Tensor, start_probabilities: tf.Tensor, dropout_seed: tf.Tensor | None
    ) -> tf.Tensor:
        """[B,S,H] and [B,S] to [B]."""
        start_vector = tf.einsum("bs,bsh->bh", start_probabilities, sequence_output)
        features = tf.concat([start_vector, sequence_output[:, 0]], axis=-1)
        kernel, bias = tf.convert_to_tensor(self.answer_dense_0.kernel), tf.convert_to_tensor(self.answer_dense_0.bias)
        hidden = dropout(tf.tanh(tf.matmul(features, kernel) + bias), self.config.classifier_dropout_prob, dropout_seed)
        return self._scores(self.answer_dense_1, hidden)


def _masked(logits: tf.Tensor, p_mask: tf.Tensor) -> tf.Tensor:
    return logits * (1.0 - p_mask) - NOT_ALLOWED * p_mask
