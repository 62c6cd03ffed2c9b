"""Whether pre-training helps: fine-tuning from a model pre-trained for an hour against the same from random weights.

    python benchmarks/does_it_learn.py --input_file='../shared/data/corpus_en/*.txt.gz' --output=output/does_it_learn

Trains a vocabulary, prepares the text, measures how fast the machine trains, pre-trains for about `--minutes` in the
phases of `PHASES`, and then fine-tunes every task in `TASKS` with each seed from both starts, all settings alike. The
result is in OUTPUT/table.md and table.json. Every stage is one command, printed before it runs; what is complete is not
done again, so a stopped run goes on when it is started again.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from passages import write_passages

from albert_tf import files

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent

# Small enough that an hour on two cores reads the corpus more than twice.
CONFIG = {
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "embedding_size": 128,
    "max_position_embeddings": 512,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.07,  # 0.02 is for a width of 768; products over 128 would begin too small
}
VOCAB_SIZE = 8000
DATA = {"ngram": 1, "eval_fraction": 0.01}
WARMUP_SHARE = 0.05
RANDOM_RANGE = 0.02  # of the weights that are not pre-trained: they learn tasks better from it than from the one above


class Phase(NamedTuple):
    """A part of the pre-training, which begins with the weights of the one before.

    Its text is the corpus, or `of_passages` what `write_passages` makes of it; `preparation` has flags of
    create_pretraining_data.
    """

    name: str
    share_of_time: float
    max_seq_length: int
    train_batch_size: int
    learning_rate: float
    of_passages: bool
    preparation: dict[str, Any]


# With 128 pieces from the start, a model of this size spends the whole hour learning that neighbours tell most about a
# gap; with 32, where each position is seen often, that takes minutes. What words two texts share it learns from the
# passages, if the wrong ones are of the same chapters, whose style and names tell nothing: hence many small shards.
SENTENCES = {"sentence_objective": "sop", "masked_lm_prob": 0.2, "dupe_factor": 2, "split_sentences": True}
PASSAGES = {"sentence_objective": "nsp", "masked_lm_prob": 0.15, "dupe_factor": 1, "num_shards": 300}
PHASES = (
    Phase("short", 0.43, 32, 64, 0.004, False, SENTENCES),
    Phase("passages", 0.57, 64, 64, 0.003, True, PASSAGES),
)
TIMED_STEPS = (50, 200)  # the difference of two runs is without start-up


class Task(NamedTuple):
    """What is fine-tuned: the metric in the table, the peak rates, and the flags of albert_tf.run_finetuning.

    Both starts are trained with each rate. Files are named below --data_dir.
    """

    metric: str
    learning_rates: tuple[float, ...]
    settings: dict[str, Any]


TASKS = {
    "sst-2": Task(
        "accuracy",
        (2e-3,),
        {
            "train_file": "glue/SST-2/train.tsv",
            "dev_file": "glue/SST-2/dev.tsv",
            "max_train_examples": 19200,
            "num_train_epochs": 2,
            "optimizer": "lamb",  # its steps go by the size of the weights, which pre-training made larger
        },
    ),
    "cola": Task(
        "matthews",
        (3e-4,),
        {"train_file": "glue/CoLA/train.tsv", "dev_file": "glue/CoLA/dev.tsv", "num_train_epochs": 3},
    ),
    "qnli": Task(
        "accuracy",
        (1e-4,),
        {"train_file": "glue/QNLI/train_slice.tsv", "dev_file": "glue/QNLI/dev.tsv", "num_train_epochs": 4},
    ),
    "squad1.1": Task(
        "f1",
        (3e-4,),
        {
            "train_file": "squad/train_slice-v1.1.json",
            "dev_file": "squad/dev_slice-v1.1.json",
            "doc_stride": 64,
            "num_train_epochs": 3,
        },
    ),
}
FINETUNING = {"max_seq_length": 128, "train_batch_size": 32}
STARTS = ("pre-trained", "random")


def run(module: str, **arguments: Any) -> None:
    """Prints a command and runs it; its failure, which it has told, ends this script too."""
    command = ["-m", module]
    for name, value in arguments.items():
        command.append(f"--{name}={value}" if not isinstance(value, bool) else f"--{'' if value else 'no'}{name}")
    print(f"\n$ python {shlex.join(command)}", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    code = subprocess.run([sys.executable, *command], env=environment).returncode
    if code:
        sys.exit(code)


def pretrained(
    output: pathlib.Path, input_file: str, minutes: float, steps: Sequence[int] | None, precision: str
) -> pathlib.Path:
    """The pre-trained model's directory, made where it is not there yet."""
    claim(output, {"config": CONFIG, "data": DATA, "phases": [phase._asdict() for phase in PHASES]})
    vocabulary, config = output / "vocabulary.model", output / "albert_config.json"
    if not vocabulary.exists():
        run(
            "data_prep.train_sentencepiece",
            input_file=input_file,
            output_prefix=vocabulary.with_suffix(""),
            vocab_size=VOCAB_SIZE,
            input_sentence_size=100_000,
        )
    if not config.exists():
        files.write_json(config, {"vocab_size": VOCAB_SIZE, **CONFIG})
    model: pathlib.Path | None = None
    for at, phase in enumerate(PHASES):
        if not (output / f"records_{phase.name}" / "metadata.json").exists():
            text = write_passages(input_file, output / "text_of_passages") if phase.of_passages else input_file
            run(
                "data_prep.create_pretraining_data",
                input_file=text,
                output_dir=output / f"records_{phase.name}",
                spm_model_file=vocabulary,
                max_seq_length=phase.max_seq_length,
                num_workers=os.cpu_count(),
                **DATA,
                **phase.preparation,
            )
        begins_with, model = model, output / phase.name / "model"
        if not model.exists():
            count = steps[at] if steps else planned_steps(output, phase, minutes, precision)
            start = {} if begins_with is None else {"init_checkpoint": begins_with}
            evaluation_file = output / f"records_{phase.name}" / "eval-*.tfrecord"
            often = {"save_checkpoints_steps": 500, "eval_interval": 2000, "eval_input_file": evaluation_file}
            pretrain(output, phase, phase.name, count, mixed_precision=precision, **often, **start)
    return model


