"""What the predictions in an output directory are of: predictions/scores.json, which has of each split

file        where its examples were read
content     the beginning of their fingerprint
examples    how many there are
scores      metric to value; null where the file has no labels
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from albert_tf import storage
from albert_tf.finetuning_data import Split
from albert_tf.tasks import rows
from albert_tf.tasks.examples import fingerprint

PREDICTIONS, SCORES = "predictions", "scores.json"
_FINGERPRINT_LENGTH = 16


def scores_file(output_dir: str) -> str:
    """Where it is told what the predictions are of."""
    return storage.join(output_dir, PREDICTIONS, SCORES)


def note(output_dir: str, split: Split, scores: Mapping[str, float] | None) -> None:
    """Writes down what the predictions of a split are of, and their scores where the file has labels."""
    about = {"file": split.path, "content": _content(split), "examples": len(split.examples), "scores": scores}
    _write(output_dir, {**read(output_dir), split.name: about})


def note_again(output_dir: str, told: Mapping[str, Any]) -> None:
    """Writes down what was told of splits, as `read` gave it, as far as nothing newer is told of them."""
    if told:
        _write(output_dir, {**told, **read(output_dir)})


def read(output_dir: str) -> dict[str, Any]:
    """What is told of each split; nothing where there are no predictions."""
    path = scores_file(output_dir)
    return storage.read_json(path) if storage.exists(path) else {}  # type: ignore[no-any-return]


def name_beside(output_dir: str, split: Split) -> str:
    """What to call a split so that the predictions that are there of other examples stay as they are.

    Returns:
        Its name; if there are predictions of other examples under that one, with the file's: "dev-new" of new.tsv.
    """
    before = read(output_dir).get(split.name)
    if before is None or before.get("content") == _content(split):
        return split.name
    file = storage.basename(split.path.rstrip("/")).removesuffix(rows.COMPRESSED)
    return f"{split.name}-{os.path.splitext(file)[0]}"


def _write(output_dir: str, told: Mapping[str, Any]) -> None:
    storage.write_json(scores_file(output_dir), told)


def _content(split: Split) -> str:
    return fingerprint(split.examples)[:_FINGERPRINT_LENGTH]
