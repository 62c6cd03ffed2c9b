"""albert_tf.training_page: the curves of a log are where its numbers are."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from albert_tf import training_page
from albert_tf.inspection.plots import curve

TRAINING = [
    {"step": step, "steps": 10, "rows": 320, "learning_rate": 1e-5, "loss": 2.0 - step / 100, "kind": "text"}
    for step in range(10, 101, 10)
]
EVALUATION = [{"step": step, "accuracy": 0.5 + step / 1000, "f1": math.nan} for step in (50, 100)]


def points(svg: str) -> np.ndarray:
    """The points of a curve in the picture, [N,2]."""
    return np.array(
        [pair.split(",") for pair in re.search(r'polyline class="curve" points="(.*?)"', svg)[1].split()], float
    )


def ticks(svg: str) -> dict[str, dict[float, float]]:
    """The numbers beside the axes: value to place, of x and of y."""
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(end|middle)">([-\d.,e]+)</text>', svg)
    return {
        "x": {float(value.replace(",", "")): float(x) for x, _, anchor, value in found if anchor == "middle"},
        "y": {float(value.replace(",", "")): float(y) - 4 for _, y, anchor, value in found if anchor == "end"},
    }


@pytest.mark.parametrize(
    "values",
    [
        [(10, 2.5), (20, 1.25), (35, 0.75)],
        [(0, -1e-5), (1e6, 3e-5)],
        [(1, 0.7), (2, 0.7)],
        [(5, 0.0)],
        [(0, 1234567.0), (3, 1234568.0)],
    ],
)
def test_a_curve_is_where_its_numbers_are(values):
    svg = curve(values, "loss")
    at = ticks(svg)
    for (x, y), place in zip(values, points(svg)):
        for value, where, axis in ((x, place[0], at["x"]), (y, place[1], at["y"])):
            (low, high) = min(axis), max(axis)
            assert low <= value <= high and len(axis) >= 2
            expected = axis[low] + (axis[high] - axis[low]) * (value - low) / (high - low)
            assert where == pytest.approx(expected, abs=0.2)


def test_each_number_of_the_logs_is_a_curve():
    page = training_page.page(
        "SST-2 <1>", TRAINING, EVALUATION, best_step=50, facts={"best": "<b>", "seconds": 1.23456}
    )
    assert re.findall(r'aria-label="(.*?)"', page) == ["loss", "learning_rate", "accuracy"]  # f1 has no finite number
    assert "SST-2 &lt;1&gt;" in page and "&lt;b&gt;" in page and "<bdi>1.2346</bdi>" in page
    assert len(points(page)) == 10
    assert '<circle class="mark"' in page and ">0.55</text>" in page
    assert '<tr class="best"><td>50</td><td>0.5500</td>' in page


def test_an_empty_log_is_a_page_too():
    page = training_page.page("t", [])
    assert "<svg" not in page and page.rstrip().endswith("</html>")


def test_the_file_is_written(tmp_path):
    training_page.write(tmp_path / "a" / "page.html", "t", TRAINING)
    assert (tmp_path / "a" / "page.html").read_text("utf-8") == training_page.page("t", TRAINING)
