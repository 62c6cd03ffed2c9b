"""Requests that come at about the same time become one batch of the model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

from albert_tf.serving.backend import NO_ROWS, Backend, Columns, Request, RequestError, RowError, has_rows

_UNAVAILABLE = 503


class Observer(Protocol):
    """Is told what happens."""

    def queued(self, rows: int) -> None:
        """So many rows more wait now, or fewer where it is negative."""

    def batch(self, rows: int, seconds: float) -> None:
        """The model answered a batch."""


class _Waiting(NamedTuple):
    request: Request
    answer: asyncio.Future[Columns]
    since: float
    characters: int


class Batcher:
    """Joins requests for one model.

    A batch begins with the request that waits longest. It takes further ones with the same key until it is full or the
    first has waited `max_wait_seconds`; while the model is at work, what comes waits for the next batch. Requests
    larger than a batch are taken apart. What nobody waits for any more is left out.

    Args:
        backend: the model.
        max_batch_rows: of a batch.
        max_batch_characters: of the texts of a batch, unless a single row has more.
        max_wait_seconds: of its first request.
        max_queued_rows: beyond them requests are refused.
        observer: is told of queue and batches.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        max_batch_rows: int,
        max_batch_characters: int,
        max_wait_seconds: float,
        max_queued_rows: int,
        observer: Observer,
    ):
        self._backend = backend
        self._max_batch_rows = max_batch_rows
        self._max_batch_characters = max_batch_characters
        self._max_wait_seconds = max_wait_seconds
        self._max_queued_rows = max_queued_rows
        self._observer = observer
        self._waiting: list[_Waiting] = []
        self._rows = 0
        self._changed = asyncio.Event()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def answer(self, request: Request) -> Columns:
        """The answer to one request.

        Raises:
            RequestError: the queue is full, or the model finds the request wrong.
        """
        self._forget_done()
        if self._rows + request.rows > self._max_queued_rows:
            raise RequestError(_UNAVAILABLE, f"{self._rows} rows are waiting already: try again later")
        starts = self._starts(request) if request.can_split else [0]
        if len(starts) == 1:
            return await self._enqueue(request)
        parts = [self._part(request, start, stop) for start, stop in zip(starts, [*starts[1:], request.rows])]
        waiting = [self._enqueue(part) for part in parts]
        try:
            answers = await asyncio.gather(*map(_of_part, waiting, starts))
        finally:
            for one in waiting:  # where a part has failed, nobody waits for the others
                one.cancel()
        if not all(has_rows(answer, part.rows) for answer, part in zip(answers, parts)):
            raise RequestError(400, NO_ROWS)
        return {name: [value for answer in answers for value in answer[name]] for name in answers[0]}

    async def close(self) -> None:
        """Ends the worker; nothing may be waiting."""
        self._worker.cancel()
        await asyncio.gather(self._worker, return_exceptions=True)
        self._forget_done()
        self._executor.shutdown(wait=False)

    def _starts(self, request: Request) -> list[int]:
        """The first row of each part that the model reads at once."""
        starts, characters = [0], 0
        for row, more in enumerate(request.characters or [0] * request.rows):
            characters += more
            if row - starts[-1] == self._max_batch_rows or (
                row > starts[-1] and characters > self._max_batch_characters
            ):
                starts.append(row)
                characters = more
        return starts

    def _part(self, request: Request, start: int, stop: int) -> Request:
        part = self._backend.split(request, start, stop)
        return part._replace(characters=request.characters[start:stop], of_rows=request.rows)

    def _enqueue(self, request: Request) -> asyncio.Future[Columns]:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(request, loop.create_future(), loop.time(), sum(request.characters))
        self._waiting.append(waiting)
        self._count(request.rows)
        self._changed.set()
        return waiting.answer

    def _forget_done(self) -> None:
        """Leaves out what nobody waits for any more: its client has left, or its time is over."""
        if any(waiting.answer.done() for waiting in self._waiting):
            self._count(-sum(waiting.request.rows for waiting in self._waiting if waiting.answer.done()))
            self._waiting = [waiting for waiting in self._waiting if not waiting.answer.done()]

    def _count(self, rows: int) -> None:
        self._rows += rows
        self._observer.queued(rows)

    async def _work(self) -> None:
        while True:
            await self._run(await self._next_batch())

    async def _next_batch(self) -> list[_Waiting]:
        loop = asyncio.get_running_loop()
        while True:
            self._forget_done()
            if not self._waiting:
                self._changed.clear()
                await self._changed.wait()
                continue
            first = self._waiting[0]
            batch = self._taken(first)
            remaining = first.since + self._max_wait_seconds - loop.time()
            if sum(waiting.request.rows for waiting in batch) >= self._max_batch_rows or remaining <= 0:
                break
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), remaining)
            except asyncio.TimeoutError:
                continue
        taken = set(map(id, batch))
        self._waiting = [waiting for waiting in self._waiting if id(waiting) not in taken]
        self._count(-sum(waiting.request.rows for waiting in batch))
        return batch

    def _taken(self, first: _Waiting) -> list[_Waiting]:
        """Those of the waiting that go with the first one."""
        batch: list[_Waiting] = []
        rows = characters = 0
        for waiting in self._waiting:
            fits = (
                rows + waiting.request.rows <= self._max_batch_rows
                and characters + waiting.characters <= self._max_batch_characters
            )
            if waiting.request.key == first.request.key and (fits or not batch):
                batch.append(waiting)
                rows += waiting.request.rows
                characters += waiting.characters
            if rows >= self._max_batch_rows:
                break
        return batch

    async def _run(self, batch: Sequence[_Waiting]) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        requests = [waiting.request for waiting in batch]
        try:
            answers = await loop.run_in_executor(self._executor, self._backend.run, requests)
        except Exception as error:  # of whatever kind: it is the answer to the request that caused it, and only to that
            if len(batch) > 1:
                for waiting in batch:
                    if not waiting.answer.done():
                        await self._run([waiting])
            elif not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            return
        self._observer.batch(sum(request.rows for request in requests), loop.time() - start)
        for waiting, answer in zip(batch, answers):
            if not waiting.answer.done():
                waiting.answer.set_result(answer)


async def _of_part(answer: asyncio.Future[Columns], start: int) -> Columns:
    """The answer to the rows of a larger request from `start` on; a wrong row is told by its place in that."""
    try:
        return await answer
    except RowError as error:
        raise RowError(start + error.row, error.problem) from error
