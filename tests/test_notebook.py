"""The notebook runs from top to bottom, on a tiny model and small files."""

from __future__ import annotations

import ast
import json
import os
import random

import pytest
import tensorflow as tf

from albert_tf.files import read_json
from tests import pipeline_models

NAME = "finetune_in_colab.ipynb"


@pytest.fixture
def path(repository):
    return repository / "notebooks" / NAME


def outputs_of(notebook, cell_id: str) -> str:
    """What a cell printed, and the kinds of pictures it drew."""
    cell = next(cell for cell in notebook.cells if cell.id == cell_id)
    parts = [output.get("text", "") or " ".join(output.get("data", {})) for output in cell.outputs]
    return "\n".join(parts)


def run(path, repository, directory, monkeypatch, *, until: str | None = None, **settings: str):
    """Executes the notebook in `directory`, with these parameters, to the end or to the cell of that id."""
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient (pip install nbclient ipykernel)")
    import nbformat  # nbclient needs it too

    for name, value in settings.items():
        monkeypatch.setenv(f"ALBERT_TF_{name}", value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(repository), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    if until is not None:
        ids = [cell.id for cell in notebook.cells]
        notebook.cells = notebook.cells[: ids.index(until) + 1]
    resources = {"metadata": {"path": str(directory)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    return notebook


def write_texts(path, count: int, seed: int, wrong_labels: bool = False) -> None:
    texts, labels = pipeline_models.texts_with_labels(count, seed)
    if wrong_labels:  # so that there is something to show
        rng = random.Random(seed)
        labels = [rng.choice(["minus", "plus"]) if at % 4 == 0 else label for at, label in enumerate(labels)]
    path.write_text("\n".join(["text\tlabel", *map("\t".join, zip(texts, labels))]) + "\n", encoding="utf-8")


def test_it_runs_from_top_to_bottom(path, repository, tmp_path, monkeypatch):
    tf.keras.utils.set_random_seed(7)
    settings = {
        "MODEL": pipeline_models.write_encoder(tmp_path / "encoder", max_position_embeddings=128),
        "TRAIN_FILE": "train.tsv",
        "DEV_FILE": "dev.tsv",
        "OUTPUT": "output",
        "EPOCHS": "3",
        "LEARNING_RATE": str(pipeline_models.RATE),
    }
    write_texts(tmp_path / "train.tsv", 960, seed=0)
    write_texts(tmp_path / "dev.tsv", 40, seed=1, wrong_labels=True)
    notebook = run(path, repository, tmp_path, monkeypatch, **settings)
    assert "train: 960 texts" in outputs_of(notebook, "data")
    assert "image/png" in outputs_of(notebook, "curves") and "image/png" in outputs_of(notebook, "confusion")
    scores = ast.literal_eval(outputs_of(notebook, "confusion").strip().splitlines()[-1])
    assert 0.8 < scores["accuracy"] < 1.0  # one label in eight is wrong
    assert "but is" in outputs_of(notebook, "wrong") and "dev.tsv, line " in outputs_of(notebook, "wrong")
    assert "['model', 'predictions.html', 'saved_model']" in outputs_of(notebook, "keep")
    assert "so 'plus' for" in outputs_of(notebook, "ask") or "so 'minus' for" in outputs_of(notebook, "ask")
    assert read_json(tmp_path / "output" / "model" / "task.json")["pairs"] is False


def test_a_tenth_is_held_back_where_there_is_no_second_file(path, repository, tmp_path, monkeypatch):
    write_texts(tmp_path / "all.tsv", 140, seed=0)
    notebook = run(path, repository, tmp_path, monkeypatch, until="data", TRAIN_FILE="all.tsv", DEV_FILE="")
    assert "train: 126 texts" in outputs_of(notebook, "data") and "dev: 14 texts" in outputs_of(notebook, "data")


@pytest.mark.parametrize("dev_file", ["dev.tsv", ""])
def test_no_label_is_lost_and_some_row_is_held_back(path, tmp_path, monkeypatch, dev_file):
    monkeypatch.chdir(tmp_path)
    rare = [f"text {number}\tlabel {number}\n" for number in range(8)]
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "".join(rare))
    (tmp_path / "dev.tsv").write_text("text\tlabel\ntext\tin dev alone\n")
    settings = {"TRAIN_FILE": "train.tsv", "DEV_FILE": dev_file, "MAX_TRAIN_EXAMPLES": 3, "SEED": 1}
    settings.update(dict.fromkeys(("TEXT_COLUMN", "SECOND_TEXT_COLUMN", "LABEL_COLUMN")))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    exec("".join(next(cell["source"] for cell in cells if cell["id"] == "data")), settings)
    expected = {f"label {number}" for number in range(8)} | ({"in dev alone"} if dev_file else set())
    assert set(settings["labels"]) == expected
    assert len(settings["train_examples"]) == 3 and len(settings["dev_examples"]) == 1


def test_it_is_stored_without_outputs(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 8
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert [cell["id"] for cell in code if "parameters" in cell["metadata"].get("tags", [])] == ["parameters"]


def test_every_section_says_what_it_does(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    headings = [cell["source"][0] for cell in cells if cell["cell_type"] == "markdown"]
    assert all(heading.startswith("#") for heading in headings)
    assert [heading[:4] for heading in headings[1:]] == [f"## {number}" for number in range(1, len(headings))]
