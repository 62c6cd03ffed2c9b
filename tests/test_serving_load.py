"""The load test of the server: what it finds right, and what it must not."""

from __future__ import annotations

import asyncio
import importlib
import sys
import time

import pytest

from tests import fake_server

pytest.importorskip("aiohttp", reason="needs the extra `serve`: aiohttp")
pytest.importorskip("prometheus_client", reason="needs the extra `serve`: prometheus_client")


@pytest.fixture
def serving_load(repository, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "benchmarks"))
    module = importlib.import_module("serving_load")
    for name, value in (("READ_SECONDS", 1.0), ("IDLE_SECONDS", 1.0), ("SECONDS_BETWEEN_LOOKS", 0.1)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "MOST_GROWTH", 10.0)  # what a process takes in its first second says nothing
    return module


def test_a_server_that_stands_it(serving_load, monkeypatch, capsys):
    limits = [f"--max_body_bytes={serving_load.MAX_BODY_MB << 20}", f"--max_rows={serving_load.MAX_ROWS}"]
    limits += [f"--read_seconds={serving_load.READ_SECONDS}", f"--idle_seconds={serving_load.IDLE_SECONDS}"]
    monkeypatch.setattr(serving_load, "command", lambda model: fake_server.command(*limits))
    is_right = asyncio.run(serving_load.measure("", 3, 0.005))
    told = capsys.readouterr().out
    assert is_right and told.endswith("all as it must be\n"), told
    words = " ".join(told.split())
    for seen in ("good 200", "huge body 413", "leaving -", "not reading closed", "slow body 408", "wrong type 400"):
        assert seen in words, told


def test_a_server_that_dies(serving_load, monkeypatch, capsys):
    code = "import time; print('at http://127.0.0.1:1/v1/models/m', flush=True); time.sleep(0.3)"
    monkeypatch.setattr(serving_load, "command", lambda model: [sys.executable, "-c", code])
    start = time.monotonic()
    assert not asyncio.run(serving_load.measure("", 3, 10))
    told = capsys.readouterr().out
    assert "the server did not answer any more" in told and "only 0.0% of the good" in told and "slow_client" in told
    assert time.monotonic() - start < 60


def test_what_is_not_as_it_must_be(serving_load):
    load = serving_load.Load("", 0.0)
    for status in [200] * 8 + [503, 504]:
        load.saw("good", status, {200, 503, 504})
    problems = serving_load.problems
    assert problems(load, [100.0] * 8, True, 0) == ["only 80.0% of the good requests were answered"]
    for _ in range(10):
        load.saw("good", 200, {200})
    assert problems(load, [100.0] * 8, True, 0) == []
    load.saw("bad JSON", 500, {400})
    assert problems(load, [100.0] * 4 + [2000.0] * 4, True, None) == [
        "1 unexpected answers: [('bad JSON: 500', 1)]",
        "it did not end after SIGTERM",
        "its memory grew by more than 1000%",
    ]
