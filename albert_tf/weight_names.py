"""What each variable is called in released TF1 checkpoints, the names that are used throughout, and its shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tf.config import AlbertConfig
    from albert_tf.head_config import HeadConfig

# A variable of a block: its name up to the group's number, that number, what follows, and in that the inner group's.
BLOCK = re.compile(r"(bert/encoder/transformer/group_)(\d+)(/inner_group_(\d+)/.+)")


def named_variables(model: Any) -> dict[str, Any]:
    """Released name to variable, for an `AlbertModel` or a model that holds one as `.albert`, with any heads."""
    names: dict[str, Any] = {}
    _add_albert(names, getattr(model, "albert", model))
    for attribute, add in _HEAD_VARIABLES.items():
        if hasattr(model, attribute):
            add(names, getattr(model, attribute))
    return names


def _add_albert(names: dict[str, Any], albert: Any) -> None:
    embeddings = albert.embeddings
    for table in ("word_embeddings", "token_type_embeddings", "position_embeddings"):
        names[f"bert/embeddings/{table}"] = getattr(embeddings, table)
    _add_layer_norm(names, "bert/embeddings/LayerNorm", embeddings.layer_norm)
    if embeddings.projection is not None:
        _add_dense(names, "bert/encoder/embedding_hidden_mapping_in", embeddings.projection)
    # A part shared over layers has the group's number; one of its own per layer has the layer's: with everything
    # shared or nothing shared these are exactly the released names.
    for key, attention in albert.encoder.attention_parts.items():
        block = f"bert/encoder/transformer/{key}"
        for part in ("query", "key", "value"):
            _add_dense(names, f"{block}/attention_1/self/{part}", getattr(attention, part))
        _add_dense(names, f"{block}/attention_1/output/dense", attention.output_dense)
        _add_layer_norm(names, f"{block}/LayerNorm", attention.layer_norm)
    for key, feed_forward in albert.encoder.feed_forward_parts.items():
        block = f"bert/encoder/transformer/{key}"
        _add_dense(names, f"{block}/ffn_1/intermediate/dense", feed_forward.intermediate)
        _add_dense(names, f"{block}/ffn_1/intermediate/output/dense", feed_forward.output_dense)
        _add_layer_norm(names, f"{block}/LayerNorm_1", feed_forward.layer_norm)
    if albert.pooler is not None:
        _add_dense(names, "bert/pooler/dense", albert.pooler.dense)


def _add_masked_lm(names: dict[str, Any], head: Any) -> None:
    _add_dense(names, "cls/predictions/transform/dense", head.transform)
    _add_layer_norm(names, "cls/predictions/transform/LayerNorm", head.layer_norm)
    names["cls/predictions/output_bias"] = head.output_bias


def _add_answerable_span(names: dict[str, Any], head: Any) -> None:
    _add_dense(names, "start_logits/dense", head.start)
    _add_dense(names, "end_logits/dense_0", head.end_dense_0)
    _add_layer_norm(names, "end_logits/LayerNorm", head.end_layer_norm)
    _add_dense(names, "end_logits/dense_1", head.end_dense_1)
    _add_dense(names, "answer_class/dense_0", head.answer_dense_0)
    names["answer_class/dense_1/kernel"] = head.answer_dense_1.kernel


def _output_adder(prefix: str) -> Callable[[dict[str, Any], Any], None]:
    def add(names: dict[str, Any], head: Any) -> None:
        names[f"{prefix}output_weights"] = head.output_weights
        names[f"{prefix}output_bias"] = head.output_bias

    return add


# A model's attribute that holds a head -> what adds the head's variables.
_HEAD_VARIABLES: dict[str, Callable[[dict[str, Any], Any], None]] = {
    "masked_lm": _add_masked_lm,
    "sentence": _output_adder("cls/seq_relationship/"),
    "classifier": _output_adder(""),
    "tagger": _output_adder(""),
    "span": _output_adder("cls/squad/"),
    "answerable_span": _add_answerable_span,
}


def _add_dense(names: dict[str, Any], prefix: str, layer: Any) -> None:
    names[f"{prefix}/kernel"] = layer.kernel
    names[f"{prefix}/bias"] = layer.bias


def _add_layer_norm(names: dict[str, Any], prefix: str, layer: Any) -> None:
    names[f"{prefix}/gamma"] = layer.gamma
    names[f"{prefix}/beta"] = layer.beta


Shapes = dict[str, tuple[int, ...]]


def variable_shapes(config: AlbertConfig, head: HeadConfig | None = None) -> Shapes:
    """Released name to shape, for every variable of a model, in a fixed order; without TensorFlow.

    Args:
        config: the sizes.
        head: what stands on the encoder; None means both pre-training heads.
    """
    kind = head.kind if head else "pretraining"
    shapes = _encoder_shapes(config)
    if head is None or head.has_pooler:
        shapes.update(_dense("bert/pooler/dense", config.hidden_size, config.hidden_size))
    shapes.update(_HEAD_SHAPES[kind](config, head.num_labels if head else None))
    return shapes


def _dense(prefix: str, rows: int, columns: int) -> Shapes:
    return {f"{prefix}/kernel": (rows, columns), f"{prefix}/bias": (columns,)}


def _layer_norm(prefix: str, width: int) -> Shapes:
    return {f"{prefix}/gamma": (width,), f"{prefix}/beta": (width,)}


def _output(prefix: str, rows: int, width: int) -> Shapes:
    """The heads on [rows, H] weights that are stored transposed."""
    return {f"{prefix}output_weights": (rows, width), f"{prefix}output_bias": (rows,)}


def _encoder_shapes(config: AlbertConfig) -> Shapes:
    v, e, h, i = config.vocab_size, config.embedding_size, config.hidden_size, config.intermediate_size
    shapes: Shapes = {
        "bert/embeddings/word_embeddings": (v, e),
        "bert/embeddings/token_type_embeddings": (config.type_vocab_size, e),
        "bert/embeddings/position_embeddings": (config.max_position_embeddings, e),
        **_layer_norm("bert/embeddings/LayerNorm", e),
    }
    if config.has_projection:
        shapes.update(_dense("bert/encoder/embedding_hidden_mapping_in", e, h))
    for attention, feed_forward in config.layer_parts():
        for inner in range(config.inner_group_num):
            block = f"bert/encoder/transformer/group_{attention}/inner_group_{inner}"
            for part in ("self/query", "self/key", "self/value", "output/dense"):
                shapes.update(_dense(f"{block}/attention_1/{part}", h, h))
            shapes.update(_layer_norm(f"{block}/LayerNorm", h))
            block = f"bert/encoder/transformer/group_{feed_forward}/inner_group_{inner}"
            shapes.update(_dense(f"{block}/ffn_1/intermediate/dense", h, i))
            shapes.update(_dense(f"{block}/ffn_1/intermediate/output/dense", i, h))
            shapes.update(_layer_norm(f"{block}/LayerNorm_1", h))
    return shapes


def _masked_lm_shapes(config: AlbertConfig) -> Shapes:
    return {
        **_dense("cls/predictions/transform/dense", config.hidden_size, config.embedding_size),
        **_layer_norm("cls/predictions/transform/LayerNorm", config.embedding_size),
        "cls/predictions/output_bias": (config.vocab_size,),
    }


def _answerable_span_shapes(h: int) -> Shapes:
    return {
        **_dense("start_logits/dense", h, 1),
        **_dense("end_logits/dense_0", 2 * h, h),
        **_layer_norm("end_logits/LayerNorm", h),
        **_dense("end_logits/dense_1", h, 1),
        **_dense("answer_class/dense_0", 2 * h, h),
        "answer_class/dense_1/kernel": (h, 1),
    }


# Kind of head (`head_config.KINDS`) -> the shapes of its variables.
_HEAD_SHAPES: dict[str, Callable[[Any, Any], Shapes]] = {
    "encoder": lambda config, labels: {},
    "pretraining": lambda config, labels: {
        **_masked_lm_shapes(config),
        **_output("cls/seq_relationship/", 2, config.hidden_size),
    },
    "masked_lm": lambda config, labels: _masked_lm_shapes(config),
    "classifier": lambda config, labels: _output("", labels, config.hidden_size),
    "multiple_choice": lambda config, labels: _output("", 1, config.hidden_size),
    "span": lambda config, labels: _output("cls/squad/", 2, config.hidden_size),
    "answerable_span": lambda config, labels: _answerable_span_shapes(config.hidden_size),
    "tagger": lambda config, labels: _output("", labels, config.hidden_size),
}


_FEED_FORWARD = "/ffn_1/|/LayerNorm_1/"
# The first pattern that is found in a released name tells the part it belongs to.
_PARTS = (
    ("embedding_hidden_mapping_in", "projection"),
    ("bert/embeddings", "embeddings"),
    ("/attention_1/|/LayerNorm/", "attention"),
    (_FEED_FORWARD, "feed_forward"),
    ("bert/pooler", "pooler"),
    ("cls/seq_relationship", "sentence_head"),
)
PARTS = ("embeddings", "projection", "attention", "feed_forward", "pooler", "masked_lm_head", "sentence_head")


def part_of(name: str) -> str:
    """Which of `PARTS` the variable of that released name belongs to."""
    if name.startswith("cls/predictions"):
        return "masked_lm_head"
    return next(part for pattern, part in _PARTS if re.search(pattern, name))


def is_feed_forward(name: str) -> bool:
    """Whether a variable of a block (`BLOCK`) is of the feed-forward half, which is shared apart from attention."""
    return re.search(_FEED_FORWARD, name) is not None
