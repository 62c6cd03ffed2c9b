"""How fast a training step is: sequences per second of whole updates, each precision and peer in turn in one process.

    python benchmarks/training_step.py --config=albert_base_v2 --batch=8 --length=128

A step is forward, backward, clipping and LAMB, as run_pretraining does it, with random pieces. Peers that are installed
(torch with transformers; tf-models-official) run the same sizes in turn with ours: forward and backward of both
pre-training losses and, for want of a LAMB, AdamW for torch and no update for tf-models, which favours them. Machines
are noisy: the medians and the ratios of one run count.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf

from albert_tf import config_files, distribution, optimization, pretraining_step
from albert_tf.config import AlbertConfig
from albert_tf.loss_scale import LossScale
from albert_tf.models import AlbertForPreTraining


def random_batch(config: AlbertConfig, batch: int, length: int, predictions: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "input_ids": random.integers(5, config.vocab_size, (batch, length), dtype=np.int32),
        "input_mask": np.ones((batch, length), np.int32),
        "segment_ids": np.repeat([[0] * (length // 2) + [1] * (length - length // 2)], batch, 0).astype(np.int32),
        "masked_lm_positions": np.sort(random.integers(1, length - 1, (batch, predictions), dtype=np.int32)),
        "masked_lm_ids": random.integers(5, config.vocab_size, (batch, predictions), dtype=np.int32),
        "masked_lm_weights": np.ones((batch, predictions), np.float32),
        "sentence_order_label": random.integers(0, 2, batch, dtype=np.int32),
    }


def ours(config: AlbertConfig, batch: dict[str, np.ndarray], precision: str, jit_compile: bool) -> Callable[[], object]:
    distribution.set_precision(precision)
    strategy = distribution.create_strategy("one_device")
    with strategy.scope():
        model = AlbertForPreTraining(config)
        schedule = optimization.LearningRateSchedule(1e-4, 1000, 10)
        optimizer = optimization.create_optimizer("lamb", schedule, model.named_variables())
        loss_scale = LossScale() if precision == "float16" else None
    settings = pretraining_step.StepSettings(jit_compile=jit_compile)
    train_step = pretraining_step.make_train_step(model, optimizer, strategy, settings, loss_scale)
    step_function = tf.function(train_step, autograph=False)
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    return lambda: step_function(tensors, tf.constant(1)).loss.numpy()


def torch_transformers(config: AlbertConfig, batch: dict[str, np.ndarray]) -> Callable[[], object]:
    import torch
    import transformers

    torch.manual_seed(0)
    model = transformers.AlbertForPreTraining(
        transformers.AlbertConfig(
            **{key: getattr(config, key) for key in _SAME_KEYS},
            hidden_act="gelu_new",
            attn_implementation="sdpa",
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tensors = {name: torch.tensor(value).long() for name, value in batch.items()}
    labels = torch.full_like(tensors["input_ids"], -100)
    labels.scatter_(1, tensors["masked_lm_positions"], tensors["masked_lm_ids"])

    def step() -> object:
        optimizer.zero_grad()
        loss = model(
            input_ids=tensors["input_ids"],
            attention_mask=tensors["input_mask"],
            token_type_ids=tensors["segment_ids"],
            labels=labels,
            sentence_order_label=tensors["sentence_order_label"],
        ).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def tf_models(config: AlbertConfig, batch: dict[str, np.ndarray]) -> Callable[[], object]:
    from official.nlp.modeling import models, networks

    distribution.set_precision("float32")
    encoder = networks.AlbertEncoder(
        vocab_size=config.vocab_size,
        embedding_width=config.embedding_size,
        hidden_size=config.hidden_size,
        num_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        max_sequence_length=config.max_position_embeddings,
        type_vocab_size=config.type_vocab_size,
        intermediate_size=config.intermediate_size,
        dropout_rate=config.hidden_dropout_prob,
        attention_dropout_rate=config.attention_probs_dropout_prob,
    )
    model = models.BertPretrainer(
        encoder, num_classes=2, num_token_predictions=batch["masked_lm_ids"].shape[1], output="logits"
    )
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    inputs = [tensors[name] for name in ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")]

    @tf.function
    def step() -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            outputs = list(outputs.values()) if isinstance(outputs, dict) else list(outputs)
            pieces, sentence = sorted(outputs, key=lambda logits: -logits.shape.rank)
            losses = [
                tf.nn.sparse_softmax_cross_entropy_with_logits(tensors["masked_lm_ids"], pieces),
                tf.nn.sparse_softmax_cross_entropy_with_logits(tensors["sentence_order_label"], sentence),
            ]
            loss = sum(map(tf.reduce_mean, losses))
        gradients = tape.gradient(loss, model.trainable_variables)
        # A number of each is given back, for what nobody reads is never computed.
        return loss, [tf.reduce_sum(tf.convert_to_tensor(g)) for g in gradients if g is not None]

    return lambda: tf.nest.map_structure(np.asarray, step())


_SAME_KEYS = (
    "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size embedding_size num_hidden_groups "
    "inner_group_num hidden_dropout_prob attention_probs_dropout_prob max_position_embeddings type_vocab_size"
).split()
PEERS = {"torch": ("transformers", torch_transformers), "tf-models": ("official", tf_models)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="albert_base_v2")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--steps", type=int, default=7, help="timed steps of each, after two that are not")
    parser.add_argument("--precisions", default="float32,bfloat16")
    parser.add_argument("--peers", default="all", help="of torch,tf-models; 'all' that are installed, or 'none'")
    parser.add_argument("--jit_compile", action="store_true")
    arguments = parser.parse_args()
    config = AlbertConfig.from_json_file(config_files.config_path(arguments.config))
    batch = random_batch(config, arguments.batch, arguments.length, arguments.predictions)

    wanted = {"all": list(PEERS), "none": []}.get(arguments.peers, arguments.peers.split(","))
    runners = {}
    for name in wanted:
        package, make = PEERS[name]
        if importlib.util.find_spec(package) is None:
            print(f"{name}: not measured, {package} is not installed")
        else:
            runners[name] = make(config, batch)
    for precision in arguments.precisions.split(","):
        runners[f"albert_tf {precision}"] = ours(config, batch, precision, arguments.jit_compile)

    seconds: dict[str, list[float]] = {name: [] for name in runners}
    for turn in range(arguments.steps + 2):
        for name, run in runners.items():
            start = time.perf_counter()
            run()
            if turn >= 2:
                seconds[name].append(time.perf_counter() - start)

    reference = statistics.median(seconds[f"albert_tf {arguments.precisions.split(',')[0]}"])
    print(f"{arguments.config}, batch {arguments.batch} x {arguments.length}, TensorFlow {tf.__version__}")
    for name, values in seconds.items():
        median = statistics.median(values)
        print(
            f"{name:22} {arguments.batch / median:7.2f} sequences/s   step {median:6.2f} s "
            f"({min(values):.2f} to {max(values):.2f})   {reference / median:5.2f} x ours in "
            f"{arguments.precisions.split(',')[0]}"
        )


if __name__ == "__main__":
    main()
