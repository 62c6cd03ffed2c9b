"""albert_tf.run_finetuning, run as people run it: it learns, goes on after kill -9, and says what is wrong."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from albert_tf import AlbertForSequenceClassification
from tests import toy_tasks as toy
from tests.script_driver import Driver, arguments

STEPS = 60


@pytest.fixture(scope="module")
def driver():
    made = Driver("albert_tf.run_finetuning")
    yield made
    made.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    return toy.write_task(tmp_path_factory.mktemp("data") / "task")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> dict[str, str]:
    """Flags for random weights."""
    return toy.write_model_files(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def flags(data, model) -> dict[str, Any]:
    """A training that learns the toy task."""
    return {
        "task": "text",
        "data_dir": data,
        **model,
        "num_train_steps": STEPS,
        "learning_rate": 0.002,
        "train_batch_size": 16,
        "max_seq_length": 32,
        "eval_every": 20,
        "log_steps": 7,
        "save_checkpoints_steps": 25,
    }


def read_report(output: pathlib.Path) -> dict[str, Any]:
    return json.loads((output / "report.json").read_text())


def run_alone(expect: int = 0, **flags: Any) -> str:
    """Runs in a process of its own and returns stdout and stderr together."""
    command = [sys.executable, "-m", "albert_tf.run_finetuning", *arguments(flags)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == expect, done.stdout
    return done.stdout


# One run with everything


@pytest.fixture(scope="module")
def whole_run(driver, flags, tmp_path_factory) -> tuple[pathlib.Path, str]:
    output = tmp_path_factory.mktemp("whole") / "run"
    return output, driver.run(**flags, output_dir=output)


def test_it_learns_and_keeps_the_best_step(whole_run):
    output, text = whole_run
    report = read_report(output)
    assert report["scores"]["dev"]["accuracy"] > 0.95
    evaluations = report["history"]["evaluation"]
    assert [line["step"] for line in evaluations] == [20, 40, 60]
    best = max(evaluations, key=lambda line: (line["accuracy"], line["macro_f1"]))
    assert report["best_step"] == best["step"] and report["scores"]["dev"]["accuracy"] == best["accuracy"]
    assert f"the model is that of step {best['step']} of {STEPS}" in text
    about = json.loads((output / "model/task.json").read_text())
    assert about["task"] == "text_file" and about["scores"] == report["scores"] and about["step"] == best["step"]
    assert about["pairs"] is False


def test_everything_is_where_the_end_says(whole_run):
    output, text = whole_run
    for place in ("model", "predictions", "report.json", "logs"):
        assert (output / place).exists() and str(output / place) in text
    assert [line["step"] for line in read_report(output)["history"]["training"]] == [1, *range(7, STEPS, 7), STEPS]
    assert len((output / "predictions/test.tsv").read_text().splitlines()) == 11
    assert list((output / "logs/train").iterdir()) and list((output / "logs/held_out").iterdir())


def test_the_start_tells_every_setting_and_who_says_so(whole_run):
    _, text = whole_run
    for expected in (
        "RANDOM INITIALISATION",
        "learning_rate = 0.002  (--learning_rate)",
        "num_warmup_steps = 6  (default of albert_tf, scaled to 60 steps)",
        "classifier_dropout_prob = 0.1  (default of albert_tf)",
        "2 labels: bad, good",
        "train: 200 examples in 200 rows",
        "0.0% of them cut",
        "60, of which 6 warm-up; 4.62 epochs",
        "there is no early stop",
        "/train.tsv: the text is column 'text', the label is column 'label', all are used",
    ):
        assert expected in text, expected
    assert text.count("\n  ") > 60


def test_the_model_directory_needs_nothing_else(whole_run, data):
    from albert_tf import predicting, task_model
    from albert_tf.tasks.text_file import text_file_task

    output, _ = whole_run
    made = task_model.load(output)
    examples = text_file_task().read(str(data / "dev.tsv"))
    predictions = predicting.Predictor(made.model, made.kind).predict(examples, made.tokenizer)
    assert made.kind.scores(examples, predictions, ["accuracy"])["accuracy"] == made.about["scores"]["dev"]["accuracy"]
    other = AlbertForSequenceClassification.from_pretrained(output / "model")
    assert other.head.labels == ("bad", "good") and not other.load_report.missing


# The same command after kill -9


def test_a_run_that_was_killed_ends_like_one_that_was_not_bit_for_bit(driver, flags, whole_run, tmp_path):
    output = tmp_path / "run"
    kill_when(output, flags, signal.SIGKILL, step=35)
    text, code = kill_when(output, flags, signal.SIGTERM, step=49)
    assert code == 0 and "resuming at step 25 " in text
    saved = int(re.search(r"stopped by SIGTERM after step (\d+), saved", text).group(1))
    assert f"resuming at step {saved} " in driver.run(**flags, output_dir=output)
    whole = whole_run[0]
    for name in ("logs/training_log.jsonl", "logs/evaluation_log.jsonl", "model/model.safetensors", "model/task.json"):
        assert (whole / name).read_bytes() == (output / name).read_bytes(), name
    variables = f"checkpoints/step-{STEPS:08d}/variables.data-00000-of-00001"
    assert (whole / variables).read_bytes() == (output / variables).read_bytes()
    ours, theirs = read_report(whole), read_report(output)
    del ours["seconds"], theirs["seconds"], ours["files"], theirs["files"]
    assert ours == theirs


def kill_when(output: pathlib.Path, flags: dict[str, Any], signal_number: int, step: int) -> tuple[str, int]:
    """Starts the script, ends it by a signal when it has logged a step, and returns what it said and its exit code."""
    command = [sys.executable, "-m", "albert_tf.run_finetuning", *arguments({**flags, "output_dir": output})]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline, log = time.monotonic() + 300, output / "logs/training_log.jsonl"
    while not log.exists() or f'"step": {step}' not in log.read_text():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.002)
    process.send_signal(signal_number)
    return process.communicate()[0], process.returncode


def test_a_run_that_is_done_does_nothing_more(driver, flags, whole_run):
    output, _ = whole_run
    before = (output / "logs/training_log.jsonl").read_bytes()
    assert f"resuming at step {STEPS} " in driver.run(**flags, output_dir=output)
    assert (output / "logs/training_log.jsonl").read_bytes() == before


def test_changed_settings_are_refused_with_both_values(driver, flags, whole_run):
    text = driver.run(expect=1, **{**flags, "learning_rate": 0.01, "seed": 7}, output_dir=whole_run[0])
    assert "learning_rate was 0.002, now 0.01; seed was 42, now 7" in text and "Traceback" not in text


# Several seeds, collapse

LONGER = {"num_train_steps": 150, "eval_every": 150, "learning_rate": 0.001}


@pytest.fixture(scope="module")
def three_seeds(driver, flags, tmp_path_factory) -> tuple[pathlib.Path, str]:
    output = tmp_path_factory.mktemp("seeds") / "run"
    return output, driver.run(**{**flags, **LONGER}, seeds=3, output_dir=output)


def test_three_seeds_learn_and_are_summed_up(three_seeds):
    output, text = three_seeds
    assert f"of all seeds: {output / 'report.html'}" in text
    report = read_report(output)
    scores = [report["scores"][str(seed)]["dev"]["accuracy"] for seed in (42, 43, 44)]
    assert min(scores) > 0.95
    summary = report["summary"]["dev"]["accuracy"]
    assert summary["median"] == pytest.approx(np.median(scores)) and summary["mean"] == pytest.approx(np.mean(scores))
    assert summary["std"] == pytest.approx(np.std(scores, ddof=1))
    assert (summary["min"], summary["max"]) == (min(scores), max(scores))
    assert re.search(r"split +metric +median +mean +std +min +max", text)
    best = f"seed-{report['best_seed']}"
    for name in ("model.safetensors", "task.json"):
        assert (output / "model" / name).read_bytes() == (output / best / "model" / name).read_bytes()
    for path in (output / best / "predictions").iterdir():
        assert (output / "predictions" / path.name).read_bytes() == path.read_bytes()
    assert report["collapsed"] == {"42": False, "43": False, "44": False} and "learned nothing" not in text
    page = (output / "report.html").read_text("utf-8")
    links = re.findall(r'<a href="(.*?)">', page)
    assert len(links) == 3 and all((output / link).is_file() for link in links)
    assert f"<b><bdi>{summary['median']:.4f}</bdi></b><span><bdi>dev accuracy, median</bdi>" in page
    assert report["seconds"] > sum(read_report(output / f"seed-{seed}")["seconds"] for seed in (42, 43))


def test_a_seed_gives_the_same_bits_among_others_and_alone(driver, flags, three_seeds, tmp_path):
    driver.run(**{**flags, **LONGER, "seed": 44}, output_dir=tmp_path / "run")
    expected = (three_seeds[0] / "seed-44/model/model.safetensors").read_bytes()
    assert (tmp_path / "run/model/model.safetensors").read_bytes() == expected


def test_a_run_that_does_not_learn_is_told_and_begun_anew_on_request(driver, flags, tmp_path):
    stuck = {**flags, "learning_rate": 1e-9, "num_train_steps": 40, "eval_every": 40}
    text = driver.run(**stuck, output_dir=tmp_path / "told")
    assert text.count("WARNING: at step ") == 1 and "the model does not learn" in text
    for advice in ("a smaller --learning_rate", "more --num_warmup_steps", "dropout 0", "--restart_on_collapse=N"):
        assert advice in text
    report = read_report(tmp_path / "told")
    assert report["collapse_warning_at"] == 14 and report["guess_loss"] == pytest.approx(np.log(2))
    assert re.search(r"to the end the loss \(0\.[67]\d*\) was no better than that of a guess \(0\.6931\): the", text)

    before = report["seconds"]
    driver.run(**stuck, output_dir=tmp_path / "told")
    assert read_report(tmp_path / "told")["seconds"] > before / 2  # of both starts

    text = driver.run(**stuck, restart_on_collapse=1, mixed_precision="float16", output_dir=tmp_path / "anew")
    assert "beginning anew with the seed 1042" in text
    report = read_report(tmp_path / "anew")
    assert report["collapsed_attempts"] == [{"seed": 42, "step": 14}] and report["seed"] == 1042
    assert report["steps"] == 40


def test_other_texts_or_weights_are_another_run(driver, flags, data, model, tmp_path):
    """Of as many rows and under the same name: the content counts."""
    task = shutil.copytree(data, tmp_path / "task")
    weights = tmp_path / "weights"
    driver.run(**few(flags, tmp_path, train_file=data / "train.tsv", output_dir=weights))
    own = few(flags, tmp_path, data_dir=task, model=weights / "model", **dict.fromkeys(model))
    driver.run(**own)
    report = (tmp_path / "run/report.json").read_bytes()

    lines = (task / "dev.tsv").read_text().splitlines(keepends=True)
    (task / "dev.tsv").write_text("".join([lines[0], *reversed(lines[1:])]))
    assert "was begun with other settings: examples.dev was" in driver.run(expect=1, **own)
    (task / "dev.tsv").write_text("".join(lines))

    wrong = shutil.copytree(weights / "model", tmp_path / "wrong")
    config = json.loads((wrong / "albert_config.json").read_text())
    (wrong / "albert_config.json").write_text(json.dumps({**config, "intermediate_size": 12}))
    refused = driver.run(expect=1, **{**own, "model": wrong, "output_dir": tmp_path / "refused"})
    assert (
        "needs [32, 12]" in refused and "Traceback" not in refused and os.listdir(tmp_path / "refused") == ["run.json"]
    )
    driver.run(**{**own, "output_dir": tmp_path / "refused"})  # which that start holds to nothing

    shutil.rmtree(weights)
    driver.run(**few(flags, tmp_path, train_file=data / "train.tsv", output_dir=weights, seed=5))
    assert "was begun with other settings: weights was" in driver.run(expect=1, **own)
    assert (tmp_path / "run/report.json").read_bytes() == report


def test_a_vocabulary_that_does_not_fit_is_told(driver, flags, data, whole_run, tmp_path):
    assert "unknown to the vocabulary" not in whole_run[1]
    (tmp_path / "dev.tsv").write_text(re.sub(r"\b[dk]\w\w\b", "\u4e01", (data / "dev.tsv").read_text()))
    text = driver.run(**few(flags, tmp_path, train_file=data / "train.tsv", dev_file=tmp_path / "dev.tsv"))
    assert re.search(r"dev.tsv: [1-9][0-9.]* % of the pieces are unknown to the vocabulary \(more than 5 %\)", text)
    assert text.count("unknown to the vocabulary") == 1


def test_a_model_of_single_texts_gets_no_pairs(driver, whole_run, tmp_path):
    (tmp_path / "pairs.tsv").write_text("text_a\ttext_b\na\tb\n")
    given = {"task": "text", "test_file": tmp_path / "pairs.tsv", "do_predict": "true", "output_dir": tmp_path / "run"}
    text = driver.run(expect=1, **given, model=whole_run[0] / "model")
    assert "pairs.tsv, line 2: the model in" in text and "has learned from single texts, and this is a pair" in text
    assert not (tmp_path / "run").exists()


def test_early_stop_is_said(driver, flags, tmp_path):
    quick = {**flags, "learning_rate": 1e-9, "eval_every": 5, "early_stop_patience": 2}
    text = driver.run(**quick, output_dir=tmp_path / "run")
    report = read_report(tmp_path / "run")
    assert "early stop after step 15" in text and report["early_stop"] and report["steps"] == 15
    assert report["best_step"] == 5
    text = driver.run(**quick, output_dir=tmp_path / "run")
    assert "resuming at step 15 " in text and read_report(tmp_path / "run")["steps"] == 15


# Without training


def test_use_alone_takes_the_runs_own_model_in_one_pass(driver, flags, whole_run, tmp_path):
    output = tmp_path / "run"
    shutil.copytree(whole_run[0], output)
    shutil.rmtree(output / "predictions")
    given = {name: flags[name] for name in ("task", "data_dir")}
    text = driver.run(**given, model="albert_base_v2", do_predict="true", output_dir=output)
    assert f"using the model in {output}/model (--model=albert_base_v2 has no part in this)" in text
    assert (output / "predictions/test.tsv").read_bytes() == (whole_run[0] / "predictions/test.tsv").read_bytes()
    assert not (output / "predictions/dev.tsv").exists()
    first = driver.run(**given, do_eval="true", output_dir=output)
    probabilities = (output / "predictions/dev_probabilities.tsv").read_bytes()
    assert probabilities == (whole_run[0] / "predictions/dev_probabilities.tsv").read_bytes()
    assert driver.run(**given, do_eval="true", output_dir=output) == first
    assert (output / "predictions/dev_probabilities.tsv").read_bytes() == probabilities
    scores = json.loads((output / "predictions/scores.json").read_text())
    assert scores["dev"]["scores"] == read_report(whole_run[0])["scores"]["dev"]
    assert scores["dev"]["file"] == f"{flags['data_dir']}/dev.tsv" and scores["test"]["scores"] is None
    assert "100.00" in first or re.search(r"dev +accuracy +9\d\.\d\d", first)


def test_another_file_leaves_the_trainings_report_and_predictions_as_they_are(driver, whole_run, tmp_path):
    output = shutil.copytree(whole_run[0], tmp_path / "run")
    new = toy.write_tsv(tmp_path / "new.tsv", toy.texts(30, 9), ("text", "label"))
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file() and path.name != "scores.json"}
    given = {"task": "text", "dev_file": new, "test_file": new, "do_eval": "true", "do_predict": "true"}
    for _ in range(2):
        text = driver.run(**given, output_dir=output)
        assert f"of which file they are: {output}/predictions/scores.json" in text
        assert {path: path.read_bytes() for path in before} == before
    added = {str(path.relative_to(output)) for path in output.rglob("*") if path.is_file() and path not in before}
    endings = (".tsv", "_probabilities.tsv", ".html")
    names = {f"predictions/{split}-new{ending}" for split in ("dev", "test") for ending in endings}
    assert added == {*names, "predictions/scores.json"}
    scores = json.loads((output / "predictions/scores.json").read_text())
    assert list(scores) == ["dev", "test", "dev-new", "test-new"]
    assert scores["dev"]["scores"] == read_report(output)["scores"]["dev"]
    assert (scores["dev-new"]["file"], scores["dev-new"]["examples"]) == (new, 30)
    rows = [line.split("\t") for line in (output / "predictions/dev-new.tsv").read_text().splitlines()[1:]]
    right = [label == predicted for (_, label), (_, predicted) in zip(toy.texts(30, 9), rows)]
    assert scores["dev-new"]["scores"]["accuracy"] == pytest.approx(np.mean(right))
    assert re.search(r"dev-new +accuracy", text)


def test_use_of_a_directory_without_a_model_is_refused(driver, flags, tmp_path):
    given = {name: flags[name] for name in ("task", "data_dir")}
    assert "has no fine-tuned model" in driver.run(expect=1, **given, do_predict="true", output_dir=tmp_path)


OWN = {"text_column": "note", "label_column": "mood", "text_b_column": "place", "has_header": "true"}


@pytest.fixture(scope="module")
def own_columns(driver, flags, tmp_path_factory) -> tuple[pathlib.Path, dict[str, Any]]:
    """A training on columns that are found by flags alone, and the flags of its data."""
    directory = tmp_path_factory.mktemp("own")
    rows = [(str(n), words(n), words(n + 1), "bad" if n % 2 else "good") for n in range(12)]
    for split in ("train", "dev", "test"):
        toy.write_tsv(directory / f"data/{split}.tsv", rows, ("text", "note", "place", "mood"))
    given = {"task": "text", "data_dir": directory / "data"}
    text = driver.run(**few(flags, directory, **given, **OWN))
    for part in ("text is column 'note'", "text is column 'place'", "label is column 'mood'", "not used: 'text'"):
        assert part in text
    return directory / "run", given


def test_a_model_reads_the_columns_that_it_was_trained_on(driver, own_columns):
    output, given = own_columns
    about = json.loads((output / "model/task.json").read_text())
    assert about["columns"] == {**OWN, "has_header": True} and about["pairs"] is True
    assert json.loads((output / "run.json").read_text())["columns"] == about["columns"]
    expected = read_report(output)["scores"]
    text = driver.run(**given, do_eval="true", output_dir=output)
    assert "the text is column 'note'" in text
    assert json.loads((output / "predictions/scores.json").read_text())["dev"]["scores"] == expected["dev"]
    text = driver.run(**given, do_eval="true", text_column="text", output_dir=output)
    assert "the text is column 'text'" in text and "label is column 'mood'" in text


def test_other_columns_are_another_run(driver, flags, own_columns):
    output, given = own_columns
    more = {name: value for name, value in few(flags, output.parent, **given, **OWN).items()}
    text = driver.run(expect=1, **{**more, "text_column": "text"})
    assert "was begun with other settings: columns" in text and "examples.train was" in text


def test_a_number_is_evaluated_as_a_number(driver, flags, tmp_path):
    rows = [(words(n), str(n / 4)) for n in range(12)]
    for split in ("train", "dev"):
        toy.write_tsv(tmp_path / f"{split}.tsv", rows, ("text", "score"))
    given = {"task": "text", "data_dir": tmp_path}
    driver.run(**few(flags, tmp_path, **given, problem_type="regression"))
    expected = read_report(tmp_path / "run")["scores"]["dev"]
    model = shutil.copytree(tmp_path / "run/model", tmp_path / "elsewhere")
    (model / "task.json").unlink()
    for source in ({"output_dir": tmp_path / "run"}, {"output_dir": tmp_path / "new", "model": model}):
        driver.run(**given, do_eval="true", max_seq_length=32, **source)
        scores = json.loads((source["output_dir"] / "predictions/scores.json").read_text())
        assert scores["dev"]["scores"] == pytest.approx(expected)
    (tmp_path / "cola.tsv").write_text("id\t1\t\tThe boat sank.\nid\t0\t*\tBoat the sank.\n")
    text = driver.run(
        expect=1, task="cola", dev_file=tmp_path / "cola.tsv", do_eval="true", output_dir=tmp_path / "run"
    )
    assert "is for the problem type regression, not single_label_classification" in text and "Traceback" not in text


def test_numbers_far_from_0_are_learned_from_their_mean(driver, flags, tmp_path):
    """By the rates of real models, which move the bias of the head by 0.001 here; STS-B begins at 0, as released."""
    labels = [100 + 24 * (n % 5 - 2) for n in range(20)]
    rows = [(words(n), str(label)) for n, label in enumerate(labels)]
    given = {"task": "text", "data_dir": tmp_path / "data", "problem_type": "regression"}
    for split in ("train", "dev"):
        toy.write_tsv(given["data_dir"] / f"{split}.tsv", rows, ("text", "score"))
    more = few(flags, tmp_path, **given, learning_rate=1e-5, train_batch_size=20, num_train_steps=100, eval_every=100)
    text = driver.run(**more)
    assert "labels: mean 100, where a new head begins, standard deviation 33.94: rescaled to about 0 to 5 they" in text
    report = read_report(tmp_path / "run")
    assert report["scores"]["dev"]["mean_squared_error"] == pytest.approx(np.var(labels), rel=0.05)
    assert "is no better than that of a guess" in text and "What helps: labels rescaled" in text
    assert f"was no better than that of a guess ({np.var(labels):.4g}): the model has learned nothing" in text

    moved = [(text, str(float(label) + 500)) for text, label in rows]
    toy.write_tsv(tmp_path / "moved/train.tsv", moved, ("text", "score"))
    further = few(flags, tmp_path, **given, learning_rate=0, num_train_steps=50, output_dir=tmp_path / "further")
    further.update(
        data_dir=tmp_path / "moved", init_from_task=tmp_path / "run", albert_config_file=None, vocab_file=None
    )
    text = driver.run(**further)
    bias = AlbertForSequenceClassification.from_pretrained(tmp_path / "further/model").classifier.output_bias
    assert float(bias[0]) == pytest.approx(100, abs=0.01)
    assert "is worse than that of a guess" in text and "a guess is nearer than the model's answers" in text


def test_a_model_of_another_task_is_told(driver, whole_run, tmp_path):
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\na fine film\t1\na dull film\t0\n")
    given = {"do_eval": "true", "output_dir": tmp_path / "run", "dev_file": tmp_path / "dev.tsv"}
    text = driver.run(expect=1, task="sst-2", model=whole_run[0], **given)
    assert "has the labels bad, good, and those of SST-2 are" in text and not (tmp_path / "run").exists()
    shutil.copytree(whole_run[0] / "model", tmp_path / "model")
    about = json.loads((tmp_path / "model/task.json").read_text())
    (tmp_path / "model/task.json").write_text(json.dumps({**about, "task": "rte", "title": "RTE"}))
    (tmp_path / "dev.tsv").write_text("text\tlabel\na fine film\tgood\na dull film\tbad\n")
    text = driver.run(task="text", model=tmp_path / "model", **given)
    assert f"WARNING: {tmp_path}/model was fine-tuned on RTE, and is used for text file" in text


# Several devices, other precisions, other beginnings


def test_two_devices_do_what_one_does(driver, flags, whole_run, tmp_path):
    short = {**flags, "num_train_steps": 10, "eval_every": 10, "log_steps": 1, "classifier_dropout": 0.0}
    driver.run(**short, output_dir=tmp_path / "one", gradient_accumulation_steps=2)
    run_alone(
        **short, distribution_strategy="mirrored", num_logical_cpu_devices=2, num_devices=2, output_dir=tmp_path / "two"
    )
    one, two = (read_report(tmp_path / name)["history"] for name in ("one", "two"))
    for ours, theirs in zip(one["training"], two["training"]):
        assert ours == pytest.approx(theirs, rel=1e-4)
    assert one["evaluation"] == two["evaluation"]


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_learns(driver, flags, precision, tmp_path):
    driver.run(**flags, mixed_precision=precision, output_dir=tmp_path)
    report = read_report(tmp_path)
    assert report["scores"]["dev"]["accuracy"] > 0.9
    assert ("loss_scale" in report["history"]["training"][0]) == (precision == "float16")


def test_another_tasks_model_is_a_beginning(driver, flags, whole_run, model, tmp_path):
    rows = [(text, "yes" if label == "good" else "no", "x") for text, label in toy.texts(40, 5)]
    for split in ("train", "dev"):
        toy.write_tsv(tmp_path / f"other/{split}.tsv", rows, ("text", "label", "more"))
    more = {**flags, "data_dir": tmp_path / "other", "num_train_steps": 5, "eval_every": 5}
    more = {name: value for name, value in more.items() if name not in model}
    text = driver.run(**more, init_from_task=whole_run[0], output_dir=tmp_path / "new")
    assert "fine-tuned on text_file" in text and "at random: head" in text
    text = driver.run(**{**more, "data_dir": flags["data_dir"]}, model=whole_run[0], output_dir=tmp_path / "same")
    assert "at random" not in text
    assert read_report(tmp_path / "same")["history"]["training"][0]["loss"] < 0.3


def test_part_of_the_examples_and_a_cache(driver, flags, tmp_path):
    more = {**flags, "num_train_steps": 3, "max_train_examples": 50, "cache_dir": tmp_path / "cache"}
    text = driver.run(**more, output_dir=tmp_path / "run")
    assert "train: 50 of 200 examples" in text
    assert len(list((tmp_path / "cache").glob("*.npz"))) == 3


@pytest.fixture(scope="module")
def three_steps(driver, flags, tmp_path_factory) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """The flags of a short training, and its log."""
    short = {**flags, "num_train_steps": 3, "eval_every": 3, "log_steps": 1, "num_warmup_steps": 0}
    output = tmp_path_factory.mktemp("three") / "run"
    driver.run(**short, output_dir=output)
    return short, read_report(output)["history"]["training"]


@pytest.mark.parametrize(
    "change",
    [
        {"optimizer": "lamb"},
        {"weight_decay": 0.9},
        {"hidden_dropout": 0.5},
        {"attention_dropout": 0.5},
        {"classifier_dropout": 0.9},
        {"seed": 1},
    ],
)
def test_flags_change_the_training(driver, three_steps, change, tmp_path):
    short, log = three_steps
    text = driver.run(**{**short, **change}, tensorboard="false", output_dir=tmp_path)
    other = read_report(tmp_path)["history"]["training"]
    assert [line["step"] for line in other] == [line["step"] for line in log]
    assert other[-1]["loss"] != log[-1]["loss"]
    assert sorted(os.listdir(tmp_path / "logs")) == ["evaluation_log.jsonl", "training_log.jsonl"]
    assert "TensorBoard: tensorboard" not in text


def test_epochs_and_what_is_not_asked_for(driver, flags, data, tmp_path):
    more = {**flags, "num_train_steps": None, "num_train_epochs": 0.5, "do_train": "true", "eval_every": None}
    text = driver.run(**more, do_eval="false", jit_compile="true", eval_batch_size=7, output_dir=tmp_path)
    report = read_report(tmp_path)
    assert report["steps"] == 6 and report["best_step"] == 6 and report["settings"]["num_warmup_steps"] == 1
    assert not report["scores"] and not list((tmp_path / "predictions").iterdir())
    assert "there is no split to choose the best step by" in text


# Every head


def words(number: int) -> str:
    return " ".join(toy.WORDS[(number * 7 + at) % 100] for at in range(3 + number % 5))


def write_json(path: pathlib.Path, value: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return str(path)


def squad(version: str) -> dict[str, Any]:
    questions = [
        {
            "id": f"q{number}",
            "question": toy.WORDS[number],
            "answers": [] if number % 2 and version == "v2.0" else [{"text": toy.WORDS[3], "answer_start": 8}],
            **({"is_impossible": bool(number % 2)} if version == "v2.0" else {}),
        }
        for number in range(2)
    ]
    context = " ".join(toy.WORDS[1:8])
    assert context[8:].startswith(toy.WORDS[3])
    return {"version": version, "data": [{"title": "t", "paragraphs": [{"context": context, "qas": questions}]}]}


def few(flags: dict[str, Any], tmp_path: pathlib.Path, **more: Any) -> dict[str, Any]:
    kept = {name: value for name, value in flags.items() if name not in ("data_dir", "eval_every")}
    return {**kept, "num_train_steps": 3, "train_batch_size": 4, "output_dir": tmp_path / "run", **more}


@pytest.mark.parametrize("version", ["v1.1", "v2.0"])
def test_squad_trains_and_predicts(driver, flags, version, tmp_path):
    for split in ("train", "dev"):
        write_json(tmp_path / f"{split}-{version}.json", squad(version))
    task = {"task": f"SQuAD{version[1:]}", "data_dir": tmp_path}
    driver.run(**few(flags, tmp_path, **task, doc_stride=16, max_query_length=8, max_answer_length=4, n_best_size=3))
    answers = json.loads((tmp_path / "run/predictions/dev/predictions.json").read_text())
    assert set(answers) == {"q0", "q1"}
    report = read_report(tmp_path / "run")
    assert report["kind"]["doc_stride"] == 16
    assert report["kind"]["null_threshold"] == report["scores"]["dev"].get("best_f1_threshold")
    test = {"test_file": tmp_path / f"dev-{version}.json", "do_predict": "true", "output_dir": tmp_path / "run"}
    driver.run(**task, **test)
    assert json.loads((tmp_path / "run/predictions/test/predictions.json").read_text()) == answers
    if version == "v2.0":
        driver.run(**task, **test, null_score_threshold=-1000)
        assert set(json.loads((tmp_path / "run/predictions/test/predictions.json").read_text()).values()) == {""}


def test_a_file_that_teaches_nothing_is_named_before_anything_is_written(driver, flags, tmp_path):
    content = squad("v1.1")
    for of_question in content["data"][0]["paragraphs"][0]["qas"]:
        of_question["answers"] = []
    path = write_json(tmp_path / "train-v1.1.json", content)
    text = driver.run(expect=1, **few(flags, tmp_path, task="squad1.1", data_dir=tmp_path))
    assert f"error: {path}: there is nothing to train on: none of its 2 example(s) can be learned from (2 of 2" in text
    assert not (tmp_path / "run").exists()


def test_sts_b_has_one_output_and_correlations(driver, flags, tmp_path):
    header = ("index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2")
    rows = [(str(n), *"abcdef", words(n), words(n + 1)) for n in range(12)]
    scored = [(*row, str(n % 6)) for n, row in enumerate(rows)]
    for split in ("train", "dev"):
        toy.write_tsv(tmp_path / f"STS-B/{split}.tsv", scored, (*header, "score"))
    toy.write_tsv(tmp_path / "STS-B/test.tsv", rows, header)
    text = driver.run(**few(flags, tmp_path, task="STS", data_dir=tmp_path / "STS-B"))
    assert "HINT: published results of STS-B start from a model fine-tuned on mnli" in text
    assert re.search(r"dev +pearson", text) and re.search(r"dev +spearman", text)
    lines = (tmp_path / "run/predictions/STS-B.tsv").read_text().splitlines()
    assert lines[0] == "index\tprediction" and len(lines) == 13 and float(lines[1].split("\t")[1]) >= 0


def test_several_labels_of_a_csv(driver, flags, tmp_path):
    text = "words,topics\n" + "".join(f"{words(n)},{'a;b' if n % 2 else 'a'}\n" for n in range(12))
    (tmp_path / "train.csv").write_text(text)
    (tmp_path / "dev.csv").write_text(text)
    driver.run(
        **few(flags, tmp_path, data_dir=tmp_path, text_column="words", label_column="topics"),
        problem_type="multi_label_classification",
        label_separator=";",
        has_header="true",
    )
    scores = read_report(tmp_path / "run")["scores"]["dev"]
    assert set(scores) == {"micro_f1", "macro_f1", "accuracy"}


def test_choices_may_be_counted_from_one(driver, flags, tmp_path):
    rows = [(words(n), words(n + 2), words(n + 3), str(1 + n % 2)) for n in range(8)]
    for split in ("train", "dev"):
        toy.write_tsv(tmp_path / f"{split}.tsv", rows, ("question", "choice_1", "choice_2", "label"))
    given = {"task": "text", "data_dir": tmp_path}
    assert "a number from 0 to 1" in driver.run(expect=1, **few(flags, tmp_path, **given))
    text = driver.run(**few(flags, tmp_path, **given, first_choice_label=1))
    assert "the choice A is column 'choice_1', the choice B is column 'choice_2', the label is column 'label'" in text
    driver.run(**given, do_eval="true", output_dir=tmp_path / "run")
    scores = json.loads((tmp_path / "run/predictions/scores.json").read_text())["dev"]["scores"]
    assert scores == read_report(tmp_path / "run")["scores"]["dev"]


def test_choices_of_json_lines(driver, flags, tmp_path):
    rows = [
        {"story": words(n), "ask": words(n + 1), "one": words(n + 2), "two": words(n + 3), "right": n % 2}
        for n in range(8)
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    driver.run(
        **few(flags, tmp_path, data_dir=tmp_path, choice_columns="one,two", passage_column="story"),
        question_column="ask",
        label_column="right",
        max_qa_length=10,
    )
    report = read_report(tmp_path / "run")
    assert report["kind"]["max_qa_length"] == 10 and set(report["scores"]["dev"]) >= {"accuracy"}
    assert (tmp_path / "run/predictions/dev.tsv").read_text().splitlines()[1].split("\t")[1] in "AB"


def test_tags_of_columns(driver, flags, tmp_path):
    text = "".join(
        "".join(f"{word} {'B-PER' if at == 1 else 'O'}\n" for at, word in enumerate(words(n).split())) + "\n"
        for n in range(8)
    )
    (tmp_path / "train.txt").write_text(text)
    files = {"train_file": tmp_path / "train.txt", "dev_file": tmp_path / "train.txt"}
    said = driver.run(**few(flags, tmp_path, task="CoNLL", **files))
    assert "2 labels: B-PER, O" in said and "dev is train" in said
    assert (tmp_path / "run/predictions/dev.conll").exists()


# Failures


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"output_dir": None}, ["--output_dir"]),
        ({"data_dir": None}, ["--data_dir"]),
        ({"albert_config_file": None}, ["--model", "--albert_config_file"]),
        ({"vocab_file": None}, ["--spm_model_file", "--vocab_file"]),
        ({"model": ""}, ["--model is empty"]),
        ({"task": "glue"}, ["'glue'", "cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte", "wnli"]),
        ({"task": "cola", "text_column": "x"}, ["--text_column", "--task=text"]),
        ({"label_separator": ";"}, ["--label_separator", "give --problem_type=multi_label_classification"]),
        ({"task": "mnli", "data_dir": "."}, ["./train.tsv", "./MNLI/train.tsv", "--train_file"]),
        ({"task": "mnli", "data_dir": ".", "do_eval": "true"}, ["./dev_matched.tsv", "--dev_file"]),
        ({"data_dir": "nowhere"}, ["nowhere"]),
        ({"train_file": "nowhere.tsv"}, ["--train_file=nowhere.tsv"]),
        ({"learning_rate": "nan"}, ["--learning_rate"]),
        ({"cache_dir": "gs://bucket/cache"}, ["--cache_dir=gs://bucket/cache is an address"]),
        ({"optimizer": "adamx"}, ["lamb", "adamw"]),
        ({"num_train_steps": 3, "num_train_epochs": 1.0}, ["--num_train_steps", "--num_train_epochs"]),
        ({"do_train": "false", "do_eval": "false", "do_predict": "false"}, ["nothing to do"]),
    ],
)
def test_wrong_flags_are_told_in_one_sentence(driver, flags, tmp_path, changes, expected):
    text = driver.run(expect=1, **{**flags, "output_dir": tmp_path / "run", **changes})
    assert all(part in text for part in expected) and "Traceback" not in text
    assert len([line for line in text.splitlines() if line.startswith("error: ")]) == 1
    assert not (tmp_path / "run").exists()


def test_a_wrong_flag_is_told_within_seconds(flags, tmp_path):
    start = time.monotonic()
    text = run_alone(expect=1, **{**flags, "output_dir": tmp_path / "run", "task": None})
    assert text == "error: --task is missing (--help lists the flags)\n"
    assert time.monotonic() - start < 20 and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"doc_stride": 3}, ["--doc_stride", "no effect"]),
        ({"num_warmup_steps": STEPS + 1}, [f"--num_warmup_steps={STEPS + 1}", f"{STEPS} steps"]),
        ({"num_train_steps": None, "num_train_epochs": 0}, ["--num_train_epochs=0"]),
        ({"do_eval": "false", "early_stop_patience": 2}, ["--early_stop_patience", "--dev_file"]),
        ({"label_column": "lable"}, ["train.tsv has no label", "no column 'lable' for the label", "not used: 'label'"]),
        ({"max_seq_length": 65}, ["--max_seq_length=65", "64 positions"]),
        ({"train_batch_size": 3, "gradient_accumulation_steps": 2}, ["multiple of 2"]),
        ({"init_from_task": "mnli", "model": None}, ["--init_from_task=mnli"]),
        ({"model": "nowhere"}, ["nowhere"]),
    ],
)
def test_what_does_not_fit_is_told_before_the_first_step(driver, flags, tmp_path, changes, expected):
    text = driver.run(expect=1, **{**flags, "output_dir": tmp_path / "run", **changes})
    assert all(part in text for part in expected), text
    assert "Traceback" not in text and not (tmp_path / "run").exists()


def test_two_runs_do_not_share_a_directory(driver, flags, data, tmp_path):
    output = tmp_path / "run"
    long = {**flags, "num_train_steps": 100_000, "eval_every": 100_000, "log_steps": 1}
    command = [sys.executable, "-m", "albert_tf.run_finetuning", *arguments({**long, "output_dir": output})]
    with open(tmp_path / "said.txt", "w") as said:
        first = subprocess.Popen(command, stdout=said, stderr=said)
    deadline, log = time.monotonic() + 300, output / "logs/training_log.jsonl"
    while not log.exists() or not log.read_text():
        assert first.poll() is None and time.monotonic() < deadline, (tmp_path / "said.txt").read_text()
        time.sleep(0.01)
    before = (output / "run.json").read_bytes()
    text = driver.run(expect=1, **{**flags, "num_train_steps": 3}, output_dir=output)
    assert f"--output_dir={output} is in use by another process" in text and "Traceback" not in text
    assert (output / "run.json").read_bytes() == before
    first.kill()
    first.wait()
    assert "was begun with other settings" in driver.run(expect=1, **few(flags, tmp_path, data_dir=data))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("", "x", "is a file: give a directory"),
        ("model/notes.txt", "x", "holds notes.txt, which would be lost"),
        ("model/model.safetensors", "x", "holds model.safetensors, which would be lost"),
        ("run.json", '{"train_batch_size": 8}', "holds a pre-training run"),
    ],
)
def test_a_directory_with_other_things_is_left_as_it_is(driver, flags, tmp_path, name, content, expected):
    file = tmp_path / "run" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    text = driver.run(expect=1, **flags, output_dir=tmp_path / "run")
    assert expected in text and f"--output_dir={tmp_path / 'run'}" in text and "Traceback" not in text
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file] and file.read_text() == content


def test_a_stray_argument_is_told_in_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "albert_tf.run_finetuning", "train"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 1
    assert done.stdout.decode() == "error: unexpected argument 'train': everything is given as --flag=value\n"


def test_a_loss_that_is_not_finite_stops_with_the_step(driver, flags, tmp_path):
    text = driver.run(expect=1, **{**flags, "learning_rate": 1e30, "num_warmup_steps": 0}, output_dir=tmp_path / "run")
    assert re.search(r"error: step [23] failed: the loss is not finite", text) and "Traceback" not in text
    assert not list((tmp_path / "run").glob("checkpoints/*"))


def test_a_dev_file_without_labels_is_refused_before_tensorflow_starts(data, flags, tmp_path):
    start = time.monotonic()
    text = run_alone(expect=1, **{**flags, "output_dir": tmp_path / "run"}, dev_file=data / "test.tsv")
    assert f"{data}/test.tsv has no label in any row" in text and "--dev_file" in text and "--nodo_eval" in text
    assert time.monotonic() - start < 20 and not (tmp_path / "run").exists() and "devices" not in text


def test_bad_lines_are_named(driver, flags, tmp_path):
    toy.write_tsv(tmp_path / "train.tsv", [*toy.texts(9, 1), ("one cell",)], ("text", "label"))
    text = driver.run(expect=1, **{**flags, "data_dir": tmp_path}, output_dir=tmp_path / "run")
    assert "train.tsv, line 11" in text and "Traceback" not in text


def test_short_sequences_of_pairs_are_warned_of(driver, flags, tmp_path):
    rows = [(words(n), words(n + 1), str(n % 2)) for n in range(8)]
    for split in ("train", "dev"):
        toy.write_tsv(tmp_path / f"{split}.tsv", rows, ("text_a", "text_b", "label"))
    text = driver.run(**few(flags, tmp_path, data_dir=tmp_path, max_seq_length=8))
    assert re.search(r"max_seq_length.* 8 ", text) and os.path.exists(tmp_path / "run/model")
