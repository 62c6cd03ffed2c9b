"""A small separable task for tests of fine-tuning: texts in which one word tells the class, and a tiny model for it."""

from __future__ import annotations

import json
import pathlib
import random
from typing import Any

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnr"]  # 100
LABELS = ("good", "bad")
TELLING = {"good": ("happy", "joy"), "bad": ("sad", "grief")}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(w for words in TELLING.values() for w in words), *WORDS]
CONFIG: dict[str, Any] = {
    "vocab_size": len(PIECES),
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "embedding_size": 16,
    "initializer_range": 0.1,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "classifier_dropout_prob": 0.1,
    "max_position_embeddings": 64,
}


def texts(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts of 3 to 20 words and their labels, as many of each."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        label = LABELS[number % 2]
        words = draw.choices(WORDS, k=draw.randrange(2, 20))
        words.insert(draw.randrange(len(words) + 1), draw.choice(TELLING[label]))
        rows.append((" ".join(words), label))
    return rows


def write_model_files(directory: pathlib.Path, **changes: Any) -> dict[str, str]:
    """Writes a config and a vocabulary; returns the flags that name them."""
    directory.mkdir(parents=True, exist_ok=True)
    config, vocabulary = directory / "config.json", directory / "vocab.txt"
    config.write_text(json.dumps({**CONFIG, **changes}))
    vocabulary.write_text("\n".join(PIECES) + "\n")
    return {"albert_config_file": str(config), "vocab_file": str(vocabulary)}


def write_tsv(path: pathlib.Path, rows: list[tuple[str, ...]], header: tuple[str, ...]) -> str:
    """Writes tab-separated rows under a header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]))
    return str(path)


def write_task(directory: pathlib.Path, train: int = 200, dev: int = 60, test: int = 10) -> pathlib.Path:
    """Writes train.tsv and dev.tsv with texts and labels, and test.tsv with texts alone."""
    for name, count, seed in (("train", train, 1), ("dev", dev, 2)):
        write_tsv(directory / f"{name}.tsv", texts(count, seed), ("text", "label"))
    write_tsv(directory / "test.tsv", [(text,) for text, _ in texts(test, 3)], ("text",))
    return directory
