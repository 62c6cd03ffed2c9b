"""The first row of a file of a person's own, to tell by its names what the file holds before all of it is read."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import zlib
from typing import Any

from albert_tf import json_text, storage
from albert_tf.json_text import JsonFault
from albert_tf.tasks import json_records, rows


def first_row(path: str) -> dict[str, Any]:
    """What is under each name in the first object of a JSON file; of another file the cells of its first line as names.

    No more than the first line is read where that is enough. What is wrong with a file is for its reader to say: then
    there is nothing here.
    """
    try:
        with storage.open_binary(path) as file:
            line = gzip.GzipFile(fileobj=file).readline() if path.endswith(rows.COMPRESSED) else file.readline()
        text = line.removeprefix(codecs.BOM_UTF8).decode("utf-8").strip("\r\n").split("\r", 1)[0]
        if rows.ending(path) in rows.JSON:
            return _first_object(path, text)
        cells = rows.csv_cells(text) if rows.ending(path) == rows.CSV else text.split("\t")
        return dict.fromkeys(cell.strip() for cell in cells)
    except (OSError, EOFError, zlib.error, ValueError, csv.Error):
        return {}


def _first_object(path: str, first_line: str) -> dict[str, Any]:
    with contextlib.suppress(JsonFault):
        value = json_text.parse(first_line)
        if isinstance(value, dict):
            return value
    records = json_records.read_records(path)
    return {**records[0].values} if records else {}
