"""The benchmarks about fine-tuning: their sums, the commands they run, and that they run at all."""

from __future__ import annotations

import importlib
import itertools
import json
import pathlib
import re
import sys
from typing import Any

import pytest

from tests import source_files
from tests.toy_vocabulary import number_model


@pytest.fixture(scope="session")
def does_it_learn(repository):
    return load("does_it_learn", repository)


@pytest.fixture(scope="session")
def passages(repository):
    return load("passages", repository)


@pytest.fixture(scope="session")
def finetuning_speed(repository):
    return load("finetuning_speed", repository)


def load(name: str, repository: pathlib.Path) -> Any:
    """The script as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repository / "benchmarks"))
        return importlib.import_module(name)


def known_flags(module: str) -> set[str]:
    """The flags that a script defines."""
    return set(source_files.flags_of(module))


def summary(least: float, mean: float, most: float) -> dict[str, float]:
    return {"median": mean, "mean": mean, "std": 0.0, "min": least, "max": most}


def test_a_line_of_the_table(does_it_learn):
    line = does_it_learn.line(
        "qnli", 1e-4, "accuracy", {"pre-trained": summary(0.6, 0.625, 0.65), "random": summary(0.5, 0.51, 0.52)}
    )
    assert line["difference"] == pytest.approx(0.115) and line["spread"] == pytest.approx(0.05)
    assert line["is_larger_than_spread"]
    row = does_it_learn.table([line]).splitlines()[2]
    assert row == "| qnli, accuracy, 0.0001 | 62.5 (60.0 to 65.0) | 51.0 (50.0 to 52.0) | +11.5 | 5.0 |"
    other = does_it_learn.line(
        "x", 1.0, "f1", {"pre-trained": summary(0.5, 0.6, 0.7), "random": summary(0.4, 0.5, 0.6)}
    )
    assert not other["is_larger_than_spread"]


def test_passages_stand_beside_some_of_their_clauses(passages, tmp_path):
    texts = ["Once, long ago; a cat sat.\nIt sat on a mat. So it was\n\nA dog ran.\n", "Birds sing, all day.\n"]
    for name, text in zip("ab", texts):
        (tmp_path / f"{name}.txt").write_text(text)
    pattern = passages.write_passages(str(tmp_path / "*.txt"), tmp_path / "text", words=8)
    files = sorted(tmp_path.glob("text/*"))
    assert pattern == str(tmp_path / "text" / "*.txt") and len(files) == 2
    documents = [document.split("\n") for path in files for document in path.read_text()[:-2].split("\n\n")]
    expected = ["Once, long ago; a cat sat. It sat", "on a mat. So it was", "A dog ran.", "Birds sing, all day."]
    assert len(documents) == len(expected)
    for lines, passage in zip(documents, expected):
        assert passage in lines and len(lines) == 2
        of_passage = [f"{words} " for words in re.split(r"(?<=[,;.]) ", passage)]
        rest = f"{lines[1 - lines.index(passage)]} "
        assert rest.strip()
        for clause in of_passage:
            rest = rest.replace(clause, "", 1)
        assert rest == ""


def test_every_stage_runs_once_with_flags_that_there_are(does_it_learn, tmp_path, monkeypatch):
    commands = []
    clock = itertools.count()
    text, output = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("One two, three four.\n")

    def run(module: str, **arguments: Any) -> None:
        """In place of the command: what it would leave."""
        commands.append((module, arguments))
        assert set(arguments) <= known_flags(module), module
        if module == "data_prep.train_sentencepiece":
            pathlib.Path(f"{arguments['output_prefix']}.model").write_text("")
        elif module == "data_prep.create_pretraining_data":
            arguments["output_dir"].mkdir()
            (arguments["output_dir"] / "metadata.json").write_text("{}")
        elif module == "albert_tf.run_pretraining":
            (arguments["output_dir"] / "model").mkdir(parents=True)
        else:
            arguments["output_dir"].mkdir(parents=True)
            score = 0.7 if "model" in arguments else 0.6
            of_dev = {"accuracy": summary(score, score, score), "matthews": summary(score, score, score)}
            report = {"summary": {"dev": {**of_dev, "f1": summary(score, score, score)}}}
            (arguments["output_dir"] / "report.json").write_text(json.dumps(report))

    monkeypatch.setattr(does_it_learn, "run", run)
    monkeypatch.setattr(does_it_learn.time, "monotonic", lambda: float(15 * next(clock) ** 2))
    monkeypatch.setattr(
        sys, "argv", ["does_it_learn", f"--input_file={text}", f"--output={output}", "--data_dir=data", "--minutes=2"]
    )
    does_it_learn.main()
    modules = [module.split(".")[1] for module, _ in commands]
    a_phase = ["create_pretraining_data"] + 3 * ["run_pretraining"]
    assert modules == ["train_sentencepiece"] + 2 * a_phase + 8 * ["run_finetuning"]
    short, passages = commands[4][1], commands[8][1]
    # The two timed runs take 15 and 75 "seconds", so 150 steps take 60; the later two 135 and 195.
    assert short["num_train_steps"] == int(2 * 150 * 0.43) and short["num_warmup_steps"] == 6
    assert passages["num_train_steps"] == int(2 * 150 * 0.57)
    assert "init_checkpoint" not in short and passages["init_checkpoint"] == short["output_dir"] / "model"
    assert [commands[at][1]["max_seq_length"] for at in (1, 5)] == [32, 64]
    assert commands[1][1]["input_file"] == str(text)
    assert commands[5][1]["input_file"] == str(output / "text_of_passages" / "*.txt")
    for with_model, without in zip(commands[9::2], commands[10::2]):
        assert with_model[1]["model"] == output / "passages" / "model" and "albert_config_file" in without[1]
        start = ("model", "output_dir", "albert_config_file", "spm_model_file")
        same = [{name: value for name, value in of[1].items() if name not in start} for of in (with_model, without)]
        assert same[0] == same[1] and same[0]["seeds"] == 3
    lines = json.loads((output / "table.json").read_text())
    assert [line["task"] for line in lines] == ["sst-2", "cola", "qnli", "squad1.1"]
    assert [line["learning_rate"] for line in lines] == [2e-3, 3e-4, 1e-4, 3e-4]
    assert (output / "table.md").read_text() == does_it_learn.table(lines)

    commands.clear()
    does_it_learn.main()
    assert commands == []

    monkeypatch.setitem(does_it_learn.FINETUNING, "train_batch_size", 1)
    with pytest.raises(SystemExit, match="begun with other settings"):
        does_it_learn.main()


def test_metrics_of_the_table_are_those_of_the_tasks(does_it_learn):
    from albert_tf.tasks.catalogue import find_task

    for name, task in does_it_learn.TASKS.items():
        assert task.metric == find_task(name).metrics[0]
        assert {"train_file", "dev_file"} <= set(task.settings)


def test_files_of_the_table_are_there(does_it_learn, shared):
    for task in does_it_learn.TASKS.values():
        for name in ("train_file", "dev_file"):
            assert (shared / "data" / task.settings[name]).exists()


def test_first_steps_are_told_apart(finetuning_speed):
    lengths = [16, 32, 16, 16, 64, 16, 32]
    seconds = [5.0, 9.0, 1.0, 2.0, 7.0, 3.0, 4.0]
    # 16: 5 counts as 2, 3 more; 32: 9 counts as 4, 5 more; 64 has one step, which counts as it is.
    assert finetuning_speed.epoch_and_first_steps(lengths, seconds) == ((2 + 1 + 2 + 3) + (4 + 4) + 7, 3 + 5)


def test_fine_tuning_is_timed(finetuning_speed, tmp_path, monkeypatch, capsys):
    rows = [f"x\t{i % 2}\t\t{'the house ' * (1 + i % 4)}2019, end" for i in range(40)]
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    config = {
        "vocab_size": 200,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "embedding_size": 8,
        "max_position_embeddings": 64,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    arguments = [f"--data_dir={tmp_path}", f"--config={tmp_path / 'config.json'}", f"--vocabulary={number_model()}"]
    arguments += ["--batch=4", "--length=24", "--seeds=1"]
    monkeypatch.setattr(sys, "argv", ["finetuning_speed", *arguments])
    finetuning_speed.main()
    told = capsys.readouterr().out
    assert "CoLA, 40 rows" in told and "length buckets" in told and "all padded" in told and "of the time" in told


def test_the_table_of_formats(repository):
    quantisation = load("quantisation", repository)
    cells = {"a": {"one": "1.0", "two": "2.0"}, "b": {"one": "3"}}
    assert quantisation.table(cells).splitlines() == [
        "| | a | b |",
        "|---|---|---|",
        "| one | 1.0 | 3 |",
        "| two | 2.0 |  |",
    ]
    clock = itertools.count().__next__
    functions = {name: lambda inputs: inputs for name in (quantisation.MODEL, "other")}
    assert quantisation.seconds(functions, 1, 4, 9, clock) == {quantisation.MODEL: 1, "other": 1}
