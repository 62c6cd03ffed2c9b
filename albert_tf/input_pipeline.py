"""Records to batches, in an order that is a pure function of seed, files and step.

One global order of examples exists, whatever the number of replicas and workers: in each epoch the shards are shuffled,
read in turn, and shuffled again in windows, with draws that depend on (seed, epoch, window) alone. Step k takes the
examples k*G .. (k+1)*G-1 of that order, G being the global batch; a batch may span two epochs. Therefore the data
position needs no state but the step, and a run on eight devices sees the very batches of a run on one.

G is the global batch, B the batch of one replica, S the sequence length, P the number of prediction slots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import operation_error
from albert_tf import record_spec as spec
from albert_tf.errors import InputError
from albert_tf.record_files import RecordFiles

EXAMPLE_WEIGHT = "example_weight"  # [B] float32: 0 on the examples that only fill up the last batch
SHARDS_READ_AT_ONCE = 16
_INDEX_LIMIT = np.iinfo(np.int64).max
# AutoGraph would rewrite each function of a dataset, which takes seconds and changes nothing here.
_as_written = tf.autograph.experimental.do_not_convert


@dataclasses.dataclass(frozen=True)
class RecordShape:
    """What every record must look like.

    Attributes:
        max_seq_length: S.
        max_predictions_per_seq: P.
        vocab_size: V; ids are below it.
        type_vocab_size: segment ids are below it.
        has_label: whether a sentence label is needed.
    """

    max_seq_length: int
    max_predictions_per_seq: int
    vocab_size: int
    type_vocab_size: int
    has_label: bool


def record_settings(records: RecordFiles) -> dict[str, Any]:
    """What the records were made with: their metadata, and from the first record what that does not say.

    Raises:
        InputError: there is no metadata and the first record is no pre-training record.
    """
    known = ("max_seq_length", "max_predictions_per_seq", "sentence_objective")
    if all(name in records.settings for name in known):
        return dict(records.settings)
    path = records.paths[0]
    try:
        features = _features_of(next(iter(_raw_records(path))), path)
    except tf.errors.OpError as error:
        raise InputError(f"--{records.flag}: {path} cannot be read: {operation_error.reason(error)}") from error
    for name in (spec.INPUT_IDS, spec.MASKED_LM_IDS):
        if name not in features:
            raise InputError(
                f"--{records.flag}: {path} holds no pre-training records: no feature {name!r} in the first"
            )
    found: dict[str, Any] = dict(zip(known, (len(features[spec.INPUT_IDS]), len(features[spec.MASKED_LM_IDS]))))
    if spec.SENTENCE_ORDER_LABEL not in features and spec.OLD_SENTENCE_LABEL not in features:
        found["sentence_objective"] = "none"
    return {**found, **records.settings}


@_as_written
def example_order(records: RecordFiles, *, seed: int, shuffle_buffer_size: int, start: int = 0) -> tf.data.Dataset:
    """The endless global order of examples from position `start` on.

    Args:
        records: the shards.
        seed: with the epoch, decides the order.
        shuffle_buffer_size: examples of a window, within which they are shuffled; the memory taken is that many
            serialized records.
        start: how many examples are already consumed; only the epoch it falls into is read over.

    Returns:
        A dataset of (serialized example [], index of its shard []).
    """
    paths = tf.constant(records.paths)
    counts = np.array([shard.records for shard in records.shards])
    total = int(counts.sum())
    first_epoch, consumed = divmod(start, total)

    def epoch(index: tf.Tensor, skipped_windows: int) -> tf.data.Dataset:
        epoch_seed = _fold(tf.constant([seed, 0], tf.int32), index)
        shards = tf.random.experimental.stateless_shuffle(tf.range(len(counts)), _fold(epoch_seed, -1))
        dataset = tf.data.Dataset.from_tensor_slices(shards).interleave(
            lambda shard: tf.data.TFRecordDataset(paths[shard]).map(lambda record: (record, shard)),
            cycle_length=min(SHARDS_READ_AT_ONCE, len(counts)),
            block_length=1,
        )
        if shuffle_buffer_size <= 1:
            return dataset.skip(skipped_windows)

        def shuffled(window: tf.Tensor, examples: tf.Tensor, shards: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            order = tf.random.experimental.stateless_shuffle(tf.range(tf.size(shards)), _fold(epoch_seed, window))
            return tf.gather(examples, order), tf.gather(shards, order)

        windows = dataset.skip(skipped_windows * shuffle_buffer_size).batch(shuffle_buffer_size)
        numbered = tf.data.Dataset.zip((tf.data.Dataset.range(skipped_windows, _INDEX_LIMIT), windows))
        return numbered.map(lambda window, pair: shuffled(window, *pair)).unbatch()

    # Whole windows are skipped before they are shuffled, the rest of one behind the shuffle.
    skipped_windows, skipped = divmod(consumed, max(1, shuffle_buffer_size))
    first = epoch(tf.constant(first_epoch, tf.int64), skipped_windows).skip(skipped)
    rest = tf.data.Dataset.range(first_epoch + 1, _INDEX_LIMIT).flat_map(lambda index: epoch(index, 0))
    return first.concatenate(rest)


@_as_written
def training_batches(
    records: RecordFiles,
    shape: RecordShape,
    *,
    global_batch_size: int,
    seed: int,
    shuffle_buffer_size: int,
    start_step: int = 0,
    replicas: int = 1,
    workers: int = 1,
    worker: int = 0,
) -> tf.data.Dataset:
    """The batches of one worker's replicas, from `start_step` on, for ever.

    Replica r of all gets the r-th of `replicas` equal slices of every global batch; a worker parses only its own part.

    Args:
        records, seed, shuffle_buffer_size: as for `example_order`.
        shape: what the records must look like.
        global_batch_size: G, a multiple of `replicas`.
        start_step: steps done before.
        replicas: replicas of all workers together.
        workers: number of workers.
        worker: index of this one.

    Returns:
        A dataset of feature dicts with static shapes (`parse_examples`), B = G / replicas, this worker's replicas in
        turn.
    """
    order = example_order(
        records, seed=seed, shuffle_buffer_size=shuffle_buffer_size, start=start_step * global_batch_size
    )
    per_replica = global_batch_size // replicas
    own = slice(worker * global_batch_size // workers, (worker + 1) * global_batch_size // workers)

    def own_slices(examples: tf.Tensor, shards: tf.Tensor) -> tf.data.Dataset:
        del shards
        return tf.data.Dataset.from_tensor_slices(tf.reshape(examples[own], [-1, per_replica]))

    return (
        order.batch(global_batch_size, drop_remainder=True)
        .flat_map(own_slices)
        .map(lambda examples: parse_examples(examples, shape), tf.data.AUTOTUNE, deterministic=True)
        .prefetch(2 * replicas // workers)
    )


@_as_written
def evaluation_batches(
    records: RecordFiles,
    shape: RecordShape,
    *,
    global_batch_size: int,
    replicas: int = 1,
    workers: int = 1,
    worker: int = 0,
) -> tf.data.Dataset:
    """One pass over the records in file order, in batches of one size.

    The last global batch is filled up with repeated examples of weight 0 in every sense: `example_weight`,
    `masked_lm_weights` and `input_mask`-counting sums leave them out, so all real examples count and nothing else.

    Args:
        See `training_batches`.

    Returns:
        A dataset of feature dicts as `training_batches`, with `example_weight` [B].
    """
    examples = tf.data.TFRecordDataset(records.paths).map(lambda example: (example, 1.0))
    filling = tf.data.TFRecordDataset(records.paths[:1]).take(1).repeat().map(lambda example: (example, 0.0))
    dataset = examples.concatenate(filling.take(-records.records % global_batch_size))
    per_replica = global_batch_size // replicas
    own = slice(worker * global_batch_size // workers, (worker + 1) * global_batch_size // workers)

    def own_slices(examples: tf.Tensor, weights: tf.Tensor) -> tf.data.Dataset:
        shape = [-1, per_replica]
        return tf.data.Dataset.from_tensor_slices((tf.reshape(examples[own], shape), tf.reshape(weights[own], shape)))

    def parse(examples: tf.Tensor, weights: tf.Tensor) -> dict[str, tf.Tensor]:
        features = parse_examples(examples, shape)
        features[EXAMPLE_WEIGHT] = weights
        features[spec.MASKED_LM_WEIGHTS] *= weights[:, tf.newaxis]
        return features

    return (
        dataset.batch(global_batch_size, drop_remainder=True)
        .flat_map(own_slices)
        .map(parse, tf.data.AUTOTUNE, deterministic=True)
        .prefetch(2 * replicas // workers)
    )


def distribute(
    strategy: tf.distribute.Strategy,
    batches: Callable[..., tf.data.Dataset],
    records: RecordFiles,
    shape: RecordShape,
    **arguments: Any,
) -> tf.distribute.DistributedDataset:
    """`training_batches` or `evaluation_batches` as a strategy takes them, each worker making its own part.

    They are repeated for ever: from a dataset that can end, several workers get shapes that are not static. Whoever
    evaluates counts (`evaluation_steps`).
    """

    def own_part(context: tf.distribute.InputContext) -> tf.data.Dataset:
        return batches(
            records,
            shape,
            replicas=context.num_replicas_in_sync,
            workers=context.num_input_pipelines,
            worker=context.input_pipeline_id,
            **arguments,
        ).repeat()

    return strategy.distribute_datasets_from_function(own_part)


def evaluation_steps(records: RecordFiles, global_batch_size: int, most: int | None = None) -> int:
    """How many global batches one pass of `evaluation_batches` has."""
    steps = -(-records.records // global_batch_size)
    return steps if most is None else min(steps, most)


def parse_examples(examples: tf.Tensor, shape: RecordShape) -> dict[str, tf.Tensor]:
    """Parses serialized examples [B] and asserts that they fit the model.

    Returns:
        `input_ids`, `input_mask`, `segment_ids` [B,S] int32; `masked_lm_positions`, `masked_lm_ids` [B,P] int32;
        `masked_lm_weights` [B,P] float32; `sentence_order_label` [B] int32 (only where a label is needed).

    Raises:
        tf.errors.InvalidArgumentError: a record has other lengths, or an id, position or label out of range;
            `find_bad_record` says which.
    """
    s, p = shape.max_seq_length, shape.max_predictions_per_seq
    features: dict[str, Any] = {
        spec.INPUT_IDS: tf.io.FixedLenFeature([s], tf.int64),
        spec.INPUT_MASK: tf.io.FixedLenFeature([s], tf.int64),
        spec.SEGMENT_IDS: tf.io.FixedLenFeature([s], tf.int64),
        spec.MASKED_LM_POSITIONS: tf.io.FixedLenFeature([p], tf.int64),
        spec.MASKED_LM_IDS: tf.io.FixedLenFeature([p], tf.int64),
        spec.MASKED_LM_WEIGHTS: tf.io.FixedLenFeature([p], tf.float32),
    }
    if shape.has_label:
        for name in (spec.SENTENCE_ORDER_LABEL, spec.OLD_SENTENCE_LABEL):
            features[name] = tf.io.FixedLenFeature([1], tf.int64, default_value=[-1])
    parsed = tf.io.parse_example(examples, features)
    if shape.has_label:
        ours, old = parsed[spec.SENTENCE_ORDER_LABEL][:, 0], parsed.pop(spec.OLD_SENTENCE_LABEL)[:, 0]
        parsed[spec.SENTENCE_ORDER_LABEL] = tf.where(ours >= 0, ours, old)
    in_range = [tf.reduce_all((parsed[name] >= 0) & (parsed[name] < limit)) for name, limit in _limits(shape).items()]
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(in_range), ["a record is out of range"])]):
        return {
            name: tf.identity(value) if value.dtype.is_floating else tf.cast(value, tf.int32)
            for name, value in parsed.items()
        }


def files_of_batch(
    records: RecordFiles, step: int, *, global_batch_size: int, seed: int, shuffle_buffer_size: int
) -> list[str]:
    """The shards that the batch of `step` (counted from 0) came from; for messages, after something failed."""
    order = example_order(records, seed=seed, shuffle_buffer_size=shuffle_buffer_size, start=step * global_batch_size)
    shards = {int(shard) for _, shard in order.take(global_batch_size).as_numpy_iterator()}
    return [records.paths[shard] for shard in sorted(shards)]


def find_bad_record(records: RecordFiles, shape: RecordShape) -> InputError | None:
    """Reads all records and says which is the first that cannot be used, and why; for use after an error.

    Returns:
        The error to raise, naming shard and record; None when every record is fine.
    """
    for path in records.paths:
        number = 0
        try:
            for number, record in enumerate(_raw_records(path), start=1):
                problem = _problem_of(_features_of(record, path), shape)
                if problem:
                    return InputError(f"--{records.flag}: record {number} of {path}: {problem}")
        except (tf.errors.OpError, InputError) as error:
            reason = operation_error.reason(error) if isinstance(error, tf.errors.OpError) else str(error)
            return InputError(f"--{records.flag}: {path} cannot be read after record {number}: {reason}")
    return None


def find_unreadable_file(records: RecordFiles) -> InputError | None:
    """Opens all shards and says which is the first that cannot be read; for use after an error.

    Returns:
        The error to raise, naming the shard; None when every shard has a first record.
    """
    for path in records.paths:
        try:
            next(_raw_records(path), None)
        except tf.errors.OpError as error:
            return InputError(f"--{records.flag}: {path} cannot be read: {operation_error.reason(error)}")
    return None


def is_damaged(path: str) -> bool:
    """Whether a shard is empty, or its checksums show that it is damaged; reads it whole."""
    try:
        return sum(1 for _ in _raw_records(path)) == 0
    except tf.errors.OpError:
        return True


@_as_written
def masked_piece_counts(records: RecordFiles, shape: RecordShape, max_records: int) -> np.ndarray:
    """How often each piece is a prediction target in `max_records` records, of each shard its share.

    Returns:
        float64 [V].
    """
    counts = np.zeros(shape.vocab_size)
    ends = np.cumsum([shard.records for shard in records.shards])
    most = np.diff(min(max_records, records.records) * ends // ends[-1], prepend=0)
    shards = tf.data.Dataset.from_tensor_slices((records.paths, most))
    batches = shards.flat_map(lambda path, count: tf.data.TFRecordDataset(path).take(count)).batch(256)
    for features in batches.map(lambda examples: parse_examples(examples, shape)).as_numpy_iterator():
        ids, weights = features[spec.MASKED_LM_IDS].ravel(), features[spec.MASKED_LM_WEIGHTS].ravel()
        counts += np.bincount(ids, weights, minlength=shape.vocab_size)
    return counts


def _fold(seed: tf.Tensor, value: Any) -> tf.Tensor:
    return tf.random.experimental.stateless_fold_in(seed, tf.cast(value, tf.int32))


def _limits(shape: RecordShape) -> dict[str, int]:
    limits = {
        spec.INPUT_IDS: shape.vocab_size,
        spec.INPUT_MASK: 2,
        spec.SEGMENT_IDS: shape.type_vocab_size,
        spec.MASKED_LM_POSITIONS: shape.max_seq_length,
        spec.MASKED_LM_IDS: shape.vocab_size,
    }
    if shape.has_label:
        limits[spec.SENTENCE_ORDER_LABEL] = 2
    return limits


def _raw_records(path: str) -> Iterator[bytes]:
    return tf.data.TFRecordDataset(path).as_numpy_iterator()


def _features_of(record: bytes, path: str) -> dict[str, np.ndarray]:
    try:
        example = tf.train.Example.FromString(record)
    except Exception as error:  # the decoder's class differs between protobuf's implementations
        raise InputError(f"{path} holds no tf.train.Example records") from error
    return {
        name: np.array(getattr(feature, feature.WhichOneof("kind") or "int64_list").value)
        for name, feature in example.features.feature.items()
    }


def _problem_of(features: Mapping[str, np.ndarray], shape: RecordShape) -> str | None:
    """What is wrong with a record, or None."""
    if spec.SENTENCE_ORDER_LABEL not in features and spec.OLD_SENTENCE_LABEL in features:
        features = {**features, spec.SENTENCE_ORDER_LABEL: features[spec.OLD_SENTENCE_LABEL]}
    lengths = dict.fromkeys((spec.INPUT_IDS, spec.INPUT_MASK, spec.SEGMENT_IDS), shape.max_seq_length)
    lengths.update(dict.fromkeys(spec.PREDICTION_FEATURES, shape.max_predictions_per_seq))
    if shape.has_label:
        lengths[spec.SENTENCE_ORDER_LABEL] = 1
    for name, length in lengths.items():
        if name not in features:
            return f"the feature {name!r} is missing"
        if len(features[name]) != length:
            return f"{name} has {len(features[name])} values instead of {length}"
    for name, limit in _limits(shape).items():
        outside = features[name][(features[name] < 0) | (features[name] >= limit)]
        if outside.size:
            return f"{name} holds {outside[0]}, outside 0..{limit - 1}"
    return None
