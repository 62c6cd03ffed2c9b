"""Strategies by name, what each refuses, precision policies, and how a batch divides."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time

import pytest
import tensorflow as tf

from albert_tf import distribution
from albert_tf.errors import InputError
from tests import logical_devices


def test_one_device():
    strategy = distribution.create_strategy("one_device")
    assert strategy.num_replicas_in_sync == 1
    assert distribution.is_chief(strategy)
    assert distribution.num_workers(strategy) == 1
    assert distribution.describe_devices(strategy) == "1 replica(s) on 1 worker(s); here: CPU:0"


def test_mirrored_on_two_logical_devices():
    strategy = logical_devices.mirrored()
    assert strategy.num_replicas_in_sync == 2
    assert distribution.is_chief(strategy)
    assert distribution.describe_devices(strategy) == "2 replica(s) on 1 worker(s); here: CPU:0, CPU:1"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("mirored", {}, "'mirored'.*one_device, mirrored, multi_worker, tpu"),
        ("one_device", {"num_devices": 2}, "2.*mirrored"),
        ("mirrored", {"num_devices": 99}, "99.*CPU:0, CPU:1"),
        ("mirrored", {"num_devices": 0}, "0 devices"),
        ("mirrored", {"tpu": "my-tpu"}, "my-tpu.*mirrored"),
        ("multi_worker", {"num_devices": 2}, "TF_CONFIG"),
        ("tpu", {}, "--tpu"),
    ],
)
def test_refuses(name, arguments, told):
    with pytest.raises(InputError, match=told):
        distribution.create_strategy(name, **arguments)


@pytest.mark.parametrize("count", [0, -1])
def test_refuses_a_wrong_number_of_logical_devices(count):
    with pytest.raises(InputError, match=str(count)):
        distribution.set_logical_cpu_devices(count)


CLUSTER = {"worker": ["localhost:1", "localhost:2"]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "needs the environment variable TF_CONFIG"),
        ("", "needs the environment variable TF_CONFIG"),
        ("{worker", "not JSON"),
        ("[]", "no workers"),
        (json.dumps({"cluster": {}, "task": {"type": "worker", "index": 0}}), "no workers"),
        (json.dumps({"cluster": CLUSTER}), "which task"),
        (json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 2}}), "worker 2"),
        (json.dumps({"cluster": CLUSTER, "task": {"type": "chief", "index": 0}}), "chief 0"),
    ],
)
def test_refuses_a_wrong_tf_config(text, told):
    with pytest.raises(InputError, match=told):
        distribution.check_tf_config({} if text is None else {"TF_CONFIG": text})


def test_accepts_a_right_tf_config():
    distribution.check_tf_config(
        {"TF_CONFIG": json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 1}})}
    )


WORKER = """
from albert_tf import distribution
import tensorflow as tf
strategy = distribution.create_strategy("multi_worker")
total = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.constant(2.0)))
print(distribution.worker_index(strategy), distribution.num_workers(strategy), distribution.is_chief(strategy),
      strategy.num_replicas_in_sync, float(total))
"""


def test_two_workers(repository, monkeypatch):
    ports = []
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind(("localhost", 0))
            ports.append(one.getsockname()[1])
    workers = []
    for index in range(2):
        cluster = {"worker": [f"localhost:{port}" for port in ports]}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}))
        workers.append(
            subprocess.Popen(
                [sys.executable, "-c", WORKER],
                cwd=repository,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        outputs = [worker.communicate(timeout=240) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    said = [output.strip().splitlines()[-1:] for output, _ in outputs]
    assert said == [["0 2 True 2 4.0"], ["1 2 False 2 4.0"]], [errors[-2000:] for _, errors in outputs]


@pytest.mark.parametrize("tpu", ["local", "grpc://localhost:9"])
def test_a_tpu_that_does_not_answer_is_told_in_seconds(tpu):
    start = time.monotonic()
    with pytest.raises(InputError, match=f"--tpu={tpu} cannot be reached"):
        distribution.create_strategy("tpu", tpu=tpu)
    assert time.monotonic() - start < 30


def test_a_local_path_with_a_tpu_is_refused_before_connecting():
    paths = {"input_file": "gs://bucket/a,gs://bucket/b", "output_dir": "/tmp/out", "init_checkpoint": None}
    with pytest.raises(InputError, match="--output_dir=/tmp/out.*gs://"):
        distribution.check_tpu_paths("fake", paths)
    with pytest.raises(InputError, match="--input_file=b.*gs://"):
        distribution.check_tpu_paths("fake", {"input_file": "gs://bucket/a,b"})
    distribution.check_tpu_paths("fake", {"input_file": "gs://bucket/a", "init_checkpoint": ""})
    distribution.check_tpu_paths("local", paths)
    distribution.check_tpu_paths(None, paths)
    distribution.check_tpu_paths("", paths)


@pytest.mark.parametrize(("name", "dtype"), [("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16")])
def test_precision_is_that_of_the_layers_and_variables_stay_float32(name, dtype):
    try:
        distribution.set_precision(name)
        layer = tf.keras.layers.Dense(2)
        assert layer(tf.ones([1, 3])).dtype == dtype
        assert layer.kernel.dtype == "float32"
    finally:
        distribution.set_precision("float32")


def test_unknown_precision_lists_the_known():
    with pytest.raises(InputError, match="'fp16'.*float32, bfloat16, float16"):
        distribution.set_precision("fp16")


def test_batch_divides_evenly_or_both_numbers_are_told():
    strategy = logical_devices.mirrored()
    assert distribution.per_replica_batch(24, strategy) == 12
    assert distribution.per_replica_batch(24, strategy, micro_batches=4) == 3
    with pytest.raises(InputError, match=r"7 examples.*2 replica\(s\)"):
        distribution.per_replica_batch(7, strategy)
    with pytest.raises(InputError, match=r"12 examples.*2 replica\(s\).*4 micro-batch.*multiple of 8"):
        distribution.per_replica_batch(12, strategy, micro_batches=4)
    with pytest.raises(InputError, match="at least 1, got 0"):
        distribution.per_replica_batch(12, strategy, micro_batches=0)
    with pytest.raises(InputError, match="0 examples"):
        distribution.per_replica_batch(0, strategy)
    assert [distribution.fitting_batch(size, strategy) for size in (1, 2, 7, 8)] == [2, 2, 8, 8]
    with pytest.raises(InputError, match="a batch of 0 examples"):
        distribution.fitting_batch(0, strategy)
