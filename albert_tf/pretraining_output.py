"""What a pre-training leaves in OUTPUT_DIR beside its checkpoints.

albert_config.json, the vocabulary       what the weights need to be of use
training_log.jsonl                       a line per logged step
evaluation_log.jsonl                     a line per evaluation on held-out records
tensorboard/                             the same curves, and speed, loss scale and trust ratios
best/, model/                            portable directories: the best held-out step, and the end
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tf import run_log, storage
from albert_tf.config import CONFIG_FILE, AlbertConfig
from albert_tf.formats import portable
from albert_tf.formats.checkpoint import Vocabulary
from albert_tf.head_config import HeadConfig
from albert_tf.tokenizer import Tokenizer

TRAINING_LOG, EVALUATION_LOG = "training_log.jsonl", "evaluation_log.jsonl"
BEST, FINAL, TENSORBOARD = "best", "model", "tensorboard"
BEST_FILE = "evaluation.json"  # in the best directory: its step and numbers


def write_companions(output_dir: str, config: AlbertConfig, tokenizer: Tokenizer | None) -> None:
    """Puts config and vocabulary into the output directory."""
    with storage.files_to_add(output_dir) as directory:
        config.to_json_file(f"{directory}/{CONFIG_FILE}")
        if tokenizer:
            tokenizer.save(directory)


def save_portable(
    output_dir: str,
    name: str,
    config: AlbertConfig,
    weights: Mapping[str, Any],
    tokenizer: Tokenizer | None,
    **more: Any,
) -> None:
    """Writes a portable directory into the output directory, and each of `more` as JSON beside the weights."""
    vocabulary = Vocabulary.of(tokenizer) if tokenizer else None
    with storage.complete_directory(storage.join(output_dir, name)) as directory:
        portable.save(directory, config, weights, HeadConfig("pretraining"), vocabulary)
        for file, value in more.items():
            storage.write_json(f"{directory}/{file}.json", value)


def keep_if_best(
    output_dir: str,
    line: Mapping[str, float],
    config: AlbertConfig,
    weights: Mapping[str, Any],
    tokenizer: Tokenizer | None,
) -> None:
    """Keeps the weights apart if those kept before have no lower held-out loss.

    Only an evaluation that the run's log has counts as one before: the directory may hold what another run left.

    Args:
        output_dir: of the run.
        line: the evaluation, which the log has already.
        config, weights, tokenizer: of the model.
    """
    path = storage.join(output_dir, BEST, BEST_FILE)
    kept: Any = storage.read_json(path) if storage.exists(path) else None
    if kept not in run_log.read(storage.join(output_dir, EVALUATION_LOG)) or line["loss"] < kept["loss"]:
        save_portable(output_dir, BEST, config, weights, tokenizer, evaluation=dict(line))
