"""Two logical CPU devices for tests of strategies. Import it at the top of a test file, before any tensor exists."""

from __future__ import annotations

import tensorflow as tf

from albert_tf import distribution

if len(tf.config.get_logical_device_configuration(tf.config.list_physical_devices("CPU")[0]) or ()) < 2:
    distribution.set_logical_cpu_devices(2)


def mirrored() -> tf.distribute.Strategy:
    return distribution.create_strategy("mirrored", num_devices=2)
