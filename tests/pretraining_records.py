"""Small pre-training records for tests: sentences of a fixed little language, so that there is something to learn."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

import numpy as np

VOCAB_SIZE, S, P = 60, 16, 3
CLS, SEP, MASK = 2, 3, 4
SENTENCES = 50

CONFIG: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "embedding_size": 32,
    "initializer_range": 0.05,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 32,
}


def sentences() -> np.ndarray:
    """[SENTENCES, 6] pieces; sentences 2 k and 2 k + 1 are a document. Every sentence repeats a piece of its own."""
    own = np.arange(SENTENCES) + 5
    return np.stack([own, own, own[::-1], own, own, own], axis=1)


def examples(count: int, seed: int, *, label: str | None = "sentence_order_label") -> list[dict[str, Any]]:
    """Records as dicts of lists: two sentences that follow each other, half the time swapped, three pieces masked."""
    draw, pool = np.random.default_rng(seed), sentences()
    records = []
    for _ in range(count):
        place, swapped = 2 * int(draw.integers(SENTENCES // 2)), int(draw.integers(2))
        first, second = pool[place], pool[place + 1]
        if swapped:
            first, second = second, first
        ids = np.array([CLS, *first, SEP, *second, SEP, 0])
        positions = np.sort(draw.choice([*range(1, 7), *range(8, 14)], P, replace=False))
        labels = ids[positions].copy()
        ids[positions] = MASK
        record = {
            "input_ids": ids.tolist(),
            "input_mask": [1] * 15 + [0],
            "segment_ids": [0] * 8 + [1] * 7 + [0],
            "masked_lm_positions": positions.tolist(),
            "masked_lm_ids": labels.tolist(),
            "masked_lm_weights": [1.0] * P,
        }
        if label:
            record[label] = [swapped]
        records.append(record)
    return records


def write_shards(
    directory: pathlib.Path, counts: list[int], *, split: str = "train", seed: int = 0, **more
) -> list[str]:
    """Writes one shard per count, and returns the paths."""
    import tensorflow as tf

    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, count in enumerate(counts):
        paths.append(str(directory / f"{split}-{number:05d}-of-{len(counts):05d}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for record in examples(count, seed * 1000 + number, **more):
                writer.write(serialize(record))
    return paths


def serialize(record: dict[str, Any]) -> bytes:
    import tensorflow as tf

    features = {
        name: tf.train.Feature(float_list=tf.train.FloatList(value=values))
        if name == "masked_lm_weights"
        else tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        for name, values in record.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write_metadata(directory: pathlib.Path, paths: list[str], counts: list[int], **settings: Any) -> None:
    """Writes the metadata.json that create_pretraining_data puts beside its shards."""
    defaults = {
        "max_seq_length": S,
        "max_predictions_per_seq": P,
        "vocab_size": VOCAB_SIZE,
        "vocab_sha256": "0" * 64,
        "sentence_objective": "sop",
    }
    shards = [
        {"file": os.path.basename(path), "split": "train", "records": count, "bytes": os.path.getsize(path)}
        for path, count in zip(paths, counts)
    ]
    (directory / "metadata.json").write_text(
        json.dumps({"format": 1, "settings": {**defaults, **settings}, "shards": shards})
    )


def write_config(path: pathlib.Path, **changes: Any) -> str:
    path.write_text(json.dumps({**CONFIG, **changes}))
    return str(path)


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    write_shards(root / "data", [40, 31, 25])
    write_shards(root / "data", [10], split="eval", seed=7)
    write_config(root / "config.json")
