"""Shards in several processes."""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.process
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from albert_tf.errors import InputError
from data_prep.shards import Job, ShardBuilder, finished_to_dict
from data_prep.work_list import Shard

_SECONDS_BETWEEN_LOOKS = 0.5


def available_cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def build_shards(job: Job, shards: Iterable[Shard], num_workers: int) -> Iterator[tuple[Shard, dict[str, Any]]]:
    """Yields each shard with what `finished_to_dict` says of it, as they are finished.

    Raises:
        InputError: from `ShardBuilder.build`, or a process was ended from outside.
    """
    shards = list(shards)
    num_workers = min(num_workers, len(shards))
    if num_workers <= 1:
        builder = ShardBuilder(job)
        for shard in shards:
            yield shard, finished_to_dict(*builder.build(shard))
        return
    # A forked process starts at once and shares the vocabulary, but TensorFlow does not survive a fork.
    can_fork = sys.platform == "linux" and "tensorflow" not in sys.modules
    executor = concurrent.futures.ProcessPoolExecutor(
        num_workers,
        multiprocessing.get_context("fork" if can_fork else "spawn"),
        initializer=_start_worker,
        initargs=(job, os.getpid()),
    )
    try:
        futures = {executor.submit(_build, shard): shard for shard in shards}
        for future in concurrent.futures.as_completed(futures):
            yield futures[future], future.result()
    except concurrent.futures.process.BrokenProcessPool as error:
        raise InputError(
            "a process was ended from outside, mostly because memory ran out: run the same command again to go on "
            f"from here, with fewer than --num_workers={num_workers} if it happens again"
        ) from error
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


_builder: ShardBuilder  # of this worker process


def _start_worker(job: Job, parent: int) -> None:
    global _builder
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    _builder = ShardBuilder(job)


def _build(shard: Shard) -> dict[str, Any]:
    return finished_to_dict(*_builder.build(shard))


def _end_with_parent(parent: int) -> None:
    """A killed parent cannot tell its workers; one that went on would write beside the next run."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)
