"""What the signatures of every head are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf import sequences_graph
from albert_tf.pretrained_model import PretrainedModel
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.tokenizer import Tokenizer

Outputs = dict[str, tf.Tensor]
TOP_K = 5


class TextInput(NamedTuple):
    """An input with strings: its name, its dimensions (1 for [B]), and values of one row for a warm-up."""

    name: str
    rank: int = 1
    sample: Any = "Albert Einstein was born in Ulm in 1879."


class HeadSignatures(NamedTuple):
    """How one head answers; every output has a row for each row of the inputs.

    Attributes:
        of_ids: `input_ids`, `input_mask` and `segment_ids` [B,S] int32 to outputs.
        of_texts: one tensor of strings for each of `text_inputs` to outputs; None without a tokenizer.
        text_inputs: in order.
    """

    of_ids: Callable[[dict[str, tf.Tensor]], Outputs]
    of_texts: Callable[..., Outputs] | None
    text_inputs: tuple[TextInput, ...]


class Parts:
    """A model with what turns texts into its inputs.

    Args:
        model: with any head.
        tokenizer: of the model; None for signatures without texts.
        kind: of the task, whose settings decide lengths and windows; None where the head is for no task.
        max_seq_length: the most pieces of a sequence.
        pairs: whether a classifier takes two texts.
        top_k: how many pieces for each gap.
    """

    def __init__(
        self,
        model: PretrainedModel,
        tokenizer: Tokenizer | None,
        kind: TaskKind | None,
        *,
        max_seq_length: int,
        pairs: bool = False,
        top_k: int = TOP_K,
    ):
        self.model = model
        self.head = model.head
        self.given_tokenizer = tokenizer
        self.kind: Any = kind
        self.max_seq_length = max_seq_length
        self.pairs = pairs
        self.top_k = top_k
        self.modules: list[tf.Module] = []  # with the vocabulary, to be saved with the signatures

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, where there is one."""
        assert self.given_tokenizer is not None
        return self.given_tokenizer

    @functools.cached_property
    def tokenize(self) -> Any:
        """Strings [N] to pieces, ragged [N, None] int32."""
        return self._kept(self.tokenizer.to_graph())

    @functools.cached_property
    def encode_with_offsets(self) -> Any:
        """Code points, ragged [N, None], to `aligned_texts.EncodedTexts`."""
        from albert_tf.offsets_graph import offsets_graph  # needs TensorFlow Text

        return self._kept(offsets_graph(self.tokenizer))

    def pack(self, *texts: tf.Tensor) -> sequences_graph.PackedTexts:
        """One tensor of strings [B], or two, as the inputs of a model."""
        pieces = [self.tokenize(some) for some in texts]
        second = pieces[1] if len(pieces) > 1 else None
        return sequences_graph.pack(pieces[0], second, self.tokenizer, self.max_seq_length)

    def _kept(self, module: Any) -> Any:
        self.modules.append(module)
        return module


def text_inputs(pairs: bool) -> tuple[TextInput, ...]:
    """`text`, or for pairs `text_a` and `text_b`."""
    if not pairs:
        return (TextInput("text"),)
    return TextInput("text_a"), TextInput("text_b", sample="He died in Princeton.")
