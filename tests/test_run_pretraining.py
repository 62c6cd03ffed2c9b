"""albert_tf.run_pretraining, run as people run it: it learns, goes on after kill -9, and says what is wrong."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from albert_tf import output_lock, pretraining_flags, run_pretraining
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from tests import own_flags, source_files
from tests import pretraining_records as toy
from tests.script_driver import Driver, arguments

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(5, toy.VOCAB_SIZE))]
COUNTS = [150, 90, 60]
STEPS = 200


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    """Records with metadata and a vocabulary, as create_pretraining_data leaves them, and a config."""
    import hashlib

    directory = tmp_path_factory.mktemp("data")
    vocabulary = directory / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS) + "\n")
    training = toy.write_shards(directory, COUNTS)
    held_out = toy.write_shards(directory, [10], split="eval", seed=7)
    toy.write_metadata(
        directory,
        [*training, *held_out],
        [*COUNTS, 10],
        vocab_file=str(vocabulary),
        vocab_sha256=hashlib.sha256(vocabulary.read_bytes()).hexdigest(),
        do_lower_case=False,
        keep_accents=True,
        kind="wordpiece",
    )
    toy.write_config(directory / "config.json")
    return directory


@pytest.fixture(scope="module")
def driver():
    """For runs on one device that nobody kills."""
    made = Driver("albert_tf.run_pretraining")
    yield made
    made.close()


def flag_values(data: pathlib.Path, output: pathlib.Path, **flags: Any) -> dict[str, Any]:
    return {
        "input_file": data / "train-*.tfrecord",
        "albert_config_file": data / "config.json",
        "output_dir": output,
        "train_batch_size": 32,
        "eval_batch_size": 4,
        "num_train_steps": 4,
        "num_warmup_steps": 1,
        "learning_rate": 0.03,
        "shuffle_buffer_size": 100,
        "log_steps": 1,
        **flags,
    }


def command(data: pathlib.Path, output: pathlib.Path, *runner: str, **flags: Any) -> list[str]:
    runner = runner or ("-m", "albert_tf.run_pretraining")
    return [sys.executable, *runner, *arguments(flag_values(data, output, **flags))]


def run(*given: Any, expect: int = 0, environment: dict[str, str] | None = None, **flags: Any) -> str:
    """Runs to the end in a process of its own and returns stdout and stderr together."""
    done = subprocess.run(
        command(*given, **flags),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == expect, done.stdout
    return done.stdout


def read_log(output: pathlib.Path, name: str = "training_log.jsonl") -> list[dict[str, float]]:
    return [json.loads(line) for line in (output / name).read_text().splitlines()]


# One run with everything: it learns, and everything it leaves is there

LONG = {
    "num_train_steps": STEPS,
    "num_warmup_steps": 20,
    "log_steps": 7,
    "eval_interval": 50,
    "save_checkpoints_steps": 40,
    "keep_checkpoint_max": 2,
    "iterations_per_loop": 5,
    "gradient_accumulation_steps": 2,
}


@pytest.fixture(scope="module")
def long_run(data, tmp_path_factory) -> tuple[pathlib.Path, str]:
    output = tmp_path_factory.mktemp("long") / "run"
    return output, run(data, output, eval_input_file=data / "eval-*.tfrecord", **LONG)


def test_it_learns_fifty_repeated_sentences(long_run):
    log = read_log(long_run[0])
    assert log[0]["step"] == 1
    assert log[0]["masked_lm_loss"] == pytest.approx(math.log(toy.VOCAB_SIZE), rel=0.05)
    assert log[0]["sentence_order_loss"] == pytest.approx(math.log(2), rel=0.05)
    assert log[-1]["masked_lm_loss"] < math.log(toy.VOCAB_SIZE) / 2
    assert log[-1]["sentence_order_accuracy"] > 0.9


def test_the_log_has_ascending_steps_and_the_rate_of_each(long_run):
    log = read_log(long_run[0])
    assert [line["step"] for line in log] == [1, *range(7, STEPS, 7), STEPS]
    for line in log:
        done = line["step"] - 1
        rate = 0.03 * (done / 20 if done < 20 else 1 - done / STEPS)
        assert line["learning_rate"] == pytest.approx(rate, rel=1e-5)
    assert sum(line["pieces"] for line in log) == STEPS * 32 * 15


def test_held_out_records_are_evaluated_and_the_best_kept_apart(long_run):
    output, text = long_run
    lines = read_log(output, "evaluation_log.jsonl")
    assert [line["step"] for line in lines] == [50, 100, 150, 200]
    assert all(line["examples"] == 10 and line["predictions"] == 30 for line in lines)
    best = json.loads((output / "best/evaluation.json").read_text())
    assert best == min(lines, key=lambda line: line["loss"])
    assert {"albert_config.json", "model.safetensors", "vocab.txt"} <= set(os.listdir(output / "best"))
    assert f"best held-out step: {best['step']}" in text


def test_the_output_directory_needs_nothing_else(long_run):
    from albert_tf.formats.checkpoint import find_vocabulary
    from albert_tf.models import AlbertForPreTraining

    output, _ = long_run
    model = AlbertForPreTraining.from_pretrained(output / "model")
    assert model.config.vocab_size == toy.VOCAB_SIZE
    for directory in (output, output / "model"):
        tokenizer = find_vocabulary(directory).tokenizer()
        assert tokenizer.pieces() == WORDS and tokenizer.do_lower_case is False and tokenizer.keep_accents is True
        assert json.loads((directory / "albert_config.json").read_text())["hidden_size"] == 64
    assert sorted(os.listdir(output / "checkpoints")) == ["step-00000160", "step-00000200"]


def test_the_report_tells_everything_before_and_after(data, long_run):
    output, text = long_run
    config = AlbertConfig.from_json_file(data / "config.json")
    for expected in (
        "RANDOM INITIALISATION",
        "train_batch_size = 32",
        "1 replica(s) on 1 worker(s); here: CPU:0",
        f"{config.parameter_count():,} parameters, {config.parameter_count(heads=True):,} with both heads; 32 ",
        "no weight decay and no trust ratio for 19 of them: bert/embeddings/LayerNorm/gamma",
        "records: 300 in 3 shard(s)",
        "200, of which 20 warm-up; 6,400 examples to be seen (21.33 epochs), 102,400 pieces at most",
        "masked_lm_loss 4.0943",
        f"checkpoint: {output}/checkpoints/step-00000200",
        f"portable model: {output}/model",
        f"--logdir={output}/tensorboard",
        "step 1: masked_lm_loss",
        "step 200: held-out masked_lm_loss",
        "is the best guess that does not look at the text",
    ):
        assert expected in text, expected
    flags = set(source_files.flags_of("albert_tf.run_pretraining"))
    assert {
        line.split(" = ")[0].strip() for line in text.splitlines() if line.startswith("  ") and " = " in line
    } >= flags


def board_tags(directory: pathlib.Path) -> set[str]:
    from tensorflow.core.util import event_pb2
    from tensorflow.data import TFRecordDataset

    tags = set()
    for file in directory.iterdir():
        for record in TFRecordDataset(str(file)).as_numpy_iterator():
            tags.update(value.tag for value in event_pb2.Event.FromString(record).summary.value)
    return tags


def test_tensorboard_has_the_curves(long_run):
    tags = board_tags(long_run[0] / "tensorboard/train")
    assert tags >= {
        "masked_lm_loss",
        "masked_lm_accuracy",
        "sentence_order_loss",
        "sentence_order_accuracy",
        "learning_rate",
        "gradient_norm",
        "pieces_per_second",
        "trust_ratio/bert/embeddings/word_embeddings",
    }
    assert board_tags(long_run[0] / "tensorboard/held_out") >= {"masked_lm_loss", "sentence_order_accuracy"}


# The same command after kill -9


@pytest.fixture(scope="module")
def stopped_run(data, tmp_path_factory) -> tuple[pathlib.Path, dict[str, Any]]:
    """The long run, killed inside of its second checkpoint, killed at work, ended by SIGTERM, and run to its end."""
    output = tmp_path_factory.mktemp("stopped") / "run"
    flags = {**LONG, "eval_input_file": data / "eval-*.tfrecord", "tensorboard": "false"}
    seen: dict[str, Any] = {}
    killer = pathlib.Path(__file__).with_name("pretraining_killed.py")
    environment = {"PYTHONPATH": os.pathsep.join([str(killer.parent.parent), os.environ.get("PYTHONPATH", "")])}
    run(data, output, str(killer), "2", expect=-signal.SIGKILL, environment=environment, **flags)
    seen["checkpoints after the first kill"] = sorted(os.listdir(output / "checkpoints"))
    for name, signal_number, step in (("kill", signal.SIGKILL, 100), ("term", signal.SIGTERM, 130)):
        process = subprocess.Popen(
            command(data, output, **flags), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        deadline = time.monotonic() + 300
        while not any(line["step"] > step for line in complete_lines(output)):
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
            time.sleep(0.002)
        process.send_signal(signal_number)
        seen[name] = process.communicate()[0], process.returncode
    seen["end"] = run(data, output, **flags)
    return output, seen


def complete_lines(output: pathlib.Path) -> list[dict[str, float]]:
    try:
        return [json.loads(line) for line in (output / "training_log.jsonl").read_text().split("\n")[:-1]]
    except FileNotFoundError:
        return []


def test_a_kill_inside_of_a_checkpoint_leaves_the_one_before(stopped_run):
    _, seen = stopped_run
    assert seen["checkpoints after the first kill"] == ["step-00000040", "step-00000080.partial"]
    assert "resuming at step 40 " in seen["kill"][0] and seen["kill"][1] == -signal.SIGKILL


def test_sigterm_saves_and_exits_with_0(stopped_run):
    _, seen = stopped_run
    text, code = seen["term"]
    assert code == 0
    saved = int(re.search(r"stopped by SIGTERM after step (\d+), nothing is lost", text).group(1))
    assert f"resuming at step {saved} " in seen["end"]


def test_sigterm_before_the_first_step_exits_with_0(data, tmp_path):
    code = (
        "import os, signal\n"
        "from albert_tf import record_flags, run_pretraining\n"
        "find = record_flags.find_records\n"
        "record_flags.find_records = lambda: os.kill(os.getpid(), signal.SIGTERM) or find()\n"
        "run_pretraining.script()\n"
    )
    text = run(data, tmp_path / "run", "-c", code)
    assert "stopped by SIGTERM after step 0, nothing is lost" in text
    assert not (tmp_path / "run" / "checkpoints").exists() and not (tmp_path / "run" / "model").exists()


def test_a_run_that_was_killed_ends_like_one_that_was_not_bit_for_bit(long_run, stopped_run):
    whole, stopped = long_run[0], stopped_run[0]
    for name in (
        "training_log.jsonl",
        "evaluation_log.jsonl",
        "model/model.safetensors",
        "best/model.safetensors",
        "best/evaluation.json",
        "checkpoints/step-00000200/variables.data-00000-of-00001",
    ):
        assert (whole / name).read_bytes() == (stopped / name).read_bytes(), name


def test_a_run_that_is_done_does_nothing_more(driver, data, long_run, stopped_run):
    output = stopped_run[0]
    before = (output / "training_log.jsonl").read_bytes()
    more = {**LONG, "eval_input_file": data / "eval-*.tfrecord", "tensorboard": "false"}
    text = driver.run(**flag_values(data, output, **more))
    assert "resuming at step 200 " in text and "done:" in text
    assert (output / "training_log.jsonl").read_bytes() == before


def test_changed_settings_are_refused_with_both_values_or_announced(driver, data, long_run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(long_run[0], copy)
    text = driver.run(expect=1, **flag_values(data, copy, **{**LONG, "learning_rate": 0.01, "seed": 7}))
    assert "learning_rate was 0.03, now 0.01; seed was 12345, now 7" in text and "Traceback" not in text
    more = {**LONG, "num_train_steps": STEPS + 2, "allow_changed_settings": "true"}
    text = driver.run(**flag_values(data, copy, **more))
    assert "going on with a changed setting: num_train_steps was 200, now 202" in text
    assert [line["step"] for line in read_log(copy)][-2:] == [STEPS, STEPS + 2]


def test_two_runs_do_not_share_a_directory(data, tmp_path):
    output = tmp_path / "run"
    output.mkdir()
    with output_lock.only_user(str(output)):
        text = run(data, output, expect=1)
    assert f"--output_dir={output} is in use by another process" in text and "Traceback" not in text
    assert not list(output.iterdir())


def test_only_a_run_with_a_checkpoint_holds_to_its_settings(data, tmp_path, monkeypatch):
    from albert_tf import input_pipeline, record_files

    config = AlbertConfig.from_json_file(data / "config.json")
    records = record_files.find_record_files(str(data / "train-*.tfrecord"), "input_file")
    shape = input_pipeline.RecordShape(toy.S, toy.P, toy.VOCAB_SIZE, 2, has_label=True)
    output = tmp_path / "run"
    output.mkdir()

    def claim(**flags: Any) -> dict[str, Any]:
        own_flags.use_for_pretraining(monkeypatch, output_dir=output, **flags)
        run_pretraining.claim_output_directory(records, config, shape, 1)
        return json.loads((output / "run.json").read_text())

    assert claim(learning_rate=0.1)["learning_rate"] == 0.1
    assert claim(learning_rate=0.2)["learning_rate"] == 0.2
    (output / "checkpoints" / "step-00000010").mkdir(parents=True)
    with pytest.raises(InputError, match="learning_rate was 0.2, now 0.1"):
        claim(learning_rate=0.1)
    assert claim(learning_rate=0.2)["learning_rate"] == 0.2
    output = tmp_path / "fine"
    output.mkdir()
    (output / "run.json").write_text('{"task": "sst2"}')
    with pytest.raises(InputError, match=f"{output} holds a fine-tuning run"):
        claim()


# Other beginnings and other devices


@pytest.fixture(scope="module")
def damaged(data, tmp_path_factory) -> tuple[pathlib.Path, pathlib.Path]:
    """The data with a bit flipped in a record of one shard, which only reading it tells; and that shard."""
    directory = tmp_path_factory.mktemp("damaged") / "data"
    shutil.copytree(data, directory)
    path = directory / "train-00001-of-00003.tfrecord"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    return directory, path


@pytest.fixture(scope="module")
def mirrored_run(damaged, long_run, tmp_path_factory) -> tuple[pathlib.Path, str]:
    """Four steps from the long run's weights on two devices, a damaged shard left out."""
    output = tmp_path_factory.mktemp("mirrored") / "run"
    return output, run(damaged[0], output, init_checkpoint=long_run[0], **FROM_LONG, **MIRRORED)


