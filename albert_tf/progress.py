"""Progress of long work: a tqdm bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

import tqdm

SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Counts `total` units of work; use as a context manager.

    On a terminal it is a tqdm bar. Elsewhere (a log file, a notebook's captured output) it prints a line at most every
    ten seconds and one at the end, so that a log stays readable.
    """

    def __init__(self, total: float | None, description: str, unit: str, *, initial: float = 0, scale: bool = False):
        self._description, self._unit, self._total = description, unit, total
        self._count, self._initial = initial, initial
        self._details: dict[str, str] = {}
        self._start = self._last_line = time.monotonic()
        self._first: tuple[float, float] | None = None  # when the first update came, and the count then
        self._bar = None
        if sys.stderr.isatty():
            self._bar = tqdm.tqdm(
                total=total, desc=description, unit=unit, initial=initial, unit_scale=scale, dynamic_ncols=True
            )

    def update(self, amount: float, **details: Any) -> None:
        """Adds `amount` units; `details` (loss=…, accuracy=…) are shown behind the count."""
        self._count += amount
        if self._first is None:
            self._first = (time.monotonic(), self._count)
        self._details.update({name: str(value) for name, value in details.items()})
        if self._bar is not None:
            self._bar.set_postfix(self._details, refresh=False)
            self._bar.update(amount)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._print_line()

    def write(self, line: str) -> None:
        """Prints a line without tearing the bar."""
        if self._bar is not None:
            self._bar.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)

    def _print_line(self) -> None:
        self._last_line = time.monotonic()
        seconds = self._last_line - self._start
        parts = [f"{self._description}: {self._count:,.0f}"]
        if self._total:
            parts[0] += f"/{self._total:,.0f}"
        parts[0] += f" {self._unit} in {seconds:.0f} s"
        if (left := self._seconds_left()) is not None:
            parts.append(f"{left:.0f} s left")
        parts += [f"{name} {value}" for name, value in self._details.items()]
        print(", ".join(parts), file=sys.stderr, flush=True)

    def _seconds_left(self) -> float | None:
        """At the rate since the first update, before which much is prepared that is not done again."""
        if not self._total or self._first is None:
            return None
        first, count = self._first
        if self._count <= count or self._last_line <= first:
            return None
        return max(0.0, self._total - self._count) * (self._last_line - first) / (self._count - count)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()
        else:
            self._print_line()
