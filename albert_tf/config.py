"""AlbertConfig: the sizes of a model, checked, read from and written to the released JSON."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import Any

from albert_tf import files, weight_names
from albert_tf.errors import InputError

CONFIG_FILE = "albert_config.json"
PARAMETER_SHARING = ("all", "attention", "ffn", "none")
HIDDEN_ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear", "")

# Keys found in published ALBERT and BERT files that change nothing in the graph; they are kept and written back.
INERT_KEYS = (
    "directionality",
    "layers_to_keep",
    "ln_type",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
)


@dataclasses.dataclass(frozen=True)
class AlbertConfig:
    """Sizes and rates of an ALBERT model (paper section 3.1 and table 1), with the keys of the released JSON.

    Attributes:
        vocab_size: V, rows of the word embedding table.
        hidden_size: H.
        num_hidden_layers: L.
        num_attention_heads: N; the head size D is H / N.
        intermediate_size: width of the feed-forward network, 4 H in the paper.
        embedding_size: E (paper section 3.1, factorised embedding). With E = H there is no projection.
        num_hidden_groups: the layers are split into that many groups; the layers of a group share parameters.
        inner_group_num: blocks with parameters of their own inside each layer.
        parameter_sharing: what the layers of a group share: "all", "attention", "ffn" or "none" (paper table 4).
            A part that is not shared has parameters of its own in every layer.
        hidden_act: activation of the feed-forward network and of the masked-LM head; gelu is the tanh form of the
            released models, gelu_erf the exact one that some Hugging Face models were trained with.
        hidden_dropout_prob: rate after the embeddings, the attention output and the feed-forward output.
        attention_probs_dropout_prob: rate on the attention probabilities.
        classifier_dropout_prob: rate on the pooled vector of fine-tuning heads; the encoder's rates do not touch it.
        max_position_embeddings: longest sequence.
        type_vocab_size: number of segments.
        initializer_range: standard deviation of the truncated normal that starts every kernel and table.
        layer_norm_eps: added to the variance in every LayerNorm; 1e-12 in the released models.
        embedding_projection: whether embeddings are projected to H; None is the released rule, where E differs from H
            (Hugging Face models with E = H have a projection).
        net_structure_type, gap_size, num_memory_blocks, down_scale_factor: in the released JSON, without effect there.
        inert: further keys of published files without effect (`INERT_KEYS`), kept as they are.

    Raises:
        InputError: a value is out of range or does not fit another one; the message names key and value.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    embedding_size: int = 128
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    parameter_sharing: str = "all"
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    embedding_projection: bool | None = None
    net_structure_type: int = 0
    gap_size: int = 0
    num_memory_blocks: int = 0
    down_scale_factor: int = 1
    inert: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.hidden_act is None:  # the released code takes null and "" for "linear"
            object.__setattr__(self, "hidden_act", "")
        _check_ranges(self)
        _check_groups(self)
        unknown = sorted(set(self.inert) - set(INERT_KEYS))
        if unknown:
            raise InputError(f"unknown key {unknown[0]!r} in the model configuration; known keys: {_known_keys()}")
        if self.inert.get("ln_type", "postln") != "postln":
            raise InputError(f"ln_type is {self.inert['ln_type']!r}, but only 'postln' models are supported")

    @property
    def head_size(self) -> int:
        """D = H / N."""
        return self.hidden_size // self.num_attention_heads

    @property
    def has_projection(self) -> bool:
        """Whether embeddings of width E are projected to H; released models with E = H have no projection."""
        if self.embedding_projection is None:
            return self.embedding_size != self.hidden_size
        return self.embedding_projection

    def layer_parts(self) -> list[tuple[int, int]]:
        """For each layer, the index of its attention part and of its feed-forward part; this is the sharing rule.

        The group of layer l is int(l / L * G) in floating point, as in the released modeling.py. Two layers with
        equal indices use the same parameters.
        """
        layers, groups = self.num_hidden_layers, self.num_hidden_groups
        shares_attention = self.parameter_sharing in ("all", "attention")
        shares_ffn = self.parameter_sharing in ("all", "ffn")
        parts = []
        for layer in range(layers):
            group = int(layer / layers * groups)
            parts.append((group if shares_attention else layer, group if shares_ffn else layer))
        return parts

    def blocks(self) -> list[tuple[int, int, int]]:
        """For each block in order, `layer_parts` of its layer and its place inside of it."""
        return [(*parts, inner) for parts in self.layer_parts() for inner in range(self.inner_group_num)]

    def parameter_counts(self) -> dict[str, int]:
        """Exact number of parameters of each part, a shared part counted once.

        The encoder as the paper counts it is everything but the two heads: see `parameter_count`.
        """
        counts = dict.fromkeys(weight_names.PARTS, 0)
        for name, shape in weight_names.variable_shapes(self).items():
            counts[weight_names.part_of(name)] += math.prod(shape)
        return counts

    def parameter_count(self, heads: bool = False) -> int:
        """Parameters of embeddings, encoder and pooler; with `heads` also of the two pre-training heads."""
        counts = self.parameter_counts()
        without_heads = sum(n for part, n in counts.items() if not part.endswith("_head"))
        return sum(counts.values()) if heads else without_heads

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "the model configuration") -> AlbertConfig:
        """Makes a config from the released JSON's keys.

        Args:
            values: the keys; those without a default must be there.
            source: where the keys came from, for messages.

        Raises:
            InputError: an unknown or missing key, or a value that does not fit.
        """
        fields = {field.name for field in dataclasses.fields(cls)} - {"inert"}
        inert = {key: value for key, value in values.items() if key in INERT_KEYS}
        unknown = sorted(set(values) - fields - set(inert))
        if unknown:
            raise InputError(f"{source}: unknown key {unknown[0]!r}; known keys: {_known_keys()}")
        required = [f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING and f.name != "inert"]
        missing = [key for key in required if key not in values]
        if missing:
            raise InputError(f"{source}: key {missing[0]!r} is missing")
        try:
            return cls(**{key: values[key] for key in values if key in fields}, inert=inert)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> AlbertConfig:
        """Reads a released albert_config.json.

        Raises:
            InputError: the file cannot be read, is not a JSON object, or does not describe a model.
        """
        values = files.read_json(path)
        if not isinstance(values, dict):
            raise InputError(f"{os.fspath(path)} holds no JSON object with the keys of a model configuration")
        return cls.from_dict(values, source=os.fspath(path))

    def to_dict(self) -> dict[str, Any]:
        """The released JSON's keys; keys of ours (`OWN_KEYS`) only where they differ from the released behaviour."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "inert" or (field.name in OWN_KEYS and value == field.default):
                continue
            values[field.name] = value
        return {**values, **self.inert}

    def to_json_file(self, path: str | os.PathLike[str]) -> None:
        """Writes the released JSON form, complete or not at all."""
        files.write_json(path, self.to_dict())

    def replace(self, **changes: Any) -> AlbertConfig:
        """A copy with some values changed, checked again."""
        return dataclasses.replace(self, **changes)


OWN_KEYS = ("parameter_sharing", "classifier_dropout_prob", "layer_norm_eps", "embedding_projection")


def _known_keys() -> str:
    names = [field.name for field in dataclasses.fields(AlbertConfig) if field.name != "inert"]
    return ", ".join(sorted([*names, *INERT_KEYS]))


def _check_ranges(config: AlbertConfig) -> None:
    for key in (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "embedding_size",
        "num_hidden_groups",
        "inner_group_num",
        "max_position_embeddings",
        "type_vocab_size",
    ):
        value = getattr(config, key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{key} is {value!r}, but must be a whole number of at least 1")
    for key in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"):
        value = getattr(config, key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise InputError(f"{key} is {value!r}, but must be a rate from 0 to below 1")
    spread = config.initializer_range
    if isinstance(spread, bool) or not isinstance(spread, (int, float)) or not 0 < spread < 10:
        raise InputError(f"initializer_range is {spread!r}, but must be a number above 0 and below 10")
    epsilon = config.layer_norm_eps
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < 1:
        raise InputError(f"layer_norm_eps is {epsilon!r}, but must be a number above 0 and below 1")
    if config.embedding_projection not in (None, True, False):
        raise InputError(f"embedding_projection is {config.embedding_projection!r}, but must be true, false or null")
    if config.embedding_projection is False and config.embedding_size != config.hidden_size:
        raise InputError(
            f"embedding_projection is false, but embedding_size {config.embedding_size} differs from hidden_size "
            f"{config.hidden_size}: such embeddings need the projection"
        )
    for key, choices in (("hidden_act", HIDDEN_ACTIVATIONS), ("parameter_sharing", PARAMETER_SHARING)):
        value = getattr(config, key)
        if value not in choices:
            raise InputError(f"{key} is {value!r}, but must be one of {', '.join(repr(c) for c in choices)}")
    if config.hidden_size % config.num_attention_heads:
        raise InputError(
            f"hidden_size {config.hidden_size} does not divide into num_attention_heads {config.num_attention_heads}"
        )


def _check_groups(config: AlbertConfig) -> None:
    layers, groups = config.num_hidden_layers, config.num_hidden_groups
    # More groups than layers is found in published files (4 layers, 12 groups): every layer then has its own.
    if layers % groups and groups % layers:
        raise InputError(f"num_hidden_layers {layers} does not divide into num_hidden_groups {groups}")
    if config.parameter_sharing == "none" and groups not in (1, layers):
        raise InputError(
            f"num_hidden_groups is {groups}, but parameter_sharing='none' gives each of the {layers} layers its own "
            f"parameters: set it to 1 or {layers}"
        )
