"""The scores of several seeds as one HTML file that opens from disk, with links to the page of each.

It needs the report of `finetuning_seeds` alone, no TensorFlow, and loads nothing from anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from albert_tf import storage
from albert_tf.inspection.document import document, escaped, fact_list, isolated, table

_STATISTICS = ("median", "mean", "std", "min", "max")


def write(path: str | os.PathLike[str], title: str, report: Mapping[str, Any], pages: Mapping[str, str]) -> None:
    """Writes the page of `page`; the file appears complete or not at all.

    Args:
        path: of the file, by custom with the ending .html.
        title, report, pages: as there.

    Raises:
        InputError: the file cannot be written.
    """
    storage.write_bytes(os.fspath(path), page(title, report, pages).encode("utf-8"))


def page(title: str, report: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    """The HTML of a row for each seed, the best one marked, and one for each statistic over them.

    Args:
        title: such as "RTE, 5 seeds".
        report: has the `metric` and the `best_seed` that it chose, the `scores` of each seed, and their `summary`.
        pages: seed, as in `scores`, to the address of its own page, from this one's directory.
    """
    columns = [(split, metric) for split, of in report["summary"].items() for metric in of]
    best = str(report["best_seed"])
    rows = []
    for seed, scores in report["scores"].items():
        values = [scores.get(split, {}).get(metric) for split, metric in columns]
        rows.append(_row(f'<a href="{escaped(pages[seed])}">seed {escaped(seed)}</a>', values, seed == best))
    for name in _STATISTICS if columns else ():
        rows.append(_row(name, [report["summary"][split][metric][name] for split, metric in columns]))
    told: dict[str, Any] = {"best seed": best}
    for split, of in report["summary"].items():
        if report["metric"] in of:
            told[f"{split} {report['metric']}, median"] = of[report["metric"]]["median"]
    heads = ["", *(isolated(f"{split} {metric}") for split, metric in columns)]
    return document(title, f"{fact_list(told)}\n<h2>Scores</h2>\n{table(heads, rows)}")


def _row(head: str, values: list[float | None], is_best: bool = False) -> str:
    """HTML of a row; a type of entities that a seed's run does not meet has no score."""
    cells = "".join("<td>–</td>" if value is None else f"<td>{value:.4f}</td>" for value in values)
    names = ' class="best"' if is_best else ""
    return f"<tr{names}><th>{head}</th>{cells}</tr>"
