"""What each variable is called in Hugging Face files: as PyTorch spells it, and as the TensorFlow classes did."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

PREFIX = "albert."  # before the names of the encoder, in every file but that of a bare AlbertModel

# The leaves of a variable's two names, and whether the matrix is stored transposed there.
_Leaves = tuple[tuple[str, str, bool], ...]
_DENSE: _Leaves = (("/kernel", ".weight", True), ("/bias", ".bias", False))
_NORM: _Leaves = (("/gamma", ".weight", False), ("/beta", ".bias", False))
_OUTPUT: _Leaves = (("output_weights", ".weight", False), ("output_bias", ".bias", False))
_TABLE: _Leaves = (("", ".weight", False),)
_PLAIN: _Leaves = (("", "", False),)

_BLOCK = "bert/encoder/transformer/group_#/inner_group_#/"
_HF_BLOCK = "albert.encoder.albert_layer_groups.#.albert_layers.#."

# Released name, Hugging Face name, leaves; each # is a number, the group and then the inner group.
_NAMES: tuple[tuple[str, str, _Leaves], ...] = (
    ("bert/embeddings/word_embeddings", "albert.embeddings.word_embeddings", _TABLE),
    ("bert/embeddings/token_type_embeddings", "albert.embeddings.token_type_embeddings", _TABLE),
    ("bert/embeddings/position_embeddings", "albert.embeddings.position_embeddings", _TABLE),
    ("bert/embeddings/LayerNorm", "albert.embeddings.LayerNorm", _NORM),
    ("bert/encoder/embedding_hidden_mapping_in", "albert.encoder.embedding_hidden_mapping_in", _DENSE),
    (_BLOCK + "attention_1/self/query", _HF_BLOCK + "attention.query", _DENSE),
    (_BLOCK + "attention_1/self/key", _HF_BLOCK + "attention.key", _DENSE),
    (_BLOCK + "attention_1/self/value", _HF_BLOCK + "attention.value", _DENSE),
    (_BLOCK + "attention_1/output/dense", _HF_BLOCK + "attention.dense", _DENSE),
    (_BLOCK + "LayerNorm", _HF_BLOCK + "attention.LayerNorm", _NORM),
    (_BLOCK + "ffn_1/intermediate/dense", _HF_BLOCK + "ffn", _DENSE),
    (_BLOCK + "ffn_1/intermediate/output/dense", _HF_BLOCK + "ffn_output", _DENSE),
    (_BLOCK + "LayerNorm_1", _HF_BLOCK + "full_layer_layer_norm", _NORM),
    ("bert/pooler/dense", "albert.pooler", _DENSE),
    ("cls/predictions/transform/dense", "predictions.dense", _DENSE),
    ("cls/predictions/transform/LayerNorm", "predictions.LayerNorm", _NORM),
    ("cls/predictions/output_bias", "predictions.bias", _PLAIN),
    ("cls/seq_relationship/", "sop_classifier.classifier", _OUTPUT),
    ("", "classifier", _OUTPUT),  # classifier, multiple choice and tagger
    ("cls/squad/", "qa_outputs", _OUTPUT),
    # No Hugging Face class has the head of SQuAD v2; a portable directory keeps its released names, with dots.
    ("start_logits/dense", "start_logits.dense", _DENSE),
    ("end_logits/dense_0", "end_logits.dense_0", _DENSE),
    ("end_logits/LayerNorm", "end_logits.LayerNorm", _NORM),
    ("end_logits/dense_1", "end_logits.dense_1", _DENSE),
    ("answer_class/dense_0", "answer_class.dense_0", _DENSE),
    ("answer_class/dense_1", "answer_class.dense_1", _DENSE),
)


def to_hugging_face(name: str) -> tuple[str, bool]:
    """The Hugging Face name of a released one, and whether the matrix is stored transposed there.

    Raises:
        KeyError: the name is not one of an ALBERT's.
    """
    translated = _translate(name, _to_table())
    if translated is None:
        raise KeyError(name)
    return translated


def is_alberts(name: str) -> bool:
    """Whether `to_hugging_face` knows a released name."""
    return _translate(name, _to_table()) is not None


def from_hugging_face(name: str) -> tuple[str, bool] | None:
    """The released name of a Hugging Face one, and whether the matrix is stored transposed there.

    The names of a bare AlbertModel have no prefix, and old files end in gamma and beta; both are understood. None
    for a name that is not one of an ALBERT's.
    """
    modern = re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", name))
    return _translate(modern, _from_table()) or _translate(PREFIX + modern, _from_table())


def from_keras(name: str) -> tuple[str, bool] | None:
    """The PyTorch name of one that a TensorFlow class wrote, and whether the matrix is stored transposed here.

    `[albert/]tf_albert_for_masked_lm/albert/encoder/albert_layer_groups_._0/…/query/kernel:0` is the long form; sharded
    files and safetensors have it without the model's name. None for a name without slashes, which is PyTorch's own.
    """
    if "/" not in name:
        return None
    name = re.sub(r"^(?:[^/]+/)?tf_albert\w*/", "", name).partition(":")[0]
    prefix, _, leaf = name.replace("_._", ".").replace("/", ".").rpartition(".")
    leaf = {"kernel": "weight", "gamma": "weight", "embeddings": "weight", "beta": "bias"}.get(leaf, leaf)
    return f"{prefix}.{leaf}", name.endswith("/kernel")


_Table = list[tuple["re.Pattern[str]", str, bool]]


def _pairs() -> Iterator[tuple[str, str, bool]]:
    for released, other, leaves in _NAMES:
        for released_leaf, other_leaf, transposed in leaves:
            yield released + released_leaf, other + other_leaf, transposed


def _entry(source: str, target: str) -> tuple[re.Pattern[str], str]:
    pattern = re.escape(source).replace(re.escape("#"), r"(\d+)")
    return re.compile(pattern), target.replace("#", r"\1", 1).replace("#", r"\2", 1)


@functools.cache
def _to_table() -> _Table:
    return [(*_entry(released, other), transposed) for released, other, transposed in _pairs()]


@functools.cache
def _from_table() -> _Table:
    return [(*_entry(other, released), transposed) for released, other, transposed in _pairs()]


def _translate(name: str, table: _Table) -> tuple[str, bool] | None:
    for pattern, target, transposed in table:
        match = pattern.fullmatch(name)
        if match:
            return match.expand(target), transposed
    return None
