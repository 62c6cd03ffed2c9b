"""albert_tf.job_flags: what flags and recipe come to, without a training."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import finetuning_flags, job_flags, task_flags
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.finetuning_data import Split
from albert_tf.finetuning_run import Data
from albert_tf.tasks import recipes, text_file
from albert_tf.tasks.examples import QuestionExample, TextExample
from tests import own_flags
from tests import toy_tasks as toy


def use_flags(monkeypatch, **given):
    """Lets the modules of fine-tuning's flags read these."""
    values = own_flags.parsed(finetuning_flags, **given)
    own_flags.use(monkeypatch, finetuning_flags, task_flags, job_flags, values=values)


@pytest.mark.parametrize("task", ["cmrc2018", "squad1.1", "squad2.0"])
def test_the_recipes_epochs_are_those_of_the_flag(monkeypatch, task):
    recipe, windows, batch = recipes.find_recipe(task), 19_200, 48
    sizes = np.full(windows, 4, np.int32)
    features = FeatureSet(np.zeros(4 * windows, np.int32), sizes, sizes, np.arange(windows, dtype=np.int32) // 8)
    examples = [QuestionExample(str(number), "q", "c") for number in range(windows // 8)]
    training = Data(Split("train", "train.json", examples, len(examples)), features)
    use_flags(monkeypatch)
    of_recipe = job_flags.find_settings(recipe, training, batch, 1e-5, {})
    use_flags(monkeypatch, num_train_epochs=recipe.num_train_epochs)
    assert of_recipe == job_flags.find_settings(recipe, training, batch, 1e-5, {})
    assert of_recipe.num_train_steps == round(recipe.num_train_epochs * windows / batch)


@pytest.mark.parametrize(
    ("rows", "given", "expected"),
    [
        (2490, {}, {"num_train_steps": "paper, Table 14", "num_warmup_steps": "paper, Table 14"}),
        (
            320,
            {},
            {
                "num_train_steps": "paper, Table 14, scaled to 320 rows in batches of 32",
                "num_warmup_steps": "paper, Table 14, scaled to 103 steps",
            },
        ),
        (
            2490,
            {"num_train_steps": 3},
            {"num_train_steps": "--num_train_steps", "num_warmup_steps": "paper, Table 14, scaled to 3 steps"},
        ),
        (320, {"num_warmup_steps": 5}, {"num_warmup_steps": "--num_warmup_steps"}),
    ],
)
def test_steps_that_the_paper_has_for_another_file_are_said_to_be_scaled(monkeypatch, rows, given, expected):
    sizes = np.full(rows, 4, np.int32)
    features = FeatureSet(np.zeros(4 * rows, np.int32), sizes, sizes, np.arange(rows, dtype=np.int32))
    training = Data(Split("train", "train.tsv", [TextExample(str(n), "a") for n in range(rows)], rows), features)
    use_flags(monkeypatch, **given)
    recipe = recipes.find_recipe("rte")
    sources = dict(recipe.sources)
    job_flags.find_settings(recipe, training, recipe.train_batch_size, 1e-5, sources)
    assert {name: sources[name] for name in expected} == expected


PAIR = ("text_a", "text_b", "label")
LABELLED_PAIRS = [("bal bel", "bil bol", "a"), ("bul dal", "del dil", "b")] * 4


def splits_of(monkeypatch, directory: pathlib.Path | str, **given):
    """The task, and what is read of the files in a directory for a training with these flags."""
    use_flags(monkeypatch, task="text", data_dir=directory, output_dir="run", **given)
    to_do = frozenset(("train", "eval", "predict"))
    task = task_flags.find_task(to_do)
    return task, task_flags.read_splits(task, to_do)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_single_texts_beside_pairs_to_learn_from_are_refused(monkeypatch, tmp_path, split):
    toy.write_tsv(tmp_path / "train.tsv", LABELLED_PAIRS, PAIR)
    toy.write_tsv(tmp_path / f"{split}.tsv", [("bal", "a")], ("text", "label"))
    with pytest.raises(InputError) as error:
        splits_of(monkeypatch, tmp_path)
    assert f"{split}.tsv, line 2: {tmp_path}/train.tsv has pairs of texts, and this is a single one" in str(error.value)
    assert "the text is column 'text'" in str(error.value) and "--text_b_column" in str(error.value)


def test_a_file_without_a_header_whose_second_text_passes_for_the_label(monkeypatch, tmp_path):
    toy.write_tsv(tmp_path / "train.tsv", LABELLED_PAIRS[1:], LABELLED_PAIRS[0])
    toy.write_tsv(tmp_path / "test.tsv", [("bal", "bel")], ("dal", "del"))
    with pytest.raises(InputError, match="test.tsv, line 1: .*/train.tsv has pairs.* the label is column 1"):
        splits_of(monkeypatch, tmp_path)
    _, splits = splits_of(monkeypatch, tmp_path, text_column=0, text_b_column=1, label_column=2)
    assert [(one.text_a, one.text_b, one.label) for one in splits["test"].examples][0] == ("dal", "del", None)


@pytest.mark.parametrize("without", ["train", "dev", "test"])
def test_a_header_in_one_file_alone_is_warned_of(monkeypatch, tmp_path, caplog, without):
    rows = [("bal bel", "a"), ("bil bol", "b"), ("bul dal", "c")]
    for split in ("train", "dev", "test"):
        toy.write_tsv(tmp_path / f"{split}.tsv", rows, ("phrase", "mood") if split == without else ("text", "label"))
    splits_of(monkeypatch, tmp_path)
    with_header = "train" if without != "train" else "dev"
    assert (
        f"{without}.tsv, line 1 is taken for a row, though its label 'mood' is in no other one and {tmp_path}/"
        f"{with_header}.tsv has a header: if the line is a header too, say --has_header" in caplog.text
    )


def test_files_with_and_without_a_header_that_are_meant_so(monkeypatch, tmp_path, caplog):
    rows = [("bal bel", "a"), ("bil bol", "b"), ("bul dal", "a")]
    toy.write_tsv(tmp_path / "train.tsv", rows[1:], rows[0])
    toy.write_tsv(tmp_path / "dev.tsv", rows, ("text", "label"))
    toy.write_tsv(tmp_path / "test.tsv", [("7", "bal", "a")], ("id", "text", "label"))
    splits_of(monkeypatch, tmp_path)
    assert not caplog.text


def test_the_columns_of_every_file_are_told(monkeypatch, tmp_path, capsys):
    toy.write_tsv(tmp_path / "train.tsv", LABELLED_PAIRS, PAIR)
    toy.write_tsv(tmp_path / "dev.tsv", LABELLED_PAIRS, ("sentence1", "sentence2", "class"))
    toy.write_tsv(tmp_path / "test.tsv", [("bal", "bel")], ("premise", "hypothesis"))
    model = toy.write_model_files(tmp_path / "model")
    task, splits = splits_of(monkeypatch, tmp_path, **model, max_seq_length=32)
    job_flags.make_job(task, job_flags.find_source(task), splits, tf.distribute.OneDeviceStrategy("/cpu:0"))
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("columns of ")]
    assert [line.split(":")[0].rsplit("/")[-1] for line in said] == ["train.tsv", "dev.tsv", "test.tsv"]
    assert "the second text is column 'sentence2', the label is column 'class'" in said[1]


# Files at an address


def copied(directory: pathlib.Path, address: str) -> str:
    """The files of a directory at an address."""
    tf.io.gfile.makedirs(address)
    for path in directory.iterdir():
        tf.io.gfile.copy(str(path), f"{address}/{path.name}", overwrite=True)
    return address


def test_files_at_an_address_are_found_and_read(monkeypatch, tmp_path, caplog):
    address = copied(toy.write_task(tmp_path, 8, 4, 2), "ram://job_flags/data")
    _, splits = splits_of(monkeypatch, address)
    assert {name: split.path for name, split in splits.items()} == {
        name: f"{address}/{name}.tsv" for name in ("train", "dev", "test")
    }
    _, named = splits_of(monkeypatch, tmp_path, train_file=f"{address}/train.tsv", dev_file=f"{address}/train.tsv")
    assert named["dev"].examples == splits["train"].examples
    assert "dev is train" in caplog.text
    with pytest.raises(InputError, match="--test_file=ram://job_flags/data/none.tsv does not exist"):
        splits_of(monkeypatch, tmp_path, test_file=f"{address}/none.tsv")
    with pytest.raises(InputError, match="--data_dir=ram://job_flags/none is not a directory"):
        splits_of(monkeypatch, "ram://job_flags/none")


def test_a_model_beside_an_output_directory_at_an_address(monkeypatch, tmp_path):
    tf.io.gfile.makedirs("ram://job_flags/mnli")
    with tf.io.gfile.GFile("ram://job_flags/mnli/task.json", "w") as file:
        file.write("{}")
    use_flags(monkeypatch, init_from_task="mnli", output_dir="ram://job_flags/rte/")
    with pytest.raises(InputError, match="^ram://job_flags/mnli holds no weights"):
        job_flags.find_source(text_file.TEXT_FILE)
    use_flags(monkeypatch, init_from_task="cola", output_dir=tmp_path / "rte/")
    with pytest.raises(InputError, match=f"no fine-tuned model in cola or {tmp_path}/cola"):
        job_flags.find_source(text_file.TEXT_FILE)


def test_the_problem_of_a_model_at_an_address(monkeypatch):
    tf.io.gfile.makedirs("ram://job_flags/regression")
    with tf.io.gfile.GFile("ram://job_flags/regression/head_config.json", "w") as file:
        file.write(json.dumps({"kind": "classifier", "num_labels": 1}))
    use_flags(monkeypatch, model="ram://job_flags/regression", output_dir="ram://job_flags/none")
    assert task_flags.columns_of_model() == {"problem_type": "regression"}
