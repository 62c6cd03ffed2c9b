"""The README: its commands run as written, its paths exist, its tables say what the code says."""

from __future__ import annotations

import os
import pathlib
import re
import runpy
import stat
import subprocess
import sys

import numpy as np
import pytest

import albert_tf
from albert_tf.config import AlbertConfig
from albert_tf.describe import paper_figure
from albert_tf.tasks.catalogue import find_task
from albert_tf.tasks.examples import (
    AnswerPrediction,
    ChoiceExample,
    ChoicePrediction,
    QuestionExample,
    TagExample,
    TagPrediction,
    TextExample,
    TextPrediction,
)
from tests import source_files

REPOSITORY = source_files.REPOSITORY
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
_NOT_RUN = "<!-- not run by the tests: "
_SEQUENCE = 512


def commands() -> list[tuple[str, str]]:
    """The shell and Python blocks that are to be run, in order: program and text."""
    parts = re.split(r"```(sh|python)\n(.*?)```", README, flags=re.DOTALL)
    blocks = zip(parts[::3], parts[1::3], parts[2::3])
    return [(kind, block) for before, kind, block in blocks if _NOT_RUN not in before.rstrip().splitlines()[-1]]


def rows(heading: str) -> list[dict[str, str]]:
    """The table that begins with this heading, a dict for each row."""
    lines = README[README.index(f"| {heading} |") :].split("\n\n")[0].splitlines()
    names, *cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|-")
    ]
    return [dict(zip(names, row)) for row in cells]


FILES = rows("Predictions of")


def test_every_command_runs_as_written(tmp_path: pathlib.Path):
    """In one empty folder, one after the other, with `python` being the one of the tests."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
        "PYTHONPATH": str(REPOSITORY),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    folder = tmp_path / "work"
    folder.mkdir()
    assert len(commands()) >= 7
    for kind, command in commands():
        program = ["sh", "-ec"] if kind == "sh" else ["python", "-c"]
        result = subprocess.run([*program, command], cwd=folder, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, f"{command}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
    assert (folder / "run" / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize("page", PAGES)
def test_every_flag_named_exists(page):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    defined = set(re.findall(r"DEFINE_\w+\(\s*\"(\w+)\"", "".join(p.read_text() for p in source_paths())))
    foreign = {"help", "flagfile", "no-deps", "model_path"}
    for flag in re.findall(r"(?<![\w-])--([a-z][\w-]*)", text):
        assert flag in defined | foreign or flag.removeprefix("no") in defined, flag


def source_paths() -> list[pathlib.Path]:
    return [path for package in source_files.PACKAGES for path in (REPOSITORY / package).rglob("*.py")]


@pytest.mark.parametrize("page", PAGES)
def test_every_path_named_exists(page):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    named = [
        path for path in re.findall(r"`([\w./-]+)`", prose) if re.search(r"^(albert_tf|data_prep|configs|tests)/", path)
    ]
    for path in [*links, *named]:
        assert (REPOSITORY / path).exists(), path


def test_every_class_named_is_public():
    named = set(re.findall(r"`(Albert\w+)`", README))
    assert "AlbertForPreTraining" in named and named <= set(albert_tf.__all__)


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_named_exists(page):
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(
        re.findall(r"(?:^|`)make ([a-z-]+)", (REPOSITORY / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    assert named <= targets


def test_sizes_are_those_of_the_configurations():
    found = set()
    for row in rows("Configuration"):
        first = row["Configuration"].split(",")[0]
        names = [first] if first == row["Configuration"] else [first, first.replace("_v1", "_v2")]
        for name in names:
            found.add(f"{name}.json")
            config = AlbertConfig.from_json_file(REPOSITORY / "configs" / f"{name}.json")
            assert [row["Layers"], row["H"], row["E"], row["Heads"]] == [
                str(config.num_hidden_layers),
                str(config.hidden_size),
                str(config.embedding_size),
                str(config.num_attention_heads),
            ]
            assert row["Parameters"] == f"{config.parameter_count():,}"
            assert row["With both heads"] == f"{config.parameter_count(heads=True):,}"
            assert row["In the paper"] == paper_figure(config).split()[0].replace("not", "–")
            assert row["10⁹ multiplications"] == f"{multiplications(config) / 1e9:.1f}"
            expected_dropout = 0.1 if ("_v1" in name and "xxlarge" not in name) or name.startswith("bert") else 0.0
            assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == expected_dropout
    assert found == {path.name for path in (REPOSITORY / "configs").glob("*.json")}


def multiplications(config: AlbertConfig) -> int:
    """Of one sequence, forward, in the embeddings' projection and the layers."""
    hidden, width = config.hidden_size, config.intermediate_size
    projections = (
        4 * hidden * hidden + 2 * hidden * width
    )  # query, key, value, output; both of the feed-forward network
    scores = 2 * _SEQUENCE * hidden  # of a piece with all others, and the sum over their values
    into = config.embedding_size * hidden if config.embedding_size != hidden else 0
    return _SEQUENCE * (config.num_hidden_layers * (projections + scores) + into)


