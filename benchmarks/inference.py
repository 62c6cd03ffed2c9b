"""How fast a trained model answers: exports of ours and other libraries' models of the same sizes, in turn in one run.

    python benchmarks/inference.py --config=albert_base_v2 --pythons=python3.11,peers/bin/python --output=DIR

Every contender is a process of its own, in the first of the given Pythons for each version of its package; all of them
answer one after the other, round by round, so that what else the machine does meets all alike; each round begins with
another one, and each warms up at its turn. Those whose packages are in none of the Pythons are left out. Told are
medians in milliseconds, sentences per second on 256 sentences of mixed length (log-normal, median 24 pieces) in batches
of 32 as they come and sorted by length, seconds from the start of the process to the first answer, and memory. Packed
exports have several sentences in a row, of 32 as they come and of all 256 in the column of the sorted ones. Exports are
made of random weights and kept in the output directory, whose table.md and table.json have the result.

On a machine that does other work as well, the table of CPU time (of all threads, by the number of threads) says more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import inference_contenders
import numpy as np
from random_weights import shake

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

SHAPES = "1x32,1x128,8x128,8x384,32x32,32x128"
MEDIAN, SPREAD, BATCH = 24, 0.79, 32
ARRIVAL, SORTED = "as they come", "sorted"
Request = list[list[int]]


def requests(shapes: Sequence[str], sentences: int, longest: int) -> dict[str, Request]:
    """What is asked, by the name of its column: batches as lists of lengths."""
    found = {}
    for shape in shapes:
        rows, length = map(int, shape.split("x"))
        found[shape] = [[length] * rows]
    drawn = np.random.default_rng(0).lognormal(np.log(MEDIAN), SPREAD, sentences)
    lengths = [int(length) for length in np.clip(drawn, 3, longest)]
    for name, some in ((ARRIVAL, lengths), (SORTED, sorted(lengths))) if sentences else ():
        found[name] = [some[first : first + BATCH] for first in range(0, sentences, BATCH)]
    return found


def make_files(files: pathlib.Path, config_name: str, names: Sequence[str]) -> None:
    """Exports, of random weights, what is not there yet and can be made here."""
    from albert_tf import AlbertForSequenceClassification, AlbertModel
    from albert_tf.config import AlbertConfig
    from albert_tf.config_files import config_path
    from albert_tf.exporting.runtimes import runtime_export
    from albert_tf.exporting.saved_model import export_saved_model

    models: dict[str, Any] = {}
    for name in names:
        if (files / name).exists():
            continue
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        kind, _, weights = name.split("/")[0].rpartition("_")
        if not models:
            config = AlbertConfig.from_json_file(config_path(config_name))
            models = {
                "encoder": AlbertModel(config),
                "classifier": AlbertForSequenceClassification(config, num_labels=2),
            }
            for model in models.values():
                shake(model)
        if kind in ("saved_model", "classifier"):
            model = models["classifier" if kind == "classifier" else "encoder"]
            export_saved_model(files / name, model, precision=weights)
        else:
            format_name, _, packed = kind.partition("_")
            more = {"packed": True} if packed else {}
            runtime_export.RUNTIMES[format_name].write(str(files / name), models["encoder"], weights, **more)
        print(f"made {files / name}", flush=True)


def prepare(files: pathlib.Path, sizes: Mapping[str, Any]) -> None:
    """Makes the output directory, for one configuration: exports of another one's sizes stay in their own."""
    files.mkdir(parents=True, exist_ok=True)
    path = files / "config.json"
    if path.exists() and json.loads(path.read_text()) != sizes:
        sys.exit(f"{files} holds exports of a model of other sizes: give another --output")
    path.write_text(json.dumps(sizes))


class Worker:
    """The process of a contender; `cold_start` are its seconds to the first answer."""

    def __init__(self, python: str, name: str, files: pathlib.Path, sizes: Mapping[str, Any], threads: int):
        self._errors = open(files / f"{name}.log", "w")  # noqa: SIM115
        command = [python, inference_contenders.__file__, name, files, json.dumps(dict(sizes)), str(threads)]
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=_environment()
        )
        self.name = name
        self.memory = 0.0
        self.ask([[32]])
        self.cold_start = time.perf_counter() - begin

    def ask(self, request: Request) -> dict[str, float]:
        """See `inference_contenders.serve`.

        Raises:
            EOFError: the process has ended.
        """
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"the process has ended: see {self._errors.name}")
        reply: dict[str, float] = json.loads(line)
        self.memory = reply["memory"]
        return reply

    def close(self) -> None:
        self._process.communicate()
        self._errors.close()


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),  # for the packer
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
    }


