"""What a pre-training run tells: the start-up report, a line per logged step, TensorBoard, the closing report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from albert_tf import distribution, evaluation, losses, optimization, storage, training_log
from albert_tf.config import AlbertConfig
from albert_tf.input_pipeline import RecordShape
from albert_tf.loss_scale import LossScale
from albert_tf.pretraining_step import StepSettings
from albert_tf.record_files import RecordFiles

_SENTENCE = ("sentence_order_loss", "sentence_order_accuracy")


def print_start(
    settings: Mapping[str, Any],
    config: AlbertConfig,
    weights: Mapping[str, Any],
    strategy: tf.distribute.Strategy,
    training: RecordFiles,
    held_out: RecordFiles | None,
    shape: RecordShape,
) -> None:
    """Prints every setting, the devices, the model, what skips decay, the data and what will be seen of it."""
    undecayed = optimization.undecayed_names(weights)
    steps, batch = settings["num_train_steps"], settings["train_batch_size"]
    examples = steps * batch
    lines = ["settings:"]
    lines += [f"  {name} = {value!r}" for name, value in sorted(settings.items())]
    lines += [
        f"devices: {distribution.describe_devices(strategy)}",
        f"model: {config.parameter_count():,} parameters, {config.parameter_count(heads=True):,} with both heads; "
        f"{len(weights)} variables",
        f"no weight decay and no trust ratio for {len(undecayed)} of them: {', '.join(undecayed)}",
        f"records: {training.records:,} in {len(training.shards)} shard(s), [{shape.max_seq_length}] pieces and "
        f"{shape.max_predictions_per_seq} predictions each"
        + (f"; {held_out.records:,} held out in {len(held_out.shards)} shard(s)" if held_out else "; none held out"),
        f"steps: {steps:,}, of which {settings['num_warmup_steps']:,} warm-up; {examples:,} examples to be seen "
        f"({examples / training.records:.2f} epochs), {examples * shape.max_seq_length:,} pieces at most",
        f"a model that has learned nothing has masked_lm_loss {math.log(config.vocab_size):.4f} (the logarithm of "
        f"{config.vocab_size})"
        + (" and sentence_order_loss 0.6931" if shape.has_label else "; there is no sentence objective"),
    ]
    print("\n".join(lines), flush=True)


def training_line(
    step: int,
    interval: Mapping[str, float],
    schedule: Any,
    optimizer: Any,
    settings: StepSettings,
    loss_scale: LossScale | None,
) -> dict[str, float]:
    """One line of the training log: means over the steps since the line before, and the largest loss and norm.

    There is no clock in it, so that two runs that should be equal can be compared byte by byte.
    """
    steps = interval["steps"]
    metrics = evaluation.metrics_of(losses.LossSums(*(interval[name] for name in losses.LossSums._fields)))
    return {
        "step": step,
        "learning_rate": training_log.last_rate(schedule, optimizer),
        "loss": interval["loss"] / steps,
        "loss_max": interval["loss_max"],
        **{name: value for name, value in metrics.items() if settings.sentence_objective or name not in _SENTENCE},
        "gradient_norm": interval["gradient_norm"] / steps,
        "gradient_norm_max": interval["gradient_norm_max"],
        "pieces": interval["pieces"],
        **training_log.loss_scale_line(loss_scale, interval),
    }


def evaluation_line(step: int, numbers: Mapping[str, float], settings: StepSettings) -> dict[str, float]:
    """One line of the evaluation log; `loss` is what training minimises, and what the best step is chosen by."""
    kept = {name: value for name, value in numbers.items() if settings.sentence_objective or name not in _SENTENCE}
    loss = numbers["masked_lm_loss"] + (numbers["sentence_order_loss"] if settings.sentence_objective else 0.0)
    return {"step": step, "loss": loss, **kept}


def evaluation_sentence(line: Mapping[str, float]) -> str:
    """An evaluation in one line for the terminal."""
    sentence = f"step {line['step']}: held-out {_masked_lm(line)}"
    if "sentence_order_loss" in line:
        sentence += f", {_sentence_order(line)}"
    return f"{sentence} ({line['examples']:.0f} examples, {line['predictions']:.0f} predictions)"


def pieces_per_second(interval: Mapping[str, float], *, steps: int, seconds: float) -> float:
    """Real pieces (padding left out) trained on per second."""
    return interval["pieces"] / interval["steps"] * steps / max(seconds, 1e-9)


def progress_details(line: Mapping[str, float], speed: float) -> dict[str, str]:
    """What stands behind the progress bar."""
    details = {"loss": f"{line['loss']:.3f}", "mlm_acc": f"{line['masked_lm_accuracy']:.3f}"}
    if "sentence_order_accuracy" in line:
        details["sop_acc"] = f"{line['sentence_order_accuracy']:.3f}"
    return {**details, "pieces/s": f"{speed:,.0f}"}


def print_end(
    output_dir: str,
    training_log: Sequence[Mapping[str, float]],
    evaluation_log: Sequence[Mapping[str, float]],
    *,
    vocab_size: int,
    unigram: float | None,
    checkpoint: str | None,
    tensorboard: bool,
) -> None:
    """Prints where everything is, first and last losses, and the held-out ones beside guesses."""
    lines = [
        "done:",
        f"  checkpoint: {checkpoint}",
        f"  portable model: {storage.join(output_dir, 'model')}",
    ]
    if tensorboard:
        lines.append(f"  TensorBoard: tensorboard --logdir={storage.join(output_dir, 'tensorboard')}")
    for line in (training_log[0], training_log[-1]) if training_log else ():
        sentence = f"  step {line['step']}: {_masked_lm(line)}"
        lines.append(f"{sentence}, {_sentence_order(line)}" if "sentence_order_loss" in line else sentence)
    if evaluation_log:
        best = min(evaluation_log, key=lambda line: line["loss"])
        lines.append(f"  {evaluation_sentence(evaluation_log[-1])}")
        lines.append(
            f"  best held-out step: {best['step']} (loss {best['loss']:.4f}), in {storage.join(output_dir, 'best')}"
        )
    if unigram is not None:
        lines.append(
            f"  to compare with: masked_lm_loss {unigram:.4f} is the best guess that does not look at the text (how "
            f"often each piece is masked in training), {math.log(vocab_size):.4f} a guess among all pieces alike"
        )
    print("\n".join(lines), flush=True)


def _masked_lm(line: Mapping[str, float]) -> str:
    return f"masked_lm_loss {line['masked_lm_loss']:.4f}, accuracy {line['masked_lm_accuracy']:.4f}"


def _sentence_order(line: Mapping[str, float]) -> str:
    return f"sentence_order_loss {line['sentence_order_loss']:.4f}, accuracy {line['sentence_order_accuracy']:.4f}"
