"""What a person wants to know about the prepared data: counted per shard, added up, printed."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from data_prep.batches import Batch
from data_prep.masking import FATES, MaskedBatch

LENGTH_BINS = 8
_EVEN_LABELS = (0.4, 0.6)
_CHANCE = 3.0  # standard deviations that chance explains


@dataclasses.dataclass
class TextCounts:
    """What was read."""

    bytes: int = 0
    documents: int = 0
    sentences: int = 0
    pieces: int = 0
    unknown_pieces: int = 0
    held_out_documents: int = 0
    skipped_documents: int = 0  # no record came from them


@dataclasses.dataclass
class RecordCounts:
    """The records of one split. `lengths[i]` counts those of up to (i + 1) * S / 8 pieces."""

    records: int = 0
    sequence_length: int = 0
    pieces: int = 0  # special ones included, padding not
    lengths: list[int] = dataclasses.field(default_factory=lambda: [0] * LENGTH_BINS)
    predictions: int = 0
    missed_predictions: int = 0  # wanted but not placed
    ngrams: list[int] = dataclasses.field(default_factory=list)
    fates: list[int] = dataclasses.field(default_factory=lambda: [0] * len(FATES))
    label_1: int = 0

    def add(self, batch: Batch, masked: MaskedBatch) -> None:
        """Counts a batch."""
        size, length = batch.input_ids.shape
        bins = np.minimum((batch.lengths.astype(np.int64) * LENGTH_BINS - 1) // length, LENGTH_BINS - 1)
        self.sequence_length = length
        self.records += size
        self.pieces += int(batch.lengths.sum())
        self.lengths = _added(self.lengths, np.bincount(bins, minlength=LENGTH_BINS).tolist())
        self.predictions += int(masked.counts.sum())
        self.missed_predictions += int((masked.budgets - masked.counts).sum())
        self.ngrams = _added(self.ngrams, masked.ngram_counts.tolist())
        self.fates = _added(self.fates, masked.fate_counts.tolist())
        self.label_1 += int(batch.labels.sum())

    @property
    def label_1_share(self) -> float:
        """Records with label 1 among all."""
        return _share(self.label_1, self.records)

    @property
    def labels_are_uneven(self) -> bool:
        """Whether far from half of the records have label 1, by more than chance explains."""
        low, high = _EVEN_LABELS
        by_chance = _CHANCE * 0.5 / math.sqrt(self.records or 1)
        return not low <= self.label_1_share <= high and abs(self.label_1_share - 0.5) > by_chance

    def summary(self) -> dict[str, Any]:
        """Counts and shares, for metadata.json."""
        edges = [(i + 1) * self.sequence_length // LENGTH_BINS for i in range(LENGTH_BINS)]
        return {
            "records": self.records,
            "pieces": self.pieces,
            "mean_length": _share(self.pieces, self.records),
            "padding_share": 1.0 - _share(self.pieces, self.records * self.sequence_length) if self.records else 0.0,
            "length_histogram": {f"<={edge}": count for edge, count in zip(edges, self.lengths)},
            "predictions": self.predictions,
            "predicted_share": _share(self.predictions, self.pieces),
            "missed_predictions": self.missed_predictions,
            "ngram_histogram": {str(n + 1): count for n, count in enumerate(self.ngrams)},
            **{f"{fate}_share": _share(count, self.predictions) for fate, count in zip(FATES, self.fates)},
            "label_1_share": self.label_1_share,
        }


@dataclasses.dataclass
class Statistics:
    """Counts of the text and of each split; shards are added up with `add`."""

    text: TextCounts = dataclasses.field(default_factory=TextCounts)
    splits: dict[str, RecordCounts] = dataclasses.field(default_factory=dict)

    def add(self, other: Statistics) -> None:
        """Adds the counts of another part of the input."""
        _add_fields(self.text, other.text)
        for name, counts in other.splits.items():
            _add_fields(self.splits.setdefault(name, RecordCounts()), counts)

    @property
    def unknown_share(self) -> float:
        """Unknown pieces among the pieces of the text."""
        return _share(self.text.unknown_pieces, self.text.pieces)

    def to_dict(self) -> dict[str, Any]:
        """The counts alone: `from_dict` gives the same object back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, counts: dict[str, Any]) -> Statistics:
        """The inverse of `to_dict`."""
        splits = {name: RecordCounts(**split) for name, split in counts["splits"].items()}
        return cls(TextCounts(**counts["text"]), splits)

    def summary(self) -> dict[str, Any]:
        """What metadata.json holds under "statistics"."""
        text = {**dataclasses.asdict(self.text), "unknown_share": self.unknown_share}
        return {"text": text, **{name: counts.summary() for name, counts in sorted(self.splits.items(), reverse=True)}}

    def table(self) -> str:
        """The summary as lines for a terminal."""
        lines = []
        for part, values in self.summary().items():
            lines.append(part)
            for name, value in values.items():
                lines.append(f"  {name.replace('_', ' '):<20} {_shown(name, value)}")
        return "\n".join(lines)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _added(left: list[int], right: list[int]) -> list[int]:
    size = max(len(left), len(right))
    padded = ([*counts, *[0] * (size - len(counts))] for counts in (left, right))
    return [a + b for a, b in zip(*padded)]


def _add_fields(total: Any, part: Any) -> None:
    for field in dataclasses.fields(total):
        old, new = getattr(total, field.name), getattr(part, field.name)
        if field.name == "sequence_length":
            setattr(total, field.name, max(old, new))
        else:
            setattr(total, field.name, _added(old, new) if isinstance(old, list) else old + new)


def _shown(name: str, value: Any) -> str:
    if isinstance(value, dict):
        whole = sum(value.values())
        return "  ".join(f"{key}: {_share(count, whole):.1%}" for key, count in value.items())
    if name.endswith("_share"):
        return f"{value:.2%}"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