FROM_LONG = {
    "num_warmup_steps": 0,
    "learning_rate": 0.001,
    "lamb_bias_correction": "false",
    "seed": 3,
    "gradient_accumulation_steps": 4,
    "skip_bad_shards": "true",
}
MIRRORED = {"distribution_strategy": "mirrored", "num_logical_cpu_devices": 2}


def test_init_checkpoint_takes_the_weights_alone(long_run, mirrored_run):
    output, text = mirrored_run
    log = read_log(output)
    assert [line["step"] for line in log] == [1, 2, 3, 4]
    assert re.search(r"32 variables with [\d,]+ parameters matched, 0 missing, 0 not used", text)
    assert "RANDOM" not in text and "ignored: 65 slots" in text
    assert log[0]["masked_lm_loss"] < math.log(toy.VOCAB_SIZE) / 2
    assert log[0]["learning_rate"] == pytest.approx(0.001)


def test_two_replicas_are_used(mirrored_run):
    assert "2 replica(s) on 1 worker(s); here: CPU:0, CPU:1" in mirrored_run[1]
    assert read_log(mirrored_run[0])[0]["pieces"] == 32 * 15


def test_two_workers_do_what_two_devices_do(damaged, long_run, mirrored_run, tmp_path):
    listeners = [socket.socket() for _ in range(2)]
    for listener in listeners:
        listener.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    for listener in listeners:
        listener.close()
    flags = {**FROM_LONG, "distribution_strategy": "multi_worker", "init_checkpoint": long_run[0]}
    workers = [
        subprocess.Popen(
            command(damaged[0], tmp_path / "run", **flags),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                "TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}),
            },
        )
        for index in range(2)
    ]
    try:
        texts = [worker.communicate(timeout=300)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0], texts
    assert "2 replica(s) on 2 worker(s)" in texts[1]
    found, expected = read_log(tmp_path / "run"), read_log(mirrored_run[0])
    assert len(found) == len(expected) == 4
    for line, other in zip(found, expected):
        assert line == pytest.approx(other, rel=1e-4, abs=1e-6)