def test_stacks_are_those_of_setup(monkeypatch):
    setuptools = pytest.importorskip("setuptools")
    monkeypatch.setattr(setuptools, "setup", lambda **arguments: None)
    stacks = runpy.run_path(str(REPOSITORY / "setup.py"))["STACKS"]
    ranges = [f"2.{s.low}" if s.low == s.high else f"2.{s.low} – 2.{s.high}" for s in stacks]
    assert [row["TensorFlow"] for row in rows("Python")] == ranges


@pytest.mark.parametrize(
    ("told", "task", "example", "prediction"),
    [
        ("GLUE", "rte", TextExample("0", "a", "b"), TextPrediction("0", "entailment", np.ones(2))),
        ("`text`", "text", TextExample("0", "a"), TextPrediction("0", "x", np.ones(2))),
        ("Chinese texts", "afqmc", TextExample("0", "a", "b"), TextPrediction("0", "1", np.ones(2))),
        ("choices", "race", ChoiceExample("0", "a", "b", ("c", "d")), ChoicePrediction("0", 1, np.ones(2))),
        ("SQuAD and its like", "squad1.1", QuestionExample("0", "a", "b"), AnswerPrediction("0", "b", 0, 1, 1.0)),
        ("SQuAD 2.0 besides", "squad2.0", QuestionExample("0", "a", "b"), AnswerPrediction("0", "b", 0, 1, 1.0, 0.5)),
        ("`conll`", "conll", TagExample("0", ("a",)), TagPrediction("0", ("O",), (1.0,))),
    ],
)
def test_files_of_predictions_are_as_told(tmp_path, told, task, example, prediction):
    named = {row["Predictions of"]: set(re.findall(r"`([\w./-]+)`", row["Files of the split `test`"])) for row in FILES}
    written = find_task(task).write_submission(str(tmp_path / "test"), [example], [prediction], ("x", "y"))
    expected = {pathlib.Path(path).relative_to(tmp_path).as_posix() for path in written}
    if task in ("rte", "text", "afqmc"):
        named[told] |= named["all these, but for numbers"]
    if told == "SQuAD 2.0 besides":
        named[told] |= named["SQuAD and its like"]
    assert expected == named[told] - {"MNLI-m.tsv", "dev.tsv"}


def test_recipe_is_the_default():
    defaults = {
        "LAMB": '"optimizer", "lamb"',
        "batch 4096": '"train_batch_size", 4096',
        "rate 0.00176": "REFERENCE_RATE = 4096, 0.00176",
        "125,000 steps": '"num_train_steps", 125000',
        "3,125 of them": '"num_warmup_steps", 3125',
        "length 512": '"max_seq_length", 512',
        "9 of 10 inputs": "short_seq_prob: float = 0.1",
    }
    sources = re.sub(r"\(\s+", "(", "".join(path.read_text(encoding="utf-8") for path in source_paths()))
    for words, code in defaults.items():
        assert words in README
        assert code in sources
