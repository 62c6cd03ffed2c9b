"""A passage, a question and options to the likeliest option.

B questions, K options, N sequences: one for each option.
"""

from __future__ import annotations

import tensorflow as tf

from albert_tf import sequences, sequences_graph
from albert_tf.exporting import forward
from albert_tf.exporting.parts import HeadSignatures, Outputs, Parts, TextInput
from albert_tf.task_kinds.choices import BLANK

_NOT_AN_OPTION = -1e9  # the logit of an option that is not there
_INPUTS = (
    TextInput("passage", sample="Albert Einstein was born in Ulm in 1879. He died in Princeton."),
    TextInput("question", sample="Where was he born?"),
    TextInput("options", rank=2, sample=["Ulm", "Princeton", "Bern", "Berlin"]),
)


def signatures(parts: Parts) -> HeadSignatures:
    """From ids of one option in each row `logits` [N]: those of one question are to be compared.

    From `passage` [B], `question` [B] and `options` [B,K], where "" is no option: `label` [B] int32, the number of the
    likeliest counted from 0, its text `option` [B] and `probability` [B]; `probabilities` [B,K]; and `is_cut` [B].
    """

    def logits_of(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        alone = {name: value[:, tf.newaxis] for name, value in inputs.items()}  # [N,1,S]
        return forward.head_outputs(parts.model, alone)[:, 0]

    def of_texts(passages: tf.Tensor, questions: tf.Tensor, options: tf.Tensor) -> Outputs:
        shape = tf.shape(options)
        owners = tf.repeat(tf.range(shape[0]), shape[1])
        texts = with_options(tf.gather(questions, owners), tf.reshape(options, [-1]))
        inputs, is_cut = _packed(parts, passages, owners, texts)
        is_there = options != ""
        logits = tf.where(is_there, tf.reshape(logits_of(inputs), shape), _NOT_AN_OPTION)
        probabilities = tf.nn.softmax(logits)
        label = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {
            "label": label,
            "option": tf.gather(options, label, batch_dims=1),
            "probability": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
            "is_cut": tf.reduce_any(tf.reshape(is_cut, shape) & is_there, axis=-1),
        }

    return HeadSignatures(
        lambda inputs: {"logits": logits_of(inputs)}, None if parts.given_tokenizer is None else of_texts, _INPUTS
    )


def with_options(questions: tf.Tensor, options: tf.Tensor) -> tf.Tensor:
    """`task_kinds.choices.question_with` of strings [N] and [N]."""
    between = tf.strings.split(questions, BLANK)  # [N, None]
    is_last = tf.concat([between.value_rowids()[1:] != between.value_rowids()[:-1], [True]], 0)
    option = tf.gather(options, between.value_rowids())
    filled = between.with_values(
        tf.where(is_last[: tf.size(between.values)], between.values, tf.strings.join([between.values, option]))
    )
    has_blank = between.row_lengths() > 1
    return tf.where(
        has_blank, tf.strings.reduce_join(filled, axis=1), tf.strings.join([questions, options], separator=" ")
    )


def _packed(
    parts: Parts, passages: tf.Tensor, owners: tf.Tensor, texts: tf.Tensor
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """The inputs [N,S], cut as by `ChoiceKind`, and where pieces were lost, bool [N]."""
    answers = parts.tokenize(texts)
    kept_sizes = tf.minimum(answers.row_lengths(), parts.kind.max_qa_length)
    passage = tf.gather(parts.tokenize(passages), owners)
    room = parts.kind.max_seq_length - sequences.SPECIALS_OF_PAIR - kept_sizes
    inputs = sequences_graph.assemble(
        sequences_graph.first_pieces(passage, room), sequences_graph.last_pieces(answers, kept_sizes), parts.tokenizer
    )
    return inputs, (passage.row_lengths() > room) | (answers.row_lengths() > kept_sizes)
