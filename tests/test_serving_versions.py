"""Versions of a model that come and go under a server: no request is lost, and what does not load changes nothing."""

from __future__ import annotations

import asyncio
import os

import pytest

from albert_tf.errors import InputError
from albert_tf.serving import loading, rest, saved_model
from albert_tf.serving.backend import Request, RequestError, RowError
from albert_tf.serving.settings import Settings
from albert_tf.serving.versions import Versions
from tests.serving_fakes import Fake, make_batcher, until


class FakeDirectory:
    """Versions that are put in by a test; a number stands for one that does not load."""

    def __init__(self):
        self.waiting: list = []

    def wanted(self, current: int):
        return (
            self.waiting[0].version
            if self.waiting and isinstance(self.waiting[0], Fake)
            else next(iter(self.waiting), None)
        )

    def load(self, version: int):
        found = self.waiting.pop(0)
        if isinstance(found, Fake):
            return found
        raise InputError(f"version {version} is damaged")


async def ask(versions: Versions, version: str | None = None) -> int:
    with versions.find(version).used() as found:
        return (await found.batcher.answer(Request("", 1, None)))["version"][0]


def names(versions: Versions) -> dict[int, str]:
    return {number: state.name for number, state in versions.find_states(None).items()}


def test_what_was_asked_of_the_old_version_is_answered_by_it():
    async def run() -> None:
        old, new, began = Fake(3), Fake(5), []
        directory = FakeDirectory()
        versions = Versions(old, "m", make_batcher, began.append)
        watcher = asyncio.get_running_loop().create_task(versions.watch(directory, 0.01))
        before = [asyncio.get_running_loop().create_task(ask(versions)) for _ in range(9)]
        await asyncio.sleep(0.05)
        new.may_answer.set()
        directory.waiting.append(new)
        await until(lambda: versions.current.backend is new)
        assert await ask(versions) == await ask(versions, "5") == 5
        assert names(versions) == {5: "AVAILABLE", 3: "UNLOADING"} and began == [old, new]
        with pytest.raises(RequestError, match=r"Specific\(m, 3\)"):
            versions.find("3")
        old.may_answer.set()
        assert await asyncio.gather(*before) == [3] * 9
        await until(lambda: names(versions) == {5: "AVAILABLE", 3: "END"})
        watcher.cancel()
        await versions.close()

    asyncio.run(run())


class Picky(Fake):
    """Finds a row wrong only when it answers."""

    def run(self, requests):
        for request in requests:
            if "wrong" in request.data:
                raise RowError(request.data.index("wrong"), "it is wrong")
        return [{"row": [row for row in request.data if row != "dropped"]} for request in requests]


def test_a_wrong_row_of_a_large_request_is_told_by_its_own_place():
    async def run() -> None:
        batcher = make_batcher(Picky(1))
        rows = [str(row) for row in range(10)]
        assert (await batcher.answer(Request("", 10, rows)))["row"] == rows
        rows[6] = "wrong"
        with pytest.raises(RequestError, match="instance 6: it is wrong"):
            await batcher.answer(Request("", 10, rows))
        rows[6] = "dropped"
        with pytest.raises(RequestError, match="not one value for each row"):
            await batcher.answer(Request("", 10, rows))
        await batcher.close()

    asyncio.run(run())


def test_a_version_that_does_not_load_is_told_of(caplog):
    async def run() -> None:
        old, directory = Fake(3), FakeDirectory()
        old.may_answer.set()
        versions = Versions(old, "m", make_batcher, lambda backend: None)
        watcher = asyncio.get_running_loop().create_task(versions.watch(directory, 0.01))
        directory.waiting.append(4)
        await until(lambda: names(versions) == {4: "END", 3: "AVAILABLE"})
        assert await ask(versions) == 3
        found = rest.status(versions.find_states("4"))["model_version_status"]
        assert found[0]["status"] == {"error_code": "UNKNOWN", "error_message": "version 4 is damaged"}
        with pytest.raises(RequestError, match="known of m are 4, 3"):
            versions.find_states("5")
        watcher.cancel()
        await versions.close()

    asyncio.run(run())
    assert "version 4 of m was not loaded, version 3 stays: version 4 is damaged" in caplog.text


def test_the_search_goes_on_whatever_goes_wrong(caplog):
    class Failing(FakeDirectory):
        failures = [OSError("no such place"), ValueError("what is this?")]

        def wanted(self, current):
            if self.failures:
                raise self.failures.pop()
            return super().wanted(current)

    async def run() -> None:
        old, new, directory = Fake(3), Fake(5), Failing()
        for backend in (old, new):
            backend.may_answer.set()
        versions = Versions(old, "m", make_batcher, lambda backend: None)
        watcher = asyncio.get_running_loop().create_task(versions.watch(directory, 0.01))
        directory.waiting.append(new)
        await until(lambda: versions.current.backend is new)
        watcher.cancel()
        await versions.close()

    asyncio.run(run())
    assert "cannot look for versions of m: no such place" in caplog.text and "what is this?" in caplog.text


def test_of_directories_with_one_number_a_complete_one_is_taken(tmp_path, monkeypatch):
    names = ["7", "٧", "007", "2"]
    for name in names:
        (tmp_path / name).mkdir()
    for name in ("٧", "007", "2"):
        (tmp_path / name / "saved_model.pb").touch()
    monkeypatch.setattr(os, "listdir", lambda path: names)
    assert saved_model.newest_version(str(tmp_path)) == (str(tmp_path / "007"), 7)


def test_the_newest_version_is_wanted_and_a_damaged_one_when_it_changes(tmp_path, monkeypatch):
    def put(version: str, content: str = "") -> None:
        (tmp_path / version).mkdir(exist_ok=True)
        (tmp_path / version / "saved_model.pb").write_text(content)

    def load_backend(path: str, settings: Settings):
        if "damaged" in (tmp_path / path / "saved_model.pb").read_text():
            raise InputError("damaged")
        return Fake(int(path.rpartition("/")[2]))

    monkeypatch.setattr(loading, "load_backend", load_backend)
    assert loading.directory_of_versions(str(tmp_path), Settings()) is None
    put("2")
    assert loading.directory_of_versions(str(tmp_path / "2"), Settings()) is None
    directory = loading.directory_of_versions(str(tmp_path), Settings())
    assert directory is not None and directory.wanted(2) is None
    (tmp_path / "3").mkdir()  # its files have not come yet
    assert directory.wanted(2) is None
    put("10", "damaged")
    assert directory.wanted(2) == 10
    with pytest.raises(InputError):
        directory.load(10)
    assert directory.wanted(2) is None
    put("10", "whole")
    assert directory.wanted(2) == 10 and directory.load(10).version == 10 and directory.wanted(10) is None
    (tmp_path / "10" / "saved_model.pb").unlink()
    assert directory.wanted(10) == 2
    with pytest.raises(InputError, match="no version 10 any more"):
        directory.load(10)
