"""Plots as inline SVG: points beside the line where both are equal, and curves over steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from albert_tf.inspection.document import escaped

_LEFT, _TOP, _RIGHT, _BOTTOM = 64, 30, 24, 44
_TICKS = 5


class _Axis(NamedTuple):
    low: float
    high: float
    ticks: list[float]


def scatter(points: Sequence[tuple[float, float]], x_name: str, y_name: str) -> str:
    """Points (x, y) on axes of the same range."""
    axis = _axis([value for point in points for value in point])
    to_x, to_y, width, height, frame = _frame(axis, axis, 400, 400, x_name, y_name, "")
    even = _line("even", to_x(axis.low), to_y(axis.low), to_x(axis.high), to_y(axis.high))
    dots = "".join(f'<circle class="dot" cx="{to_x(x):.1f}" cy="{to_y(y):.1f}" r="3.5"/>' for x, y in points)
    return _svg(width, height, f"{y_name} against {x_name}", frame + even + dots)


def curve(points: Sequence[tuple[float, float]], title: str, marked: Sequence[float] = (), x_name: str = "step") -> str:
    """A curve through points (x, y), those at the x in `marked` as dots with their value."""
    x_axis, y_axis = _axis([x for x, _ in points]), _axis([y for _, y in points])
    to_x, to_y, width, height, frame = _frame(x_axis, y_axis, 385, 240, x_name, "", title)
    path = " ".join(f"{to_x(x):.1f},{to_y(y):.1f}" for x, y in points)
    dots = "".join(f'<circle class="dot" cx="{to_x(x):.1f}" cy="{to_y(y):.1f}" r="2.5"/>' for x, y in points[:1])
    for x, y in points:
        if x in marked:
            dots += f'<circle class="mark" cx="{to_x(x):.1f}" cy="{to_y(y):.1f}" r="4"/>'
            dots += _text(to_x(x), to_y(y) - 9, f"{y:.4g}", _anchor(to_x(x), width))
    return _svg(width, height, title, f'{frame}<polyline class="curve" points="{path}"/>{dots}')


def _frame(
    x_axis: _Axis, y_axis: _Axis, inner_width: int, inner_height: int, x_name: str, y_name: str, title: str
) -> tuple[Callable[[float], float], Callable[[float], float], int, int, str]:
    """How values become places, the size of the picture, and grid, numbers and names as SVG."""
    width, height = inner_width + _LEFT + _RIGHT, inner_height + _TOP + _BOTTOM

    def to_x(value: float) -> float:
        return _LEFT + inner_width * (value - x_axis.low) / (x_axis.high - x_axis.low)

    def to_y(value: float) -> float:
        return _TOP + inner_height * (y_axis.high - value) / (y_axis.high - y_axis.low)

    bottom = _TOP + inner_height
    parts = [_line("grid", _LEFT, to_y(tick), _LEFT + inner_width, to_y(tick)) for tick in y_axis.ticks]
    parts += [_line("grid", to_x(tick), _TOP, to_x(tick), bottom) for tick in x_axis.ticks]
    parts += [_text(_LEFT - 8, to_y(tick) + 4, f"{tick:,.12g}", "end") for tick in y_axis.ticks]
    parts += [_text(to_x(tick), bottom + 18, f"{tick:,.12g}", "middle") for tick in x_axis.ticks]
    parts.append(_text(_LEFT + inner_width / 2, height - 8, x_name, "middle"))
    parts.append(_text(_LEFT if title else 8, 19, title or y_name, "start"))
    return to_x, to_y, width, height, "".join(parts)


def _axis(values: Sequence[float]) -> _Axis:
    """A range of round numbers around the values."""
    low, high = min(values), max(values)
    if high == low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    raw = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [float(f"{step * at:.12g}") for at in range(first, last + 1)]  # 0.3, not 0.30000000000000004
    return _Axis(ticks[0], ticks[-1], ticks)


def _anchor(x: float, width: int) -> str:
    return "start" if x < width / 4 else "end" if x > 3 * width / 4 else "middle"


def _line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'


def _svg(width: int, height: int, title: str, content: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escaped(title)}">{content}</svg>'
    )
