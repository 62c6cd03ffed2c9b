"""One update does not depend on how its global batch is divided: among replicas, and into micro-batches.

The step here is the shortest that does everything right; the model is no ALBERT, so that a fault is the step's own.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import losses, optimization, stack
from tests import logical_devices

V, P, BATCH = 12, 3, 8


def batch_of_step(step: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(step)
    weights = (np.arange(P)[None] < random.integers(0, P + 1, BATCH)[:, None]).astype(np.float32)
    weights[: BATCH // 2] *= np.array([1, 0, 0], np.float32)  # the halves hold different numbers of masked pieces
    return {
        "input_ids": random.integers(0, V, (BATCH, P)).astype(np.int32),
        "masked_lm_ids": random.integers(0, V, (BATCH, P)).astype(np.int32),
        "masked_lm_weights": weights,
        "sentence_order_label": random.integers(0, 2, (BATCH, 1)).astype(np.int32),
    }


class Model:
    """An embedding with two heads, the first tied to it; layers with fixed seeds."""

    def __init__(self) -> None:
        self.table = tf.keras.layers.Embedding(
            V, 6, embeddings_initializer=tf.keras.initializers.RandomNormal(0, 0.5, 1)
        )
        self.sentence = tf.keras.layers.Dense(2, kernel_initializer=tf.keras.initializers.RandomNormal(0, 0.5, 2))
        self.table.build([None, P])
        self.sentence.build([None, 6])

    def named_variables(self) -> dict:
        table, kernel, bias = self.table.embeddings, self.sentence.kernel, self.sentence.bias
        return {"embeddings": table, "sentence/kernel": kernel, "sentence/bias": bias}

    def __call__(self, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        vectors = tf.tanh(self.table(ids))
        return {
            "masked_lm_logits": tf.matmul(vectors, tf.convert_to_tensor(self.table.embeddings), transpose_b=True),
            "sentence_order_logits": self.sentence(tf.reduce_mean(vectors, axis=1)),
        }


def train(strategy: tf.distribute.Strategy, micro_batches: int, name: str, steps: int) -> dict[str, np.ndarray]:
    with strategy.scope():
        model = Model()
        variables = [stack.native_variable(variable) for variable in model.named_variables().values()]
        schedule = optimization.LearningRateSchedule(0.05, 10)
        optimizer = optimization.create_optimizer(name, schedule, model.named_variables())

    def replica_step(batch: dict[str, tf.Tensor]) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        total_of = lambda values: context.all_reduce(tf.distribute.ReduceOp.SUM, values)  # noqa: E731
        denominators = losses.LossDenominators(*total_of(list(losses.pretraining_denominators(batch))))
        gradients, loss = [tf.zeros(variable.shape) for variable in variables], tf.zeros([])
        size = BATCH // context.num_replicas_in_sync // micro_batches
        for part in range(micro_batches):
            examples = {key: value[part * size : (part + 1) * size] for key, value in batch.items()}
            with tf.GradientTape() as tape:
                sums = losses.pretraining_sums(model(examples["input_ids"]), examples)
                share = losses.pretraining_loss(sums, denominators)
            more = optimization.dense_gradients(tape.gradient(share, variables), variables)
            gradients, loss = [a + b for a, b in zip(gradients, more)], loss + share
        clipped, _ = optimization.clip_by_global_norm(total_of(gradients))
        optimization.apply_summed_gradients(optimizer, clipped, variables)
        return total_of(loss)

    @tf.function
    def step_function(batch) -> tf.Tensor:
        return strategy.experimental_local_results(strategy.run(replica_step, args=(batch,)))[0]

    course = []
    for step in range(steps):
        whole = batch_of_step(step)
        share = BATCH // strategy.num_replicas_in_sync
        distributed = strategy.experimental_distribute_values_from_function(
            lambda context, whole=whole, share=share: {
                key: tf.constant(value[context.replica_id_in_sync_group * share :][:share])
                for key, value in whole.items()
            }
        )
        course.append(step_function(distributed).numpy())
    return {"loss": np.array(course), **{v.name + str(i): v.numpy() for i, v in enumerate(variables)}}


@pytest.mark.parametrize("name", ["lamb", "adamw"])
def test_two_replicas_and_four_micro_batches_equal_one_of_each(name):
    steps = 3
    one_device = tf.distribute.OneDeviceStrategy("CPU:0")
    whole = train(one_device, 1, name, steps)
    assert np.ptp(whole["loss"]) > 0
    for strategy, micro_batches in [(one_device, 4), (logical_devices.mirrored(), 1), (logical_devices.mirrored(), 2)]:
        divided = train(strategy, micro_batches, name, steps)
        for expected, value in zip(whole.values(), divided.values()):
            np.testing.assert_allclose(value, expected, rtol=0, atol=1e-6)