def test_evaluation_alone_on_two_replicas_reads_the_runs_own_checkpoint(data, long_run):
    """The ten records do not divide by the batch of four, so the last one is filled up on one of the replicas."""
    output, _ = long_run
    text = run(data, output, input_file=None, do_train="false", eval_input_file=data / "eval-*.tfrecord", **MIRRORED)
    assert "examples = 10\n" in text and "predictions = 30\n" in text
    assert f"weights from {output}/checkpoints/step-00000200" in text
    found = float(re.search(r"masked_lm_loss = (\S+)", text).group(1))
    assert found == pytest.approx(read_log(output, "evaluation_log.jsonl")[-1]["masked_lm_loss"], rel=1e-4)


def test_compiled_steps_in_float16(driver, data, tmp_path):
    flags = {"mixed_precision": "float16", "jit_compile": "true", "num_train_steps": 3}
    driver.run(**flag_values(data, tmp_path / "run", **flags))
    log = read_log(tmp_path / "run")
    assert [line["step"] for line in log] == [1, 2, 3]
    assert log[0]["masked_lm_loss"] == pytest.approx(math.log(toy.VOCAB_SIZE), rel=0.05)
    assert all(line["loss_scale"] > 1 for line in log)


# Failures


def test_a_loss_that_is_not_finite_stops_with_step_and_shards(driver, data, tmp_path):
    wild = {"learning_rate": 1e30, "num_warmup_steps": 0, "optimizer": "adamw", "log_steps": 3}
    text = driver.run(expect=1, **flag_values(data, tmp_path / "run", **wild))
    last = text.strip().splitlines()[-1]
    assert re.search(r"error: step [23] failed \(epoch 1; shards .*train-0000", last), text
    assert "the loss is not finite" in last
    assert not list((tmp_path / "run").glob("checkpoints/*"))


