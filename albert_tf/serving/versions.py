"""The versions of one model: the one that answers, those that come and go, and what is known of each."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from absl import logging

from albert_tf.errors import InputError
from albert_tf.serving.backend import Backend, RequestError
from albert_tf.serving.batching import Batcher

LOADING, AVAILABLE, UNLOADING, END = "LOADING", "AVAILABLE", "UNLOADING", "END"  # names of the model status API
_NOT_FOUND = 404


class State(NamedTuple):
    """Of a version: one of the names above, and why it did not load."""

    name: str
    problem: str = ""


class Directory(Protocol):
    """Where versions come from."""

    def wanted(self, current: int) -> int | None:
        """The version that should answer in place of the current one; None to leave things as they are."""

    def load(self, version: int) -> Backend:
        """That version, ready to answer.

        Raises:
            InputError: it cannot be loaded.
        """


class Version:
    """A loaded version with its queue; it stays until nobody uses it any more."""

    def __init__(self, backend: Backend, batcher: Batcher):
        self.backend = backend
        self.batcher = batcher
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()

    @contextlib.contextmanager
    def used(self) -> Iterator[Version]:
        """While a request is answered by it."""
        self._users += 1
        self._unused.clear()
        try:
            yield self
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def close(self) -> None:
        """Ends it when the last request has its answer."""
        await self._unused.wait()
        await self.batcher.close()


class Versions:
    """The versions of one model; to be made in the event loop that the server runs in.

    Args:
        backend: the first one, loaded.
        name: of the model.
        make_batcher: the queue of a backend.
        changed: is called with each backend that begins to answer.
    """

    def __init__(
        self,
        backend: Backend,
        name: str,
        make_batcher: Callable[[Backend], Batcher],
        changed: Callable[[Backend], None],
    ):
        self._name = name
        self._make_batcher = make_batcher
        self._changed = changed
        self.states: dict[int, State] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._begin(backend)

    @property
    def current(self) -> Version:
        """The one that answers."""
        return self._current

    def find(self, version: str | None) -> Version:
        """The version that a request asks for; any, where that is None.

        Raises:
            RequestError: it does not answer.
        """
        number = self.current.backend.version
        if version is not None and version != str(number):
            raise not_found(self._name, version, f"version {number} of {self._name} is there")
        return self.current

    def find_states(self, version: str | None) -> dict[int, State]:
        """The states of all versions, largest first, or of one.

        Raises:
            RequestError: there never was such a version.
        """
        states = {number: self.states[number] for number in sorted(self.states, reverse=True)}
        if version is None:
            return states
        found = {number: state for number, state in states.items() if str(number) == version}
        if not found:
            raise not_found(self._name, version, f"known of {self._name} are {', '.join(map(str, states))}")
        return found

    async def watch(self, directory: Directory, seconds: float) -> None:
        """Looks for versions each so many seconds, for ever; while one loads, the current one answers."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(seconds)
            try:
                number = await loop.run_in_executor(None, directory.wanted, self.current.backend.version)
                if number is not None:
                    await self._replace(directory, number)
            except OSError as error:
                logging.error("cannot look for versions of %s: %s", self._name, error)
            except Exception:  # of whatever kind: it would end the search unseen
                logging.exception("the search for versions of %s failed, and goes on", self._name)

    async def close(self) -> None:
        """Ends all of them; nothing may be waiting."""
        await self.current.close()
        await asyncio.gather(*self._closing)

    async def _replace(self, directory: Directory, number: int) -> None:
        self.states[number] = State(LOADING)
        try:
            backend = await asyncio.get_running_loop().run_in_executor(None, directory.load, number)
        except Exception as error:  # of whatever kind: the version that answers goes on
            problem = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            self.states[number] = State(END, problem)
            logging.error(
                "version %d of %s was not loaded, version %d stays: %s",
                number, self._name, self.current.backend.version, problem,
            )  # fmt: skip
            return
        before = self.current
        self._begin(backend)
        self.states[before.backend.version] = State(UNLOADING)
        task = asyncio.get_running_loop().create_task(self._end(before))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _begin(self, backend: Backend) -> None:
        self._current = Version(backend, self._make_batcher(backend))
        self.states[backend.version] = State(AVAILABLE)
        self._changed(backend)

    async def _end(self, version: Version) -> None:
        await version.close()
        number = version.backend.version
        if self.states[number].name == UNLOADING:  # it may have come back meanwhile
            self.states[number] = State(END)
        del version
        gc.collect()  # a SavedModel refers to itself


def not_found(name: str, version: str | None, what_is_there: str) -> RequestError:
    """The error for a model or version that is not there, in TensorFlow Serving's words."""
    asked = f"Latest({name:.60})" if version is None else f"Specific({name:.60}, {version:.20})"
    return RequestError(_NOT_FOUND, f"Servable not found for request: {asked}; {what_is_there}")
