"""Requests in the queue of a model: what is joined, taken apart and left out."""

from __future__ import annotations

import asyncio
import time

import pytest

from albert_tf.serving.backend import Request, RowError
from tests.serving_fakes import Fake, Quiet, make_batcher, until


class Picky(Fake):
    """Finds a row wrong when it answers."""

    def run(self, requests):
        answers = super().run(requests)
        for request in requests:
            if "wrong" in request.data:
                raise RowError(request.data.index("wrong"), "it is wrong")
        return answers


def test_where_a_part_fails_the_others_are_left_out():
    class Slow(Picky):
        def run(self, requests):
            time.sleep(0.02)
            return super().run(requests)

    async def run() -> None:
        backend, seen = Slow(1), Quiet()
        batcher = make_batcher(backend, observer=seen)
        backend.may_answer.set()
        rows = ["wrong", *map(str, range(1, 40))]
        with pytest.raises(RowError, match="instance 0"):
            await batcher.answer(Request("", len(rows), rows))
        assert (await batcher.answer(Request("", 1, ["next"])))["version"] == [1]
        await batcher.close()
        # What has begun when the first part fails comes to its end.
        assert len(backend.ran) <= 3 and backend.ran[-1] == ["next"] and seen.rows == 0

    asyncio.run(run())


def test_a_request_that_was_joined_and_left_is_not_tried_alone():
    async def run() -> None:
        backend = Picky(1)
        batcher = make_batcher(backend, max_wait_seconds=0.02)
        tasks = [asyncio.ensure_future(batcher.answer(Request("", 1, [row]))) for row in ("left", "wrong", "a")]
        await until(lambda: backend.ran == [["left", "wrong", "a"]])
        tasks[0].cancel()
        backend.may_answer.set()
        assert [type(each) for each in await asyncio.gather(*tasks, return_exceptions=True)][1:] == [RowError, dict]
        await batcher.close()
        assert backend.ran[1:] == [["wrong"], ["a"]]

    asyncio.run(run())


def test_a_queue_that_ends_leaves_no_rows_behind():
    """What was given up while the model was at work, and nobody has looked at since."""

    async def run() -> None:
        backend, seen = Fake(1), Quiet()
        batcher = make_batcher(backend, observer=seen)
        at_work = asyncio.ensure_future(batcher.answer(Request("", 1, ["at work"])))
        await until(lambda: bool(backend.ran))
        given_up = asyncio.ensure_future(batcher.answer(Request("", 3, ["a", "b", "c"])))
        await until(lambda: seen.rows == 3)
        for task in (at_work, given_up):
            task.cancel()
        await asyncio.gather(at_work, given_up, return_exceptions=True)
        await batcher.close()
        backend.may_answer.set()
        assert seen.rows == 0

    asyncio.run(run())


def test_a_batch_has_no_more_characters_than_one_row_may():
    """Rows are parted and requests joined up to so many; what is larger by itself is read by itself."""

    async def run() -> None:
        backend = Fake(1)
        batcher = make_batcher(backend, max_batch_characters=10, max_wait_seconds=0.02)
        backend.may_answer.set()
        sizes = (3, 4, 4, 6, 11, 1, 1, 1, 1, 1)
        rows = Request("", len(sizes), list(sizes), characters=sizes)
        assert (await batcher.answer(rows))["version"] == [1] * len(sizes)
        assert backend.ran == [[3, 4, 1], [4, 6], [11], [1, 1, 1, 1]]
        backend.ran.clear()
        await asyncio.gather(*[batcher.answer(Request("", 1, [size], characters=(size,))) for size in (6, 6, 4, 3)])
        assert backend.ran == [[6, 4], [6, 3]]
        await batcher.close()

    asyncio.run(run())
