"""Where the work runs and how exactly: name -> tf.distribute strategy, name -> precision policy, and their checks."""

from __future__ import annotations

import os
import socket
import urllib.parse
from collections.abc import Callable, Mapping

import tensorflow as tf
from absl import logging

from albert_tf import json_text
from albert_tf.errors import InputError

# name -> Keras mixed precision policy; variables, LayerNorm, softmax and logits stay float32 under all of them
PRECISIONS = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}

_TPU_CONNECT_SECONDS = 10.0
_TPU_DEFAULT_PORT = 8470
_TPU_OF_THIS_HOST = "local"


def start_devices(
    name: str | None,
    *,
    tpu: str | None = None,
    num_devices: int | None = None,
    num_logical_cpu_devices: int = 1,
    precision: str = "float32",
    deterministic: bool | None = None,
    seed: int,
) -> tf.distribute.Strategy:
    """Sets up devices, precision, determinism and seed for a script, in the order TensorFlow needs.

    Args:
        name: of the strategy; None is "tpu" where a TPU is named, else "one_device".
        tpu, num_devices: see `create_strategy`.
        num_logical_cpu_devices: into how many devices the CPU is divided.
        precision: one of `PRECISIONS`.
        deterministic: the same bits each time; None is yes on CPUs, where it costs next to nothing.
        seed: of whatever draws without a seed of its own, such as initial weights.

    Raises:
        InputError: see `create_strategy`.
    """
    logging.set_verbosity(logging.WARNING)  # at INFO TensorFlow tells of each checkpoint it writes
    if num_logical_cpu_devices > 1:
        set_logical_cpu_devices(num_logical_cpu_devices)
    on_cpu = not tpu and not tf.config.list_physical_devices("GPU")
    if on_cpu if deterministic is None else deterministic:
        tf.config.experimental.enable_op_determinism()
        # It would join the sums of two gradients into sums of many again (see training_step).
        tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})
    strategy = create_strategy(name or ("tpu" if tpu else "one_device"), tpu=tpu, num_devices=num_devices)
    set_precision(precision)
    tf.keras.utils.set_random_seed(seed)
    return strategy


def _one_device(num_devices: int | None) -> tf.distribute.Strategy:
    if num_devices not in (None, 1):
        raise InputError(f"the strategy one_device runs on 1 device, not {num_devices}: use mirrored for more")
    return tf.distribute.OneDeviceStrategy(_devices()[0])


def _mirrored(num_devices: int | None) -> tf.distribute.Strategy:
    devices = _devices()
    wanted = len(devices) if num_devices is None else num_devices
    if not 1 <= wanted <= len(devices):
        raise InputError(f"the strategy mirrored was asked for {wanted} devices, and there are {', '.join(devices)}")
    # Collectives between CPU devices remember shapes for the life of the process: a second strategy in it would fail.
    reduction = None if "GPU" in devices[0] else tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(devices[:wanted], cross_device_ops=reduction)


def _multi_worker(num_devices: int | None) -> tf.distribute.Strategy:
    if num_devices is not None:
        raise InputError("the strategy multi_worker uses every device of each worker: TF_CONFIG names the workers")
    check_tf_config(os.environ)
    return tf.distribute.MultiWorkerMirroredStrategy()


# Strategies of this machine and of machines named in the environment; "tpu" needs an address and has its own function.
_LOCAL_STRATEGIES: dict[str, Callable[[int | None], tf.distribute.Strategy]] = {
    "one_device": _one_device,
    "mirrored": _mirrored,
    "multi_worker": _multi_worker,
}
STRATEGIES = (*_LOCAL_STRATEGIES, "tpu")


def create_strategy(name: str, *, tpu: str | None = None, num_devices: int | None = None) -> tf.distribute.Strategy:
    """The strategy of this name.

    Args:
        name: one of `STRATEGIES`. "mirrored" takes all GPUs, or all logical CPU devices where there is no GPU.
        tpu: for "tpu": a TPU's name, `local` on a TPU VM, or `grpc://host:port`.
        num_devices: for "mirrored": how many of the devices to use.

    Raises:
        InputError: an unknown name, arguments that do not belong to it, a wrong TF_CONFIG, a TPU that does not answer.
    """
    if name not in STRATEGIES:
        raise InputError(f"unknown distribution strategy {name!r}: choose one of {', '.join(STRATEGIES)}")
    if name == "tpu":
        return _connect_tpu(tpu)
    if tpu:
        raise InputError(f"a TPU ({tpu!r}) is used with the distribution strategy tpu alone, not with {name}")
    return _LOCAL_STRATEGIES[name](num_devices)


def _devices() -> list[str]:
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    return [f"{kind}:{position}" for position, _ in enumerate(tf.config.list_logical_devices(kind))]


def set_logical_cpu_devices(count: int) -> None:
    """Divides the CPU into `count` devices; before TensorFlow has used any device.

    The divided CPU computes no faster: this shows on one machine what several devices will do.
    """
    if count < 1:
        raise InputError(f"the number of logical CPU devices must be at least 1, got {count}")
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)


