"""Progress in plain lines."""

from __future__ import annotations

import pytest

from albert_tf import progress
from albert_tf.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_the_first_update_says_nothing_of_how_long_the_others_take(clock, capsys):
    with Progress(11, "training", "steps") as bar:
        clock[0] = 100.0  # a graph was compiled
        bar.update(1)
        clock[0] = 110.0
        bar.update(1, loss="0.5")
    first, second, last = capsys.readouterr().err.splitlines()
    assert first == "training: 1/11 steps in 100 s"
    assert second == last == "training: 2/11 steps in 110 s, 90 s left, loss 0.5"


def test_what_was_there_before_is_no_work_of_now(clock, capsys):
    with Progress(100, "training", "steps", initial=50) as bar:
        bar.update(1)
        clock[0] = 20.0
        bar.update(4)
    assert capsys.readouterr().err.splitlines()[0] == "training: 55/100 steps in 20 s, 225 s left"
