"""What decides the bytes of the output, besides the input and the tokenizer."""

from __future__ import annotations

import dataclasses
from typing import Any

from albert_tf.errors import InputError
from data_prep.documents import ERROR_MODES
from data_prep.segments import Packing, pack_function, special_count

SHORTEST_SEQUENCE = 8


@dataclasses.dataclass(frozen=True)
class Settings:
    """The flags of the same names; `create` fills in what follows from others.

    Raises:
        InputError: a value is out of its range; the flag and the value are named.
    """

    max_seq_length: int
    max_predictions_per_seq: int
    sentence_objective: str = "sop"
    masked_lm_prob: float = 0.15
    ngram: int = 3
    favor_shorter_ngram: bool = True
    do_whole_word_mask: bool = True
    short_seq_prob: float = 0.1
    dupe_factor: int = 1
    random_seed: int = 12345
    eval_fraction: float = 0.0
    split_sentences: bool = False
    errors: str = "strict"

    @classmethod
    def create(cls, *, max_seq_length: int, max_predictions_per_seq: int | None = None, **others: Any) -> Settings:
        """The settings, with a prediction budget that follows the length unless one is given."""
        masked_lm_prob = others.get("masked_lm_prob", cls.masked_lm_prob)
        if not 0.0 < masked_lm_prob < 1.0:
            raise InputError(f"--masked_lm_prob={masked_lm_prob}: give a share above 0 and below 1")
        if max_predictions_per_seq is None:
            room = max_seq_length - special_count(others.get("sentence_objective", cls.sentence_objective))
            max_predictions_per_seq = max(1, min(round(masked_lm_prob * max_seq_length), room))
        return cls(max_seq_length, max_predictions_per_seq, **others)

    def __post_init__(self) -> None:
        pack_function(self.sentence_objective)
        for name, lowest, highest in (
            ("max_seq_length", SHORTEST_SEQUENCE, 1 << 16),
            ("max_predictions_per_seq", 1, self.max_seq_length - special_count(self.sentence_objective)),
            ("ngram", 1, 100),
            ("short_seq_prob", 0.0, 1.0),
            ("dupe_factor", 1, (1 << 32) - 1),
            ("random_seed", 0, (1 << 32) - 1),
            ("eval_fraction", 0.0, 0.5),
        ):
            value = getattr(self, name)
            if not lowest <= value <= highest:
                raise InputError(f"--{name}={value}: give a value from {lowest} to {highest}")
        if self.errors not in ERROR_MODES:
            raise InputError(f"--errors={self.errors}: choose one of {', '.join(ERROR_MODES)}")

    def packing(self) -> Packing:
        """The settings of `segments`."""
        return Packing(self.max_seq_length - special_count(self.sentence_objective), self.short_seq_prob)