def find(pythons: Sequence[str], wanted: Sequence[str]) -> list[tuple[str, str, str]]:
    """(contender, version, Python) of those of the wanted contenders that are installed, each version once."""
    found: dict[tuple[str, str], str] = {}
    for python in pythons:
        command = [python, inference_contenders.__file__, "--installed"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment()).stdout
        for name, version in json.loads(said).items():
            if any(part in name for part in wanted):
                found.setdefault((name, version), python)
    return [(name, version, python) for (name, version), python in found.items()]


def asked_of(contender: str, column: str, request: Request) -> Request | None:
    """What a contender is asked of a column: packed, it gets all sentences at once where others get them sorted.

    Returns:
        None for a packed one where each shape is given.
    """
    if inference_contenders.CONTENDERS[contender].packed is None or column == ARRIVAL:
        return request
    return [[length for rows in request for length in rows]] if column == SORTED else None


def measure(workers: Mapping[str, Worker], column: str, request: Request, rounds: int) -> dict[str, list[list[float]]]:
    """Contender to the seconds of each round, on the clock and of all threads, behind one round that warms up."""
    own = {name: asked_of(worker.name, column, request) for name, worker in workers.items()}
    asked = {name: lengths for name, lengths in own.items() if lengths is not None}
    seconds: dict[str, list[list[float]]] = {name: [] for name in asked}
    names = list(asked)
    for turn in range(rounds + 1):
        first = turn * len(names) // (rounds + 1)
        for name in names[first:] + names[:first]:
            reply = workers[name].ask(asked[name])
            if turn:
                seconds[name].append([reply["wall"], reply["cpu"]])
    return seconds


def table(results: Mapping[str, Any], asked: Mapping[str, Request], clock: int, threads: int) -> str:
    """Markdown; `clock` 0 for the time on the clock, 1 for that of all threads by their number."""
    lines = [
        "| | " + " | ".join([*asked, "first answer, s", "MiB"]) + " |",
        "|" + "---|" * (len(asked) + 3),
    ]
    for name, result in results.items():
        cells = []
        for column, request in asked.items():
            if column not in result["seconds"]:
                cells.append("–")
                continue
            median = statistics.median(values[clock] for values in result["seconds"][column])
            median /= threads if clock else 1
            sentences = sum(map(len, request))
            cells.append(f"{sentences / median:.1f}/s" if column in (ARRIVAL, SORTED) else f"{1000 * median:.1f}")
        cells += [f"{result['cold_start']:.1f}", f"{result['memory']:.0f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="albert_base_v2")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("inference_benchmark"))
    parser.add_argument("--pythons", default=sys.executable, help="separated by commas, the more important first")
    parser.add_argument("--contenders", default="", help="parts of their names, separated by commas; by default all")
    parser.add_argument("--shapes", default=SHAPES, help="rows x length, separated by commas")
    parser.add_argument("--sentences", type=int, default=256, help="of mixed length; 0 leaves them out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    from albert_tf.config import AlbertConfig
    from albert_tf.config_files import config_path

    sizes = AlbertConfig.from_json_file(config_path(arguments.config)).to_dict()
    files = arguments.output
    prepare(files, sizes)
    chosen = find(arguments.pythons.split(","), arguments.contenders.split(","))
    contenders = inference_contenders.CONTENDERS
    make_files(files, arguments.config, sorted({f for name, _, _ in chosen if (f := contenders[name].file)}))
    asked = requests(arguments.shapes.split(","), arguments.sentences, sizes["max_position_embeddings"])
    workers = {}
    for name, version, python in chosen:
        try:
            workers[f"{name} ({version})"] = Worker(python, name, files, sizes, arguments.threads)
        except EOFError as error:
            print(f"{name}, {version}, is left out: {error}", flush=True)
    results: dict[str, Any] = {
        name: {"seconds": {}, "cold_start": worker.cold_start, "memory": worker.memory}
        for name, worker in workers.items()
    }
    done: dict[str, Request] = {}
    for column, request in asked.items():  # written after each, for the later ones take long
        done[column] = request
        for name, seconds in measure(workers, column, request, arguments.rounds).items():
            results[name]["seconds"][column] = seconds
            results[name]["memory"] = workers[name].memory
        told = write_tables(files, results, done, arguments.threads)
        print(f"asked {column}", flush=True)
    for worker in workers.values():
        worker.close()
    print(told)


def write_tables(files: pathlib.Path, results: Mapping[str, Any], asked: Mapping[str, Request], threads: int) -> str:
    """table.json and table.md, which is given back."""
    (files / "table.json").write_text(json.dumps(results, indent=1))
    told = "\n".join(f"{title}\n\n{table(results, asked, clock, threads)}\n" for clock, title in _TITLES)
    (files / "table.md").write_text(told)
    return told


_TITLES = ((0, "Time on the clock"), (1, "CPU time of all threads, by their number"))

if __name__ == "__main__":
    main()
