"""Weights of a `Checkpoint` into the variables of a model: what fits, what is adapted, and a report of all of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from absl import logging

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Checkpoint
from albert_tf.formats.head_names import has_matrices
from albert_tf.head_config import HeadConfig
from albert_tf.weight_names import BLOCK, is_feed_forward, variable_shapes

POSITIONS = "bert/embeddings/position_embeddings"
OUTPUT_WEIGHTS = "output_weights"  # of the heads with labels, [C,H]

_ENCODER = "bert/"
_POOLER = "bert/pooler/"
# What changes the numbers without changing a shape.
_SILENT_KEYS = ("num_attention_heads", "hidden_act", "layer_norm_eps")

Shapes = dict[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What a load did.

    Attributes:
        path, form: of the source.
        matched: released name -> shape of the variables that took a value.
        missing: the same of those the source has no value for; they keep their own.
        unused: name -> shape of what the source has and the model has no variable for.
        slots: optimizer slots and counters in the source, which a load of weights leaves alone.
        left_out: name in the source -> why it is no weight.
        notes: what was changed on the way, one sentence each.
    """

    path: str
    form: str
    matched: Shapes
    missing: Shapes
    unused: Shapes
    slots: tuple[str, ...] = ()
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The report as a table: a line for each variable with its shape, then what was changed and left alone."""
        sections = (("matched", self.matched), ("missing", self.missing), ("not used", self.unused))
        width = max((len(name) for _, names in sections for name in names), default=0)
        lines = [f"weights from {self.path} ({self.form})"]
        for title, names in sections:
            lines += [f"  {title + ':':<9} {name:<{width}}  {list(shape)}" for name, shape in names.items()]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  left out: {name}: {why}" for name, why in self.left_out.items()]
        if self.slots:
            counters = [name for name in self.slots if "/" not in name]
            lines.append(f"  ignored: {', '.join([f'{len(self.slots) - len(counters)} slots', *counters])}")
        count = sum(int(np.prod(shape)) for shape in self.matched.values())
        kept = " (they keep their values)" if self.missing else ""
        lines.append(
            f"{len(self.matched)} variables with {count:,} parameters matched, {len(self.missing)} missing{kept}, "
            f"{len(self.unused)} not used"
        )
        return lines


def load(checkpoint: Checkpoint, named_variables: Mapping[str, Any], config: AlbertConfig | None = None) -> LoadReport:
    """Gives variables the values of the same name, all or none of them; see `match`.

    Args:
        checkpoint: where the values come from.
        named_variables: released name to variable.
        config: the model's; what it says is held against what the source says, where that is known.
    """
    shapes = {name: tuple(variable.shape) for name, variable in named_variables.items()}
    weights, report = match(checkpoint, shapes, config)
    for name in report.matched:
        named_variables[name].assign(weights[name])
    return report


def match(
    checkpoint: Checkpoint, shapes: Shapes, config: AlbertConfig | None = None
) -> tuple[Mapping[str, np.ndarray], LoadReport]:
    """Finds a value for every variable of a model.

    A part that the source has once and the model in several groups is copied to each of them (the released
    init_from_group0), and a shared part serves any number of layers (paper appendix A.1).

    Args:
        checkpoint: where the values come from.
        shapes: released name to shape of the model's variables.
        config: the model's.

    Returns:
        The values by released name, and what was matched, missing and not used. Only heads can be missing, and the
        pooler where the source's head has none.

    Raises:
        InputError: nothing matches, a shape differs, a variable of embeddings, encoder or pooler has no value, the
            model has no place for one of embeddings or encoder, or the same weights would give other numbers in a
            model of this config.
    """
    notes = list(checkpoint.notes)
    if config is not None and checkpoint.config is not None:
        notes += _compare(checkpoint.path, checkpoint.config, config)
    weights, copied = _spread_groups(checkpoint.weights, [name for name in shapes if name not in _promised(checkpoint)])
    notes += copied
    matched = [name for name in shapes if name in weights]
    if not matched:
        some = ", ".join(sorted(checkpoint.weights)[:3]) or "none"
        raise InputError(
            f"{checkpoint.path}: not one variable of the model is in this {checkpoint.form}; its names are {some}, …"
        )
    missing = [name for name in shapes if name not in weights]
    unused = {name: array.shape for name, array in checkpoint.weights.items() if name not in shapes}
    _check_missing(checkpoint, missing, len(shapes))
    _check_unused(checkpoint, unused)
    for name in matched:
        _check_shape(checkpoint.path, name, weights[name].shape, shapes[name])
        if not np.issubdtype(weights[name].dtype, np.floating):
            raise InputError(f"{checkpoint.path}: {name} is of the type {weights[name].dtype}, but a weight is a float")
    broken = [name for name in matched if not np.isfinite(weights[name]).all()]
    if broken:
        notes.append(f"not all values of {', '.join(broken)} are finite numbers")
    head = checkpoint.head
    if head is not None and has_matrices(head.kind, unused):
        labels = "" if head.num_labels is None else f" with {head.num_labels} labels"
        notes.append(f"it has a head of the kind {head.kind}{labels}, which {head.model_class} takes")
    return weights, LoadReport(
        path=checkpoint.path,
        form=checkpoint.form,
        matched={name: shapes[name] for name in matched},
        missing={name: shapes[name] for name in missing},
        unused=unused,
        slots=checkpoint.slots,
        left_out=checkpoint.left_out,
        notes=tuple(notes),
    )


def with_positions(checkpoint: Checkpoint, positions: int) -> Checkpoint:
    """The checkpoint with a table of that many positions: cut, or extended by its own rows from the first one on.

    Repeated rows tell neighbours apart as the trained ones do; they are where training of longer sequences starts from.

    Raises:
        InputError: the checkpoint has no position table, or fewer than one position is asked for.
    """
    table = checkpoint.weights.get(POSITIONS)
    if table is None:
        raise InputError(f"{checkpoint.path} has no {POSITIONS}, so its positions cannot be changed")
    if positions < 1:
        raise InputError(f"max_position_embeddings is {positions}, but must be at least 1")
    rows = len(table)
    if rows == positions:
        return checkpoint
    how = f"the rows from {positions} on are cut" if positions < rows else "its rows are repeated from the first one on"
    return checkpoint.replace(
        weights={**checkpoint.weights, POSITIONS: np.resize(table, (positions, table.shape[1]))},
        config=checkpoint.config and checkpoint.config.replace(max_position_embeddings=positions),
        notes=(*checkpoint.notes, f"{POSITIONS} had {rows} rows, now {positions}: {how}"),
    )


def _compare(path: str, source: AlbertConfig, target: AlbertConfig) -> list[str]:
    for key in _SILENT_KEYS:
        found, needed = getattr(source, key), getattr(target, key)
        if (found or "linear") != (needed or "linear"):  # hidden_act "" is another word for it
            raise InputError(
                f"{path} is of a model with {key} {found!r}, and this model has {needed!r}: the same weights would "
                "give other numbers"
            )
    if source.num_hidden_layers != target.num_hidden_layers:
        return [f"a model of {source.num_hidden_layers} layers starts one of {target.num_hidden_layers} layers"]
    return []


def _promised(checkpoint: Checkpoint) -> set[str]:
    """The names that the source must have itself, by its own config: none of them is made of another."""
    if checkpoint.config is None or not checkpoint.config_is_told:
        return set()
    return {*variable_shapes(checkpoint.config, HeadConfig("encoder"))}


def _spread_groups(
    weights: Mapping[str, np.ndarray], names: Iterable[str]
) -> tuple[Mapping[str, np.ndarray], list[str]]:
    """Weights with a part of group 0 copied to groups that the source lacks, where it has that part in one group."""
    groups: dict[str, set[int]] = {}
    for match in filter(None, map(BLOCK.fullmatch, weights)):
        groups.setdefault(match[3], set()).add(int(match[2]))
    copies: dict[str, str] = {}
    for match in filter(None, map(BLOCK.fullmatch, names)):
        if match[0] not in weights and groups.get(match[3]) == {0}:
            copies[match[0]] = f"{match[1]}0{match[3]}"
    if not copies:
        return weights, []
    last = max(int(match[2]) for match in filter(None, map(BLOCK.fullmatch, copies)))
    parts = {"feed-forward" if is_feed_forward(name) else "attention" for name in copies}
    note = f"the one {' and '.join(sorted(parts))} part of the source is copied to groups 1 to {last}"
    return {**weights, **{name: weights[source] for name, source in copies.items()}}, [note]


def _check_unused(checkpoint: Checkpoint, unused: Iterable[str]) -> None:
    """A part of the encoder that is dropped without a word would make another model of the rest."""
    spare_groups: set[int] = set()
    if checkpoint.config is not None:  # published files with more groups than layers have some that no layer uses
        used = {group for parts in checkpoint.config.layer_parts() for group in parts}
        spare_groups = set(range(checkpoint.config.num_hidden_groups)) - used
    for name in unused:
        block = BLOCK.fullmatch(name)
        spare = block is not None and int(block[2]) in spare_groups
        if name.startswith(_ENCODER) and not name.startswith(_POOLER) and not spare:
            raise InputError(
                f"{checkpoint.path} has {name}, for which this model has no place: a model that shares more, has fewer "
                "layers or blocks with parameters of their own, or no projection cannot start from it"
            )


def _check_missing(checkpoint: Checkpoint, missing: list[str], count: int) -> None:
    without_pooler = checkpoint.head is not None and not checkpoint.head.has_pooler
    needed = [
        name for name in missing if name.startswith(_ENCODER) and not (without_pooler and name.startswith(_POOLER))
    ]
    if needed:
        more = " and others" if len(needed) > 5 else ""
        raise InputError(
            f"{checkpoint.path} has no value for {', '.join(needed[:5])}{more} ({len(needed)} of the {count} "
            f"variables): it is not a {checkpoint.form} of this model"
        )


def _check_shape(path: str, name: str, found: tuple[int, ...], needed: tuple[int, ...]) -> None:
    if found == needed:
        return
    hint = ""
    if name == POSITIONS and found[1:] == needed[1:]:
        hint = (
            f"; python -m albert_tf.convert --input={path} --max_position_embeddings={needed[0]} cuts or extends the "
            "table"
        )
    if name == OUTPUT_WEIGHTS:
        hint = "; from_pretrained(..., new_head=True) leaves that head and begins with a random one"
    raise InputError(f"{path}: {name} has shape {list(found)}, but the model needs {list(needed)}{hint}")


def with_fitting_vocabulary(checkpoint: Checkpoint, config: AlbertConfig) -> Checkpoint:
    """The checkpoint without its vocabulary, and a note why, if that has more pieces than the model has rows."""
    if checkpoint.vocabulary is None:
        return checkpoint
    try:
        pieces = checkpoint.vocabulary.tokenizer().vocab_size
    except (InputError, ImportError) as error:
        note = f"the vocabulary {checkpoint.vocabulary.name} is left out: {error}"
    else:
        if pieces <= config.vocab_size:
            return checkpoint
        note = (
            f"the vocabulary {checkpoint.vocabulary.name} is left out: it has {pieces} pieces, and the model's "
            f"vocab_size is {config.vocab_size}"
        )
    logging.warning("%s: %s", checkpoint.path, note)
    return checkpoint.replace(vocabulary=None, notes=(*checkpoint.notes, note))