def planned_steps(output: pathlib.Path, phase: Phase, minutes: float, precision: str) -> int:
    """How many steps fit into the phase's time, as measured when first asked."""
    path = output / f"plan_{phase.name}.json"
    if not path.exists():
        seconds = []
        for steps in TIMED_STEPS:
            shutil.rmtree(output / "timing", ignore_errors=True)
            start = time.monotonic()
            nothing_else = {"save_checkpoints_steps": 0, "eval_interval": 0, "do_eval": False}
            pretrain(output, phase, "timing", steps, mixed_precision=precision, **nothing_else)
            seconds.append(time.monotonic() - start)
        shutil.rmtree(output / "timing")
        speed = (TIMED_STEPS[1] - TIMED_STEPS[0]) / (seconds[1] - seconds[0])
        steps = int(60 * minutes * phase.share_of_time * speed)
        files.write_json(path, {"minutes": minutes, "steps_per_second": speed, "steps": steps})
    return json.loads(path.read_text())["steps"]


def pretrain(output: pathlib.Path, phase: Phase, name: str, steps: int, **others: Any) -> None:
    run(
        "albert_tf.run_pretraining",
        input_file=output / f"records_{phase.name}" / "train-*.tfrecord",
        albert_config_file=output / "albert_config.json",
        output_dir=output / name,
        optimizer="lamb",
        learning_rate=phase.learning_rate,
        train_batch_size=phase.train_batch_size,
        num_train_steps=steps,
        num_warmup_steps=int(WARMUP_SHARE * steps),
        **others,
    )


def claim(directory: pathlib.Path, settings: dict[str, Any]) -> None:
    """Keeps the settings beside what is made with them, and refuses to go on with others."""
    directory.mkdir(parents=True, exist_ok=True)
    settings = json.loads(json.dumps(settings))
    path = directory / "settings.json"
    if not path.exists():
        files.write_json(path, settings)
    elif files.read_json(path) != settings:
        sys.exit(f"{directory} was begun with other settings ({path}): give another --output, or remove it")


