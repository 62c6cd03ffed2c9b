"""Faults of JSON are told with their line and column, whichever they are."""

from __future__ import annotations

import json

import pytest

from albert_tf import files, json_text, storage
from albert_tf.errors import InputError
from albert_tf.tasks.catalogue import find_task
from albert_tf.tasks.json_records import read_records
from albert_tf.tasks.text_file import MULTI_LABEL, text_file_task

DEEP, LONG = "[" * 30_000, "9" * 5000


@pytest.mark.parametrize(
    ("text", "reason", "line", "column"),
    [
        ('{"a":\n 1,\n x}', "Expecting property name", 3, 2),
        ("[1]\n[2]", "Extra data", 2, 1),
        ('{"]": "[[\\"",\n"b": ' + DEEP, "too deeply nested", 2, 30_005),
        ('{"a": 1,\n"b": [2, -' + LONG + "]}", "a number has 5000 digits", 2, 11),
        ('{"a": {"b": 1},\n "c": ["b", {"b": 2}], "\\u0061": "b"}', 'an object has the key "a" twice', 2, 24),
        ('[{"b": "a", "a": {"c": ":", "d": [], "c": 1}}, {"x"]', 'an object has the key "c" twice', 1, 38),
        (b"\xef\xbb\xbf[1,\n\n\xc3\xa4\xff]", "the byte 0xff is not UTF-8: save the file as UTF-8", 3, 2),
    ],
)
def test_a_fault_has_its_place(text, reason, line, column):
    with pytest.raises(json_text.JsonFault, match=reason) as caught:
        json_text.parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).endswith(f"(line {line}, column {column})")


def test_values_are_those_of_the_standard_library():
    value = {"ä": [1, 2.5, None, True, "\u2028"], "b": {"c": "[[["}}
    text = json.dumps(value, ensure_ascii=False)
    assert json_text.parse(text) == json_text.parse(text.encode()) == json_text.parse(text.encode("utf-8-sig")) == value


@pytest.mark.parametrize("depth", [10, 900, 30_000])
def test_a_nested_value_is_shown_on_one_line(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    assert len(json_text.shown(value)) <= 61


def test_a_repeated_key_may_be_allowed_and_is_in_files_of_other_programs(tmp_path):
    text = '{"a": 1, "a": 2}'
    (tmp_path / "a.json").write_text(text)
    assert json_text.parse(text, allow_repeated_keys=True) == {"a": 2}
    assert files.read_json(tmp_path / "a.json") == storage.read_json(str(tmp_path / "a.json")) == {"a": 2}


REPEATED = {
    "text_file": '{"text": "x", "text": "y", "label": 1}',
    "afqmc": '{"sentence1": "x", "sentence2": "y", "label": "0", "label": "1"}',
    "race": '{"article": "x", "article": "y"}',
    "dream": '[[["x"], [{"question": "Q?", "question": "R?"}], "1"]]',
    "squad1.1": '{"data": [], "data": []}',
}


@pytest.mark.parametrize("task", REPEATED)
def test_every_reader_refuses_a_key_that_is_there_twice(tmp_path, task):
    path = tmp_path / "a.json"
    path.write_text(REPEATED[task])
    with pytest.raises(InputError, match=r"a\.json.*an object has the key \"\w+\" twice"):
        find_task(task).read(str(path))


@pytest.mark.parametrize("task", ["sst-2", "cola", "conll", "afqmc", "text_file", "race", "dream", "squad2.0"])
@pytest.mark.parametrize("name", ["a.tsv", "a.json", "a.csv"])
def test_every_reader_refuses_nul_with_its_line(tmp_path, task, name):
    path = tmp_path / name
    path.write_bytes(b"sentence\tlabel\nx\0y\t1\n")
    with pytest.raises(InputError, match=rf"{name}, line 2 has a NUL character, which no text has"):
        find_task(task).read(str(path))
    path.write_bytes("sentence\tlabel\n".encode("utf-16-le"))
    with pytest.raises(InputError, match=rf"{name}, line 1 has a NUL character.* is it UTF-16"):
        find_task(task).read(str(path))


@pytest.mark.parametrize(("bad", "reason"), [(DEEP, "too deeply nested"), (LONG, "a number has 5000 digits")])
def test_every_reader_of_files_tells_the_line(tmp_path, bad, reason):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x", "label": 1}\n{"text": ' + bad)
    readers = {
        find_task("text_file").read: rf"a\.jsonl, line 2: not JSON: .*{reason}",
        read_records: rf"a\.jsonl, line 2: not JSON: .*{reason}",
        find_task("afqmc").read: rf"a\.jsonl, line 2: not JSON: .*{reason}",
    }
    for reader, message in readers.items():
        with pytest.raises(InputError, match=message):
            reader(str(path))
    path.write_text('{\n"data": ' + bad)
    readers = {
        find_task("squad1.1").read: rf"a\.jsonl is not a JSON file: .*{reason}.*line 2, column",
        find_task("race").read: rf"a\.jsonl, line 2: not JSON: .*{reason}",
        find_task("dream").read: rf"a\.jsonl, line 2: not JSON: .*{reason}",
        files.read_json: rf"a\.jsonl is not a JSON file: .*{reason}.*line 2, column",
        storage.read_json: rf"a\.jsonl is not a JSON file: .*{reason}.*line 2, column",
    }
    for reader, message in readers.items():
        with pytest.raises(InputError, match=message):
            reader(str(path))


def test_a_cell_with_labels_is_cut_in_the_message(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(f"text\tlabel\nx\t{DEEP}\n")
    with pytest.raises(InputError, match="line 2: the labels .* are not a JSON list: .*too deeply nested") as caught:
        text_file_task(problem=MULTI_LABEL).read(str(path))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("task", ["squad2.0", "cmrc2018", "race", "text_file"])
def test_what_is_not_utf_8_is_told_with_its_line(tmp_path, task, mark):
    path = tmp_path / "a.json"
    path.write_bytes(mark + '{"data":\n[{"title": "ü"}]}'.encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.json, line 2: the byte 0xfc is not UTF-8: save the file as UTF-8"):
        find_task(task).read(str(path))


@pytest.mark.parametrize("indent", [None, 1])
def test_a_value_is_found_by_its_way(indent):
    value = {"a, ]": [1, {"b": "}]\\"}, [[], {}, {"c": {"d": "x"}}]], "": {"e": None}, "f": -1.5}

    def ways(value, steps=()):
        yield steps, value
        for step, inner in (
            value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
        ):
            yield from ways(inner, (*steps, step))

    text = "\n " + json.dumps(value, indent=indent)
    for steps, wanted in ways(value):
        line, column = json_text.place_of(text, steps)
        rest = "\n".join(text.split("\n")[line - 1 :])[column - 1 :]
        assert json.JSONDecoder().raw_decode(rest)[0] == wanted, steps
    assert json_text.place_of(text, ["f", 0]) == json_text.place_of(text, ["f"])
    assert json_text.place_of(text, ["none"]) == json_text.place_of(text, [0]) == (2, 2)