def test_a_record_that_breaks_in_training_is_named(driver, damaged, tmp_path):
    directory, path = damaged
    text = driver.run(expect=1, **flag_values(directory, tmp_path / "run", shuffle_buffer_size=300))
    last = text.strip().splitlines()[-1]
    assert last.startswith("error: at step 1: ") and f"{path} cannot be read after record 45" in last
    assert "Traceback" not in text


def test_bad_shards_are_left_out_on_request_and_counted(damaged, mirrored_run):
    assert f"left out 1 bad shard(s): {damaged[1]}" in mirrored_run[1]
    assert "records: 210 in 2 shard(s)" in mirrored_run[1]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"input_file": None}, ["--input_file"]),
        ({"albert_config_file": None}, ["--albert_config_file"]),
        ({"output_dir": None}, ["--output_dir"]),
        ({"do_train": "false"}, ["--eval_input_file"]),
        ({"do_train": "false", "do_eval": "false", "eval_input_file": "x"}, ["nothing to do"]),
        ({"input_file": "nowhere/*.tfrecord"}, ["nowhere/*.tfrecord"]),
        ({"albert_config_file": "nowhere.json"}, ["nowhere.json"]),
        ({"optimizer": "adamx"}, ["lamb", "adamw"]),
        ({"train_batch_size": 0}, ["--train_batch_size"]),
        ({"spm_model_file": "a", "vocab_file": "b"}, ["--spm_model_file", "--vocab_file"]),
        ({"input_file": __file__}, [__file__, "not a TFRecord"]),
    ],
)
def test_wrong_flags_are_told_within_seconds_in_one_sentence(data, tmp_path, flags, expected):
    start = time.monotonic()
    text = run(data, tmp_path / "run", expect=1, **flags)
    assert all(part in text for part in expected) and "Traceback" not in text
    assert len([line for line in text.splitlines() if line.startswith("error: ")]) == 1
    assert time.monotonic() - start < 20
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"max_seq_length": 128}, ["16", "128"]),
        ({"sentence_objective": "nsp"}, ["'sop'", "'nsp'"]),
        ({"tpu": "fake"}, ["gs://", "input_file"]),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_the_first_step(driver, data, tmp_path, flags, expected):
    text = driver.run(expect=1, **flag_values(data, tmp_path / "run", **flags))
    assert all(part in text for part in expected) and "Traceback" not in text
    assert not (tmp_path / "run").exists()


def test_choices_of_the_flags_are_those_of_the_tables():
    from albert_tf import distribution, optimization, schedules

    values = own_flags.parsed(pretraining_flags)
    for flag, names in (
        ("optimizer", optimization.OPTIMIZERS),
        ("decay_start", schedules.DECAY_STARTS),
        ("distribution_strategy", distribution.STRATEGIES),
        ("mixed_precision", distribution.PRECISIONS),
    ):
        assert list(values[flag].parser.enum_values) == list(names)


def test_the_rate_by_batch_size_follows_the_square_root():
    assert "gives 0.00176" in run_pretraining.rate_advice(0.001, 4096)
    assert "gives 0.00044" in run_pretraining.rate_advice(0.001, 256)


def test_logs_hold_numbers_only(long_run):
    for line in read_log(long_run[0]):
        assert all(np.isfinite(value) for value in line.values())
