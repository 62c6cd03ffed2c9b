"""The flags of both trainings that say on which devices and in which precision they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from absl import flags

if TYPE_CHECKING:
    import tensorflow as tf

FLAGS = flags.FLAGS


def define_flags(*, several_machines: bool) -> None:
    """Defines them; `several_machines` for a script that can run on more than one."""
    more, said = (
        ([], "")
        if not several_machines
        else (
            ["multi_worker"],
            "multi_worker: the same command on each machine, TF_CONFIG naming them; ",
        )
    )
    flags.DEFINE_enum(
        "distribution_strategy",
        None,
        ["one_device", "mirrored", *more, "tpu"],
        f"one_device (default); mirrored: all GPUs of this machine; {said}tpu (default with --tpu).",
    )
    flags.DEFINE_integer("num_devices", None, "With mirrored: how many devices.", lower_bound=1)
    flags.DEFINE_integer("num_logical_cpu_devices", 1, "Divide the CPU, to try out mirrored.", lower_bound=1)
    flags.DEFINE_string(
        "tpu", None, "local on a TPU VM; or a TPU's name or grpc:// address, which reads and writes on gs:// alone."
    )
    flags.DEFINE_enum(
        "mixed_precision",
        "float32",
        ["float32", "bfloat16", "float16"],
        "Of the large products; weights, LayerNorm, softmax and losses stay float32. float16 has a dynamic loss scale.",
    )
    flags.DEFINE_bool("jit_compile", False, "Compile the step with XLA, once for each length that batches have.")
    flags.DEFINE_bool(
        "deterministic", None, "The same bits each time; by default on CPUs, where it costs next to nothing."
    )


def start_devices(paths: Mapping[str, str | None], seed: int) -> tf.distribute.Strategy:
    """Sets up devices, precision, determinism and seed as the flags say; nothing may have used a device before.

    Args:
        paths: flag to what it names; a TPU's are refused where they are on this machine.
        seed: of TensorFlow, NumPy and Python.
    """
    from albert_tf import distribution

    distribution.check_tpu_paths(FLAGS.tpu, paths)
    return distribution.start_devices(
        FLAGS.distribution_strategy,
        tpu=FLAGS.tpu,
        num_devices=FLAGS.num_devices,
        num_logical_cpu_devices=FLAGS.num_logical_cpu_devices,
        precision=FLAGS.mixed_precision,
        deterministic=FLAGS.deterministic,
        seed=seed,
    )
