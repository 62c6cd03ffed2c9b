"""How long an epoch of fine-tuning takes with length buckets, and with every text padded to the longest length.

    python benchmarks/finetuning_speed.py --task=cola --data_dir=../shared/data/glue/CoLA --model=albert_base_v2

Both begin with the same weights and take the same steps of the same batch, rate and seed, a few steps of the one and a
few of the other in turn, so that a noisy machine is noisy for both. Then both are scored on the dev file. What a step
costs beyond the others of its length when it is the first of that length (tracing and compiling, once in a process) is
told apart and not counted as the epoch's. Without --model the weights are random: give --config and --vocabulary.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import tensorflow as tf

from albert_tf import config_files, finetuning_data, finetuning_source, finetuning_step, optimization, training_log
from albert_tf.batches import Batches, bucket_lengths
from albert_tf.config import AlbertConfig
from albert_tf.finetuning_source import Source, VocabularyFlags
from albert_tf.predicting import Predictor
from albert_tf.task_kinds.catalogue import kind_of
from albert_tf.tasks.catalogue import find_task

STEPS_IN_TURN = 8
VARIANTS = {"length buckets": False, "all padded": True}  # name to `static` of `bucket_lengths`


class Training:
    """One of the two trainings, taken step by step, with the seconds of each step."""

    def __init__(
        self, source: Source, kind: Any, features: Any, static: bool, arguments: argparse.Namespace, seed: int
    ):
        tf.keras.utils.set_random_seed(seed)
        strategy = tf.distribute.get_strategy()
        self.model = finetuning_source.make_model(source, kind.head, source.config)
        weights = self.model.named_variables()
        batches = Batches(features, arguments.batch, bucket_lengths(arguments.length, static=static))
        self.steps = arguments.epochs * batches.steps_per_epoch
        schedule = optimization.LearningRateSchedule(arguments.rate, self.steps, self.steps // 10)
        optimizer = optimization.create_optimizer("adamw", schedule, weights)
        self._step = finetuning_step.make_train_step(
            self.model,
            kind,
            optimizer,
            strategy,
            finetuning_step.StepSettings(seed=seed),
            None,
            signature=None if static else batches.signature(),
        )
        self._interval = training_log.to_tensors(finetuning_step.empty_interval())
        self._stream = batches.training(seed=seed)
        self.lengths: list[int] = []
        self.seconds: list[float] = []

    def advance(self) -> bool:
        """Takes a few steps; False where there are none left."""
        for _ in range(min(STEPS_IN_TURN, self.steps - len(self.seconds))):
            start = time.perf_counter()
            batch = next(self._stream)
            self._interval = self._step(batch, tf.constant(len(self.seconds)), self._interval)
            self._interval["loss"].numpy()  # waits until the step is done
            self.seconds.append(time.perf_counter() - start)
            self.lengths.append(batch["input_ids"].shape[-1])
        return len(self.seconds) < self.steps


def epoch_and_first_steps(lengths: list[int], seconds: list[float]) -> tuple[float, float]:
    """The seconds of all steps without what first steps cost more, and that surplus.

    The first step of a length counts as the median of the others of that length, where there are others.
    """
    epoch = surplus = 0.0
    for length in set(lengths):
        of_length = [s for at, s in zip(lengths, seconds) if at == length]
        usual = statistics.median(of_length[1:] or of_length)
        epoch += usual + sum(of_length[1:])
        surplus += of_length[0] - usual
    return epoch, surplus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="cola")
    parser.add_argument("--data_dir", required=True, help="the task's files")
    parser.add_argument("--model", help="a pre-trained model with its vocabulary")
    parser.add_argument("--config", default="albert_tiny", help="of random weights")
    parser.add_argument("--vocabulary", help="a SentencePiece model, for random weights")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128, help="max_seq_length")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3, help="repetitions")
    parser.add_argument("--max_train_examples", type=int)
    arguments = parser.parse_args()

    task = find_task(arguments.task)
    kind = kind_of(task, max_seq_length=arguments.length)
    vocabulary = VocabularyFlags(arguments.vocabulary)
    if arguments.model:
        source = finetuning_source.read_source(arguments.model, vocabulary)
    else:
        config = AlbertConfig.from_json_file(config_files.config_path(arguments.config))
        source = finetuning_source.random_source(config, vocabulary)
    splits = {
        name: finetuning_data.read_split(task, name, task.path(arguments.data_dir, name), most=most)
        for name, most in (("train", arguments.max_train_examples), (task.dev_splits[0], None))
    }
    training, held_out = splits.values()
    features = kind.features(training.examples, source.tokenizer, training=True)
    pieces, metric = int(features.sizes.sum()), task.metrics[0]
    print(
        f"{task.title}, {len(features):,} rows of {pieces / len(features):.1f} pieces in the mean, batch "
        f"{arguments.batch}, longest {arguments.length}, {arguments.epochs} epoch(s); "
        f"{source.config.num_hidden_layers} layers of {source.config.hidden_size}; TensorFlow {tf.__version__}",
        flush=True,
    )

    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in VARIANTS}
    for seed in range(arguments.seeds):
        trainings = {
            name: Training(source, kind, features, static, arguments, seed) for name, static in VARIANTS.items()
        }
        while any([one.advance() for one in trainings.values()]):
            pass
        for name, one in trainings.items():
            predictor = Predictor(one.model, kind, batch_size=arguments.batch)
            predictions = predictor.predict(held_out.examples, source.tokenizer)
            score = kind.scores(held_out.examples, predictions, [metric])[metric]
            found[name].append((*epoch_and_first_steps(one.lengths, one.seconds), score))
        tf.keras.backend.clear_session()

    medians = {name: statistics.median(epoch for epoch, _, _ in values) for name, values in found.items()}
    for name, values in found.items():
        epochs, surpluses, scores = zip(*values)
        print(
            f"{name:15} epochs {medians[name]:7.1f} s ({min(epochs):.1f} to {max(epochs):.1f}), first steps "
            f"{statistics.median(surpluses):5.1f} s more, {metric} {100 * statistics.mean(scores):.1f} "
            f"({100 * min(scores):.1f} to {100 * max(scores):.1f})"
        )
    buckets, padded = medians.values()
    print(f"with buckets it takes {buckets / padded:.2f} of the time, {padded / buckets:.1f} times as fast")


if __name__ == "__main__":
    main()
