"""What both trainings say of a failure that is nobody's mistake in the program."""

from __future__ import annotations

from albert_tf.errors import InputError


def full_memory(error: Exception) -> InputError | None:
    """What to say if the memory of the device is full, else None."""
    import tensorflow as tf

    if not isinstance(error, tf.errors.ResourceExhaustedError):
        return None
    return InputError(
        "the memory of the device is full: raise --gradient_accumulation_steps, or lower --train_batch_size, "
        "--eval_batch_size or the length of the sequences (--max_seq_length)"
    )