def finetuned(output: pathlib.Path, data: pathlib.Path, model: pathlib.Path, seeds: int) -> list[dict[str, Any]]:
    """Fine-tunes what is not yet; one line of the table for each task and rate."""
    tasks = {name: task._asdict() for name, task in TASKS.items()}
    claim(output / "finetuned", {"finetuning": FINETUNING, "tasks": tasks, "seeds": seeds})
    random_config = output / "finetuned" / "albert_config.json"
    files.write_json(random_config, {"vocab_size": VOCAB_SIZE, **CONFIG, "initializer_range": RANDOM_RANGE})
    beginnings = {
        "pre-trained": {"model": model},
        "random": {
            "albert_config_file": random_config,
            "spm_model_file": output / "vocabulary.model",
        },
    }
    lines = []
    for (name, task), rate in ((item, rate) for item in TASKS.items() for rate in item[1].learning_rates):
        settings = {key: data / value if key.endswith("_file") else value for key, value in task.settings.items()}
        summaries = {}
        for start in STARTS:
            directory = output / "finetuned" / start / f"{name}_{rate:g}"
            if not (directory / "report.json").exists():
                run(
                    "albert_tf.run_finetuning",
                    task=name,
                    output_dir=directory,
                    cache_dir=output / "features",
                    seeds=seeds,
                    learning_rate=rate,
                    tensorboard=False,
                    **beginnings[start],
                    **FINETUNING,
                    **settings,
                )
            report = files.read_json(directory / "report.json")
            summaries[start] = report["summary"]["dev"][task.metric]
        lines.append(line(name, rate, task.metric, summaries))
    return lines


def line(task: str, rate: float, metric: str, summaries: dict[str, dict[str, float]]) -> dict[str, Any]:
    """A line of the table: the scores of both starts, the difference of their means, and the spread.

    The spread is how far the best and the worst seed lie apart, of the start where that is more.
    """
    difference = summaries["pre-trained"]["mean"] - summaries["random"]["mean"]
    spread = max(of_start["max"] - of_start["min"] for of_start in summaries.values())
    return {
        "task": task,
        "learning_rate": rate,
        "metric": metric,
        **summaries,
        "difference": difference,
        "spread": spread,
        "is_larger_than_spread": difference > spread,
    }


def table(lines: list[dict[str, Any]]) -> str:
    """The lines in Markdown, all scores in percent."""
    rows = [
        "| task, metric, rate | pre-trained: mean (from, to) | random: mean (from, to) | difference | spread |",
        "|---|---|---|---|---|",
    ]
    for one in lines:
        cells = [
            "{mean:.1f} ({min:.1f} to {max:.1f})".format(**{name: 100 * value for name, value in one[start].items()})
            for start in STARTS
        ]
        numbers = f"{100 * one['difference']:+.1f} | {100 * one['spread']:.1f}"
        rows.append(f"| {one['task']}, {one['metric']}, {one['learning_rate']:g} | {' | '.join(cells)} | {numbers} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    shared = REPOSITORY.parent / "shared" / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input_file", default=str(shared / "corpus_en" / "*.txt.gz"), help="text to pre-train on")
    parser.add_argument("--data_dir", default=str(shared), help="where the files in TASKS are")
    parser.add_argument("--output", default="output/does_it_learn", help="folder for all that is made")
    parser.add_argument("--minutes", type=float, default=60, help="of pre-training, at the speed measured before it")
    parser.add_argument(
        "--steps", type=int, nargs=len(PHASES), help="of each phase of pre-training, in place of the measured numbers"
    )
    parser.add_argument("--mixed_precision", default="float32", help="of pre-training; bfloat16 where the CPU has it")
    parser.add_argument("--seeds", type=int, default=3, help="of each fine-tuning; 2 or more")
    arguments = parser.parse_args()
    output = pathlib.Path(arguments.output).resolve()
    model = pretrained(output, arguments.input_file, arguments.minutes, arguments.steps, arguments.mixed_precision)
    lines = finetuned(output, pathlib.Path(arguments.data_dir).resolve(), model, arguments.seeds)
    files.write_json(output / "table.json", lines)
    text = table(lines)
    with files.atomic_write(output / "table.md", "w") as file:
        file.write(text)
    print(f"\n{text}\n{output / 'table.md'}")


if __name__ == "__main__":
    main()
