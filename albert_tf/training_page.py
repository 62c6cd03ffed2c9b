"""The curves of a training as one HTML file that opens from disk: each number of its logs over the steps.

It needs the lines of the logs alone, no TensorFlow, and loads nothing from anywhere.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf import storage
from albert_tf.inspection.document import document, escaped, fact_list, isolated, table
from albert_tf.inspection.plots import curve

Lines = Sequence[Mapping[str, Any]]  # each with "step" and numbers by name
# Counts, and what others on the page tell already.
_NO_CURVES = ("step", "steps", "epoch", "rows", "pieces", "seconds", "loss_max", "gradient_norm_max")


def write(
    path: str | os.PathLike[str],
    title: str,
    training: Lines,
    evaluation: Lines = (),
    *,
    best_step: int | None = None,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Writes the page of `page`; the file appears complete or not at all.

    Args:
        path: of the file, by custom with the ending .html.
        title, training, evaluation, best_step, facts: as there.

    Raises:
        InputError: the file cannot be written.
    """
    html = page(title, training, evaluation, best_step=best_step, facts=facts)
    storage.write_bytes(os.fspath(path), html.encode("utf-8"))


def page(
    title: str,
    training: Lines,
    evaluation: Lines = (),
    *,
    best_step: int | None = None,
    facts: Mapping[str, Any] | None = None,
) -> str:
    """The HTML of the curves.

    Args:
        title: such as "SST-2, seed 1".
        training: lines of the training log, each with `step`; the further numbers in them are curves, the loss first.
        evaluation: lines of the scores on held-out examples, in the same form.
        best_step: marked in the curves of the evaluation.
        facts: what else to tell, name to value.
    """
    marked = () if best_step is None else (best_step,)
    return document(
        title,
        f"{fact_list(facts or {})}\n{_section('Training', training, ())}"
        f"{_section('Evaluation', evaluation, marked)}{_table(evaluation, best_step)}",
    )


def _section(title: str, lines: Lines, marked: Sequence[float]) -> str:
    curves = []
    for name in _names(lines):
        points = [(float(line["step"]), float(line[name])) for line in lines if _is_finite(line.get(name))]
        if points:
            curves.append(curve(points, name, marked))
    return f'<h2>{escaped(title)}</h2>\n<div class="plots">{"".join(curves)}</div>\n' if curves else ""


def _table(lines: Lines, best_step: int | None) -> str:
    """The numbers of the evaluations."""
    names = _names(lines)
    if not names:
        return ""
    rows = []
    for line in lines:
        cells = "".join(f"<td>{line[name]:.4f}</td>" if _is_number(line.get(name)) else "<td>–</td>" for name in names)
        best = ' class="best"' if line["step"] == best_step else ""
        rows.append(f"<tr{best}><td>{line['step']:,}</td>{cells}</tr>")
    return table(map(isolated, ("step", *names)), rows)


def _names(lines: Lines) -> list[str]:
    """The names of the numbers to show, in the order in which they come, but the loss first."""
    names = dict.fromkeys(name for line in lines for name, value in line.items() if _is_number(value))
    return sorted((name for name in names if name not in _NO_CURVES), key=lambda name: name != "loss")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)