def check_tf_config(environment: Mapping[str, str]) -> None:
    """Refuses a TF_CONFIG that does not say which worker of which cluster this process is.

    Raises:
        InputError: TF_CONFIG is absent, is not JSON, or lacks a part.
    """
    example = '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'
    text = environment.get("TF_CONFIG")
    if not text:
        raise InputError(f"the strategy multi_worker needs the environment variable TF_CONFIG, such as {example}")
    try:
        config = json_text.parse(text)
    except ValueError as error:
        raise InputError(f"TF_CONFIG is not JSON ({error}): it should look like {example}") from error
    cluster = config.get("cluster") if isinstance(config, dict) else None
    task = config.get("task") if isinstance(config, dict) else None
    if not isinstance(cluster, dict) or not isinstance(cluster.get("worker"), list) or not cluster["worker"]:
        raise InputError(f"TF_CONFIG names no workers: it should look like {example}")
    if not isinstance(task, dict) or "type" not in task or "index" not in task:
        raise InputError(f"TF_CONFIG does not say which task this is: it should look like {example}")
    members = cluster.get(task["type"])
    if not isinstance(members, list) or task["index"] not in range(len(members)):
        raise InputError(f"TF_CONFIG says this is {task['type']} {task['index']}, which its cluster does not have")


def check_tpu_paths(tpu: str | None, paths: Mapping[str, str | None]) -> None:
    """Refuses local files where a TPU reads and writes for itself; asks before anything connects.

    Args:
        tpu: the TPU. All paths are fine where there is none, None or "", and on a TPU VM, "local", whose host this is.
        paths: flag -> path, comma-separated paths, or nothing.

    Raises:
        InputError: a path is not in Cloud Storage.
    """
    if not tpu or tpu == _TPU_OF_THIS_HOST:
        return
    for flag, value in paths.items():
        for path in (value or "").split(","):
            if path and not path.startswith("gs://"):
                raise InputError(
                    f"--{flag}={path}: with a TPU (--tpu={tpu}) files must be in Cloud Storage, as gs://bucket/path, "
                    "because the TPU's own host reads and writes them"
                )


def _connect_tpu(tpu: str | None) -> tf.distribute.Strategy:
    if not tpu:
        raise InputError("the strategy tpu needs --tpu: a TPU's name, `local` on a TPU VM, or grpc://host:port")
    try:
        _probe(tpu)
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    # The resolver asks a metadata server, a REST client and gRPC in turn, and each fails in its own way.
    except (OSError, ValueError, RuntimeError, ImportError, tf.errors.OpError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"the TPU --tpu={tpu} cannot be reached: {reason}") from error
    return tf.distribute.TPUStrategy(resolver)


def _probe(tpu: str) -> None:
    """Fails within seconds where nothing listens at a grpc:// address; gRPC itself would try for minutes."""
    for address in tpu.split(","):
        parts = urllib.parse.urlsplit(address)
        if parts.scheme == "grpc" and parts.hostname:
            socket.create_connection((parts.hostname, parts.port or _TPU_DEFAULT_PORT), _TPU_CONNECT_SECONDS).close()


def set_precision(name: str) -> None:
    """Sets the process-wide Keras policy for the layers made from now on.

    Raises:
        InputError: the name is not in `PRECISIONS`.
    """
    if name not in PRECISIONS:
        raise InputError(f"unknown precision {name!r}: choose one of {', '.join(PRECISIONS)}")
    tf.keras.mixed_precision.set_global_policy(PRECISIONS[name])


def per_replica_batch(global_batch: int, strategy: tf.distribute.Strategy, micro_batches: int = 1) -> int:
    """Examples that one replica sees at a time.

    Raises:
        InputError: the global batch does not divide by replicas times micro-batches.
    """
    if micro_batches < 1:
        raise InputError(f"the number of micro-batches must be at least 1, got {micro_batches}")
    replicas = strategy.num_replicas_in_sync
    parts = replicas * micro_batches
    if global_batch < 1 or global_batch % parts:
        raise InputError(
            f"a global batch of {global_batch} examples cannot be divided evenly among {replicas} replica(s) with "
            f"{micro_batches} micro-batch(es) each: give a multiple of {parts}"
        )
    return global_batch // parts


def fitting_batch(least: int, strategy: tf.distribute.Strategy) -> int:
    """The smallest global batch of at least so many examples that all replicas share evenly.

    Raises:
        InputError: `least` is below 1.
    """
    replicas = strategy.num_replicas_in_sync
    if least < 1:
        raise InputError(f"a batch of {least} examples has none: give at least 1")
    return -(-least // replicas) * replicas


def num_workers(strategy: tf.distribute.Strategy) -> int:
    """Processes that train together, 1 unless the strategy is multi_worker."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.task_type:
        return 1
    return len(_trainers(resolver))


def worker_index(strategy: tf.distribute.Strategy) -> int:
    """This process among `num_workers`, from 0."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.task_type:
        return 0
    return _trainers(resolver).index((resolver.task_type, resolver.task_id))


def _trainers(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> list[tuple[str, int]]:
    members = resolver.cluster_spec().as_dict()
    return [(kind, position) for kind in ("chief", "worker") for position in range(len(members.get(kind, ())))]


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes checkpoints, logs and reports."""
    return worker_index(strategy) == 0


def describe_devices(strategy: tf.distribute.Strategy) -> str:
    """One line for the start-up report: replicas, workers, the devices of this one."""
    specs = [tf.DeviceSpec.from_string(device) for device in strategy.extended.worker_devices]
    short = [f"{spec.device_type}:{spec.device_index}" for spec in specs]
    replicas, workers = strategy.num_replicas_in_sync, num_workers(strategy)
    return f"{replicas} replica(s) on {workers} worker(s); here: {', '.join(short)}"
