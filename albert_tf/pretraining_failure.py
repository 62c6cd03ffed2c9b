"""What is said of a pre-training that fails: in which steps, which shards they read, and which record is damaged."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from albert_tf import operation_error, training_failure
from albert_tf.errors import InputError

if TYPE_CHECKING:
    from albert_tf.input_pipeline import RecordShape
    from albert_tf.record_files import RecordFiles

# What TensorFlow may raise where a record is damaged, and where a file is gone or cannot be reached. The latter have
# other causes too, such as a worker that died: they are not worth a reading of all records.
_OF_RECORDS = ("DataLossError", "InvalidArgumentError")
_OF_FILES = ("FailedPreconditionError", "NotFoundError", "PermissionDeniedError", "UnavailableError", "UnknownError")


def tell(
    error: Exception, first: int, step: int, found: Sequence[RecordFiles], shape: RecordShape, order: Mapping[str, int]
) -> int:
    """Says in which steps a run failed and which shards they read; a damaged record is looked for and named.

    Args:
        error: what was raised.
        first, step: the steps of the call that failed, counted from 0: its first one, and the one behind its last.
        found: the records, those that are trained on first.
        shape: of a record.
        order: the arguments of `input_pipeline.files_of_batch` that decide in which order records are read.

    Returns:
        The exit code.

    Raises:
        InputError: that is what was raised, a record is damaged or cannot be read, or the disk or the memory is
            full.
    """
    import tensorflow as tf

    from albert_tf import input_pipeline
    from albert_tf.training_log import NotFiniteError

    if isinstance(error, InputError):
        raise error
    of_the_machine = training_failure.of_the_machine(error)
    if of_the_machine is not None:
        raise InputError(f"at step {first + 1}: {of_the_machine}") from error
    for records in found:
        bad = None
        if _is_one_of(error, _OF_RECORDS):
            bad = input_pipeline.find_bad_record(records, shape)
        elif _is_one_of(error, _OF_FILES):
            bad = input_pipeline.find_unreadable_file(records)
        if bad is not None:
            raise InputError(f"at step {first + 1}: {bad}") from error
    if isinstance(error, NotFiniteError):
        first = error.step
    else:
        traceback.print_exception(type(error), error, error.__traceback__)
    try:
        shards = f"shards {', '.join(input_pipeline.files_of_batch(found[0], first, **order))}"
    except tf.errors.OpError as unreadable:
        shards = f"its shards cannot be read again: {operation_error.reason(unreadable)}"
    epoch = first * order["global_batch_size"] // found[0].records
    where = (
        f"step {first + 1}" if isinstance(error, NotFiniteError) or step <= first + 1 else f"steps {first + 1}..{step}"
    )
    kind = type(error).__name__
    print(
        f"error: {where} failed (epoch {epoch + 1}; {shards}): {kind}: {error}",
        file=sys.stderr,
        flush=True,
    )
    return 1


def _is_one_of(error: Exception, names: Sequence[str]) -> bool:
    import tensorflow as tf

    return isinstance(error, tuple(getattr(tf.errors, name) for name in names))
