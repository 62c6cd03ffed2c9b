"""What `make` runs: the choice of a Python, the environment that is made once, and the stages of the main job."""

from __future__ import annotations

import json
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from albert_tf.errors import InputError
from albert_tf.tokenization import load_tokenizer
from data_prep import python_documentation
from scripts import pretrain
from tests import source_files

REPOSITORY = source_files.REPOSITORY
THIS_STACK = "old" if sys.version_info < (3, 12) else "new"


def find_python(*arguments: str, path: pathlib.Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(path), **variables}
    command = ["bash", str(REPOSITORY / "scripts" / "find_python.sh"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def put_command(directory: pathlib.Path, name: str, text: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)


@pytest.fixture
def path(tmp_path) -> pathlib.Path:
    """A folder that is first on PATH, where every Python there may be further on is covered by one that fails."""
    for name in ("python", "python3", *(f"python3.{minor}" for minor in range(9, 14))):
        put_command(tmp_path, name, 'echo "pyenv: $0: command not found" >&2; exit 127')
    return tmp_path


def test_a_python_that_runs_is_found(path):
    put_command(path, "python3.12", f'exec "{sys.executable}" "$@"')
    for stack in ("any", THIS_STACK):
        result = find_python(stack, path=path)
        assert (result.returncode, result.stdout) == (0, f"{sys.executable}\n"), result.stderr


def test_a_python_of_pyenv_is_found(path):
    versions = path / "pyenv" / "versions" / "3.x" / "bin"
    versions.mkdir(parents=True)
    put_command(versions, "python3", f'exec "{sys.executable}" "$@"')
    result = find_python(THIS_STACK, path=path, PYENV_ROOT=str(path / "pyenv"))
    assert result.stdout == f"{sys.executable}\n", result.stderr


def test_no_python_is_said(path):
    other = "new" if THIS_STACK == "old" else "old"
    put_command(path, "python3", f'exec "{sys.executable}" "$@"')
    result = find_python(other, path=path)
    assert result.returncode == 1 and "error: no Python 3." in result.stderr
    put_command(path, "mine", "echo 3 8")
    result = find_python("any", path=path, PYTHON="mine")
    assert result.returncode == 1 and "PYTHON=mine is not a Python 3.9 - 3.13" in result.stderr


def test_a_python_without_venv_is_said(path):
    put_command(path, "python3", 'case "$2" in *ensurepip*) exit 1;; *) echo "3 11";; esac')
    result = find_python("any", path=path)
    assert result.returncode == 1 and "python3-venv" in result.stderr


class Environment:
    """scripts/environment.py on a folder of its own, with pip and venv replaced by notes of what they were asked."""

    def __init__(self, directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
        (directory / "scripts").mkdir()
        for name in ("setup.py", "pyproject.toml", "scripts/environment.py"):
            shutil.copy(REPOSITORY / name, directory / name)
        self.directory, self.done = directory, []
        self.fails = False
        self.prepare = runpy.run_path(str(directory / "scripts" / "environment.py"))["prepare"]
        monkeypatch.setattr("venv.create", self._create)
        monkeypatch.setattr("subprocess.run", self._run)

    def _create(self, directory, **arguments):
        shutil.rmtree(directory, ignore_errors=True)
        (directory / "bin").mkdir(parents=True)
        (directory / "bin" / "python").touch()
        self.done.append("venv")

    def _run(self, command, **arguments):
        if not pathlib.Path(command[0]).exists():
            raise FileNotFoundError(command[0])
        if "pip" in command:
            self.done.append(command[-1].replace(str(self.directory), ""))
            if self.fails:
                raise KeyboardInterrupt

    def __call__(self, *extras: str) -> list[str]:
        self.done = []
        try:
            self.prepare(list(extras))
        except KeyboardInterrupt:
            self.done.append("interrupted")
        return self.done


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    environment = Environment(tmp_path, monkeypatch)
    assert environment() == ["venv", ""]
    assert environment() == []
    assert environment("test") == ["[test]"]
    assert environment("lint") == ["[lint,test]"]
    assert environment() == environment("test") == []
    with open(tmp_path / "setup.py", "a") as file:
        file.write("# changed\n")
    assert environment() == ["[lint,test]"]
    assert environment() == []


def test_an_interrupted_environment_is_made_anew(tmp_path, monkeypatch):
    environment = Environment(tmp_path, monkeypatch)
    environment.fails = True
    assert environment("test") == ["venv", "[test]", "interrupted"]
    environment.fails = False
    assert environment("test") == ["venv", "[test]"]
    (python,) = tmp_path.glob(".venv/*/bin/python")
    python.unlink()  # as when the Python it was made of is gone
    assert environment() == ["venv", ""]


# ---- the main job


def write(path: pathlib.Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "documents", "has_paragraphs"),
    [
        ("One sentence a line.\nAnd one more of them!\n\nA second document.\n", 2, False),
        ("Two sentences here. They are a paragraph.\nOne more: it has two. It does.\n", 1, True),
        ("He said “no.” Then he left.\n", 1, True),
        ("Version 2.0 of e.g. this one is a single sentence.\n" * 5, 1, False),
        ("これは文です。これも文です。\n", 1, True),
    ],
)
def test_the_layout_of_the_text_is_seen(tmp_path, text, documents, has_paragraphs):
    path = write(tmp_path / "text.txt", text)
    found = pretrain.survey(path, "strict")
    num_bytes = sum(len(line.encode()) + 1 for line in text.splitlines() if line)
    assert (found.documents, found.has_paragraphs, found.bytes) == (documents, has_paragraphs, num_bytes)


def test_a_folder_belongs_to_its_text(tmp_path):
    first = pretrain.survey(write(tmp_path / "first.txt", "A text.\n"), "strict")
    second = pretrain.survey(write(tmp_path / "second.txt", "Another text.\n"), "strict")
    output = str(tmp_path / "output")
    pretrain.claim(output, second)
    pretrain.claim(output, first)  # nothing came of the other one
    write(tmp_path / "output" / pretrain.VOCABULARY, "")
    pretrain.claim(output, first)
    with pytest.raises(InputError, match="other text or settings .*OUTPUT="):
        pretrain.claim(output, second)


@pytest.mark.parametrize("name", ["INITIALIZER_RANGE", "MAX_SEQ_LENGTH"])
def test_a_folder_belongs_to_its_recipe(tmp_path, monkeypatch, name):
    text = pretrain.survey(write(tmp_path / "text.txt", "A text.\n"), "strict")
    pretrain.claim(str(tmp_path / "output"), text)
    write(tmp_path / "output" / pretrain.VOCABULARY, "")
    monkeypatch.setattr(pretrain, name, 2 * getattr(pretrain, name))
    with pytest.raises(InputError, match="other text or settings"):
        pretrain.claim(str(tmp_path / "output"), text)


def test_a_folder_belongs_to_its_stack(tmp_path, monkeypatch):
    from albert_tf import checkpointing

    assert checkpointing.STACK == pretrain.STACK
    text = pretrain.survey(write(tmp_path / "text.txt", "A text.\n"), "strict")
    pretrain.claim(str(tmp_path / "output"), text)
    write(tmp_path / "output" / pretrain.VOCABULARY, "")
    monkeypatch.setattr(pretrain, "STACK", "Keras 4")
    with pytest.raises(InputError, match=f"begun with {checkpointing.STACK}, and this Python has Keras 4.*OUTPUT="):
        pretrain.claim(str(tmp_path / "output"), text)


def test_the_folder_is_named_by_the_input_and_the_python():
    python = f"py{sys.version_info[0]}.{sys.version_info[1]}"
    assert pretrain.default_output("") == os.path.join("output", f"python_documentation_{python}")
    assert pretrain.default_output("my/*.txt") == os.path.join("output", f"my_txt_{python}")


def test_stages_are_given_the_input_as_it_was_given(tmp_path, monkeypatch):
    (tmp_path / "many").mkdir()
    for number in range(3000):
        write(tmp_path / "many" / f"with, a comma {number}.txt", "One sentence.\n")
    (tmp_path / "many" / "with, a comma 7.txt").write_bytes(b"Na\xefve.\n")
    asked = []
    monkeypatch.setattr(pretrain, "run", lambda module, **arguments: asked.append((module, arguments)))
    given = str(tmp_path / "many" / "*.txt")
    with pytest.raises(InputError, match="with, a comma 7.txt, line 1.*--errors=replace"):
        pretrain.survey(given, "strict")
    text = pretrain.survey(given, "replace")
    assert text.documents == 3000
    pretrain.make_vocabulary(text, str(tmp_path / "vocabulary.model"))
    pretrain.prepare(text, str(tmp_path / "vocabulary.model"), str(tmp_path / "records"))
    assert [module for module, _ in asked] == ["data_prep.train_sentencepiece", "data_prep.create_pretraining_data"]
    assert all((one["input_file"], one["errors"]) == (given, "replace") for _, one in asked)


class Pieces:
    """As much of a tokenizer as a record's text needs."""

    def __init__(self, text: str):
        self.list = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", *sorted({*text.split()})]

    def id_to_piece(self, piece):
        return self.list[piece]

    def pieces(self):
        return self.list


def test_whole_sentences_of_a_record():
    text = "▁end . ▁the ▁list ▁has ▁ten ▁item s ▁in ▁all . ▁short ▁one . ▁then ▁cut"
    pieces = Pieces(text)
    ids = [2, *(pieces.list.index(piece) for piece in text.split()), 3, 0]
    hidden = ids.index(pieces.list.index("▁list"))
    record = {
        "input_ids": np.array([4 if position == hidden else piece for position, piece in enumerate(ids)]),
        "masked_lm_positions": np.array([hidden, 0]),
        "masked_lm_ids": np.array([ids[hidden], 0]),
        "masked_lm_weights": np.array([1.0, 0.0]),
    }
    assert pretrain.whole_sentences(record, pieces) == ["the list has ten items in all."]


def test_the_vocabulary_follows_a_uniform_text(tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    text = write(tmp_path / "text.txt", "The cat sees the dog.\nThe dog sees the cat.\n" * 200)
    pretrain.make_vocabulary(pretrain.survey(text, "strict"), str(tmp_path / "vocabulary.model"))
    assert 20 < load_tokenizer(str(tmp_path / "vocabulary.model")).vocab_size < 100


def test_what_ends_the_script_ends_its_stage(tmp_path):
    """The stage stands for a training: at SIGTERM it saves, and ends well."""
    write(
        tmp_path / "stage.py",
        "import pathlib, signal, sys, time\n"
        "def save(*_): pathlib.Path('saved').touch(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save); pathlib.Path('begun').touch(); time.sleep(300)\n",
    )
    code = (
        "from scripts import pretrain; pretrain.sample_text = lambda output: pretrain.run('stage'); "
        "pretrain.define_flags(); pretrain.errors.run_main(pretrain.main)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{tmp_path}"}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert (tmp_path / "saved").exists()


def test_the_main_job_on_a_small_text(tmp_path):
    """All stages with three updates; a second call finds everything done, and other text is refused."""
    topics = [python_documentation.prose_sentences(topic) for topic in python_documentation.topic_texts()[:60]]
    write(tmp_path / "a text.txt", "\n\n".join("\n".join(sentences) for sentences in topics if sentences))
    code = (
        "import sys; from absl import flags; from albert_tf import errors; from scripts import pretrain\n"
        "pretrain.TRAINING.update(num_train_steps=3, num_warmup_steps=1, train_batch_size=4, log_steps=1)\n"
        "pretrain.MAX_DUPE_FACTOR = 1; pretrain.define_flags(); errors.run_main(pretrain.main)"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    result = run("--input=a text.txt")
    assert result.returncode == 0, result.stdout + result.stderr
    (output,) = (tmp_path / "output").glob("a_text_txt_py*")
    assert (output / "pretraining" / "model" / "model.safetensors").is_file()
    sizes = json.loads((output / "pretraining" / "model" / "albert_config.json").read_text())
    assert sizes["vocab_size"] < pretrain.VOCAB_SIZE
    assert result.stdout.count("$ python -m ") == 4
    assert "[MASK]" in result.stdout and "What stood there: " in result.stdout
    again = run("--input=a text.txt")
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.count("$ python -m ") == 3 and "What stood there: " in again.stdout
    write(tmp_path / "other.txt", "Another text. It has two sentences.\n")
    refused = run("--input=other.txt", f"--output={output}")
    assert refused.returncode == 1 and refused.stderr.startswith("error: ") and "Traceback" not in refused.stderr
