"""A person's own files: their columns, labels of every kind, quoting, and what is told about faults."""

from __future__ import annotations

import collections
import csv
import gzip
import json
import re

import pytest

from albert_tf.errors import InputError
from albert_tf.tasks.catalogue import find_task
from albert_tf.tasks.choice_file import ChoiceColumns, choice_file_task, usual_choices
from albert_tf.tasks.file_head import first_row
from albert_tf.tasks.labels import find_labels
from albert_tf.tasks.text_file import MULTI_LABEL, REGRESSION, SINGLE_LABEL, TEXT_FILE, Columns, text_file_task


@pytest.fixture
def read(tmp_path):
    def reading(name, content, task=None):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return (task or find_task("text_file")).read(str(path))

    return reading


def values(examples):
    return [(example.text_a, example.text_b, example.label) for example in examples]


@pytest.mark.parametrize("name", ["glue/SST-2/dev.tsv", "glue/QNLI/dev.tsv", "glue/RTE/dev.tsv", "glue/RTE/test.tsv"])
def test_usual_names_are_found(shared, name):
    """The same rows as the task's own reader gives; QNLI's texts have names that leave a choice and are named."""
    path = str(shared / "data" / name)
    columns = Columns("question", "sentence") if "QNLI" in name else None
    task = text_file_task(columns)
    assert values(task.read(path)) == values(find_task(name.split("/")[1]).read(path))


@pytest.mark.parametrize(
    "name", ["pair_zh_afqmc/dev_part1.txt", "nli_zh_cmnli/dev_part1.txt", "cls_zh_chnsenticorp/dev.tsv"]
)
def test_without_a_header_texts_come_first_and_the_label_last(shared, name):
    task = find_task({"p": "afqmc", "n": "cmnli", "c": "chnsenticorp"}[name[0]])
    examples = find_task("text_file").read(str(shared / "data" / name))
    assert values(examples) == values(task.read(str(shared / "data" / name)))
    assert find_labels(find_task("text_file"), examples) == task.labels


def test_a_file_of_choices_is_told_the_flags_for_it(read):
    row = {"passage": "It rained.", "question": "Did it?", "choices": ["yes", "no"], "label": 0}
    with pytest.raises(InputError, match="--choice_columns, --question_column, --passage_column"):
        read("a.jsonl", json.dumps(row))


@pytest.mark.parametrize("name", ["text", "text_file", "Text-File"])
def test_own_files_are_a_task_of_either_name(name):
    assert find_task(name).name == "text_file"
    with pytest.raises(InputError, match=r"there is no task 'nonsense': the tasks are .*, text$"):
        find_task("nonsense")


def test_a_label_in_the_first_column_is_named_by_its_number(shared):
    path = str(shared / "data" / "cls_de_10kgnad" / "test_part1.tsv.gz")
    task = text_file_task(Columns(label=0))
    examples = task.read(path)
    counts = dict(Etat=34, Inland=52, International=76, Kultur=32, Panorama=76, Sport=47, Web=86)
    counts.update(Wirtschaft=67, Wissenschaft=30)
    assert collections.Counter(example.label for example in examples) == counts
    assert find_labels(task, examples) == tuple(sorted(counts))
    with pytest.raises(InputError, match="has 500 labels in 500 rows"):
        find_labels(find_task("text_file"), find_task("text_file").read(path))


def test_any_strings_are_labels(read):
    rows = ["good stuff\tsehr gut!", "bad stuff\tça ne va pas", "so so\tmeh"]
    examples = read("train.tsv", "text\tlabel\n" + "\n".join(rows) + "\n")
    assert values(examples) == [(*row.split("\t")[:1], None, row.split("\t")[1]) for row in rows]
    task = find_task("text_file")
    labels = find_labels(task, examples)
    assert labels == ("meh", "sehr gut!", "ça ne va pas")
    assert task.head_config(labels).labels == labels


def test_whole_numbers_are_sorted_by_value(read):
    examples = read("train.tsv", "text\tlabel\n" + "".join(f"t{n}\t{n}\n" for n in (10, 2, 1, -1)))
    assert find_labels(find_task("text_file"), examples) == ("-1", "1", "2", "10")


def test_named_columns_and_numbers(read):
    content = "code\tutter\tanswer\tclass of it\n7\tHello\tHi\tgreeting\n8\tBye\tCiao\tfarewell\n"
    columns = Columns("utter", "answer", "class of it", "code")
    (first, second) = read("a.tsv", content, text_file_task(columns))
    assert (first.id, first.text_a, first.text_b, first.label) == ("7", "Hello", "Hi", "greeting")
    assert (second.id, second.place.split(", ")[-1]) == ("8", "line 3")
    numbers = text_file_task(Columns("1", 2, "3", 0, has_header=True))
    assert [(e.id, e.text_a, e.text_b, e.label) for e in read("a.tsv", content, numbers)] == [
        ("7", "Hello", "Hi", "greeting"),
        ("8", "Bye", "Ciao", "farewell"),
    ]


def test_a_file_without_the_labels_column_or_with_an_empty_one_is_unlabelled(read):
    task = text_file_task(Columns("text", label="intent"))
    for content in ("text\nHello\n", "text\tintent\nHello\t\n"):
        assert values(read("test.tsv", content, task)) == [("Hello", None, None)]
    numbers = text_file_task(Columns(0, 1, 2))
    assert values(read("test.tsv", "Hello\tthere\n", numbers)) == [("Hello", "there", None)]


def test_texts_alone_stay_line_by_line(read, caplog):
    with caplog.at_level("WARNING", logger="absl"):
        examples = read("test.txt", "one\n\nthree\n\n")
    assert [example.text_a for example in examples] == ["one", "", "three"]
    assert "1 example(s) have an empty text" in caplog.text


def test_blank_rows_of_a_table_are_left_out_and_counted(read, caplog):
    for name, blank in (("a.csv", "\n"), ("b.csv", ",\n"), ("c.tsv", "\t\n")):
        separator = "," if name.endswith("csv") else "\t"
        with caplog.at_level("WARNING", logger="absl"):
            examples = read(name, f"text{separator}label\none{separator}a\n{blank}two{separator}b\n")
        assert [example.label for example in examples] == ["a", "b"]
        assert re.search(
            f"{name}: left out 1 row.s. without content, the first in .*{name}, line 3$", caplog.text, re.M
        )
        assert examples[1].place.endswith("line 4")


def test_csv_is_what_the_csv_module_writes(read, tmp_path):
    rows = [('He said "no", twice', "a"), ("two\nlines\r\nand more", "b, c"), ("x" * 300_000, "d"), (" spaces ", "é")]
    with open(tmp_path / "train.csv", "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    examples = find_task("text_file").read(str(tmp_path / "train.csv"))
    assert [(example.text_a, example.label) for example in examples] == rows
    assert [example.place.split("line ")[-1] for example in examples] == ["2", "3", "6", "7"]
    with open(tmp_path / "train.csv", "rb") as file, gzip.open(tmp_path / "train.csv.gz", "wb") as packed:
        packed.write(file.read())
    assert values(find_task("text_file").read(str(tmp_path / "train.csv.gz"))) == values(examples)


def test_csv_with_semicolons(read):
    assert values(read("a.csv", 'text;label\n"a; b";x\nc;y\n')) == [("a; b", None, "x"), ("c", None, "y")]


def test_tsv_has_no_quoting_and_a_byte_order_mark_is_no_text(read):
    content = b'\xef\xbb\xbftext\tlabel\r\n"open\ta\r\n'
    assert values(read("a.tsv", content)) == [('"open', None, "a")]


def test_json_lines(read):
    lines = [{"text": "One", "label": 1}, {"label": True, "text": "Two", "id": "x7"}, {"text": "Three", "label": "é"}]
    examples = read("a.jsonl", "\n".join(json.dumps(line) for line in lines))
    assert [(e.id, e.text_a, e.label) for e in examples] == [
        ("0", "One", "1"),
        ("x7", "Two", "true"),
        ("2", "Three", "é"),
    ]
    listed = read("a.json", json.dumps(lines, indent=1))
    assert values(listed) == values(examples)
    assert values(read("a.jsonl", '{"text": "One"}\n{"text": "Two"}')) == [("One", None, None), ("Two", None, None)]


def test_regression(read):
    task = text_file_task(problem=REGRESSION)
    assert values(read("a.tsv", "text\tscore\ngood\t4.5\nbad\t-1e-1\n", task)) == [
        ("good", None, 4.5),
        ("bad", None, -0.1),
    ]
    assert values(read("a.jsonl", '{"text": "nil", "label": 0}', task)) == [("nil", None, 0.0)]
    assert task.metrics[0] == "pearson"
    assert (task.head_config().num_labels, task.head_config().problem) == (1, REGRESSION)
    for label in ("much", "nan", "inf"):
        with pytest.raises(InputError, match=f"line 2: the label is '{label}', but must be a number"):
            read("a.tsv", f"text\tscore\ngood\t{label}\n", task)


def test_several_labels(read):
    task = text_file_task(problem=MULTI_LABEL, separator="|")
    expected = [("one", None, ("b", "a")), ("two", None, ()), ("three", None, ("c",))]
    tsv = read("a.tsv", 'text\tlabels\none\t b | a|b\ntwo\t\nthree\t["c"]\n', task)
    assert values(tsv) == expected
    lines = [{"text": text, "labels": list(labels)} for text, _, labels in expected]
    assert values(read("a.jsonl", "\n".join(map(json.dumps, lines)), task)) == expected
    assert find_labels(task, tsv) == ("a", "b", "c")
    assert task.head_config(("a", "b", "c")).problem == MULTI_LABEL
    with pytest.raises(InputError, match=r"line 2: the labels '\[1' are not a JSON list"):
        read("a.tsv", "text\tlabels\none\t[1\n", task)


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("a.tsv", "", None, "is empty"),
        ("a.csv", "\n", None, "is empty"),
        ("a.csv", ",\n", None, "has rows without content alone"),
        ("a.tsv", "\t\n", None, "has rows without content alone"),
        ("a.tsv", "text\tlabel\n", None, "has a header and no rows"),
        ("a.tsv", "text\tlabel\nx\ty\tz\n", None, r"line 2 has 3 column\(s\), and the first line has 2"),
        ("a.csv", 'text,label\n"a\nb",y\nc\n', None, r"line 4 has 1 column\(s\), and the first line has 2"),
        ("a.csv", 'text,label\nx,y\n"open,y\nz,y\n', None, "line 3: not CSV: .* quote"),
        ("a.tsv", "text\tlabel\nx\t1\ny\t\n", None, "line 3: there is no label, and other rows of the file have one"),
        ("a.tsv", "text\tlabel\nx\t1\n", Columns("body"), r"no column 'body' for the text: it has 2 .*\(text, label\)"),
        ("a.tsv", "text\tlabel\nx\t1\n", Columns(5), "no column 5 for the text"),
        ("a.tsv", "text\ttext\tlabel\nx\ty\t1\n", Columns("text"), "line 1: the column 'text' is there twice"),
        ("a.tsv", "a\tb\tc\td\n", None, r"has 4 column\(s\) \(no header\), and which of them are texts cannot be told"),
        ("a.tsv", b"text\tlabel\n\xff\t1\n", None, "line 2: the byte 0xff is not UTF-8"),
        ("a.tsv.gz", b"text\tlabel\n", None, "is not a whole gzip file"),
        ("a.jsonl", '{"text": "x"}\n{"text": 1.5}\n', None, "line 2: a text is needed, but there is 1.5"),
        ("a.jsonl", '{"text": "x"}\n{"txt": "y"}\n', None, "line 2: a text is needed, but there is null"),
        ("a.jsonl", '{"text": "x", "label": ["a"]}\n', None, r"line 1: one label is needed.*is it a multi-label task"),
        ("a.jsonl", '{"text": "x"\n', None, "line 1: not JSON"),
        ("a.json", '[{"text": "x"}, 3]', None, "entry 2 must be a JSON object, but is 3"),
        ("a.jsonl", '["x", "a"]\n["y", "b"]\n', None, r'line 1 must be a JSON object, but is \["x", "a"\]: each'),
        ("a.jsonl", '[{"text": "x"}]\n[{"text": "y"}]\n', None, r"line 1 must be a JSON object, .* such as {.text.: …"),
        ("a.json", '[{"text": "x"},\n{"text": "y"}] 3\n', None, "line 2: not JSON: behind the value another one"),
    ],
)  # fmt: skip
def test_faults_are_told_with_file_and_line(read, name, content, columns, message):
    with pytest.raises(InputError, match=message) as caught:
        read(name, content, text_file_task(columns))
    assert name in str(caught.value)


def test_what_may_be_meant_so_is_warned_of_with_a_count(read, caplog):
    with caplog.at_level("WARNING", logger="absl"):
        examples = read("a.jsonl", '{"id": 3, "text": 1984}\n{"id": 4, "text": "x"}\n{"id": 3, "text": -2}\n')
        assert [(example.id, example.text_a) for example in examples] == [("3", "1984"), ("4", "x"), ("3", "-2")]
        assert "a.jsonl: 2 row(s) have a number where a text is expected, the first in" in caplog.text
        assert "a.jsonl: 1 example(s) have the id of one before, the first '3' in" in caplog.text
        caplog.clear()
        (example,) = read("b.jsonl", '{"question": 7, "options": [1997, 1998], "answer": 1998}', choice_file_task(ANY))
        assert (example.question, example.choices, example.label) == ("7", ("1997", "1998"), 1)
        assert caplog.text.count("b.jsonl: 1 row(s) have a number where a text is expected") == 2
        caplog.clear()
        read("c.tsv", "text\tlabel\tmore\tmore\nx\t1\ty\tz\n")
        assert "c.tsv, line 1: the header has more than once: more" in caplog.text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "text\tText\tlabel\nx\ty\t1\n"),
        ("a.csv", "text,label,label\nx,1,2\n"),
        ("a.tsv", "id\tid\ttext\n1\t2\tx"),
    ],
)
def test_a_column_that_is_there_twice_is_refused_where_it_is_needed(read, name, content):
    with pytest.raises(InputError, match=r"line 1: the column '\w+' is there twice"):
        read(name, content)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.tsv.gz"])
def test_line_ends_of_old_macs(read, name):
    content = b"text,label\rx,1\ry,0\r" if "csv" in name else b"text\tlabel\rx\t1\ry\t0\r"
    examples = read(name, gzip.compress(content) if "gz" in name else content)
    assert values(examples) == [("x", None, "1"), ("y", None, "0")]
    assert examples[1].place.endswith("line 3")


def test_a_header_with_unusual_names_is_not_taken_for_a_row(read):
    rows = "".join(f"sentence {number}\t{'good' if number % 2 else 'bad'}\n" for number in range(10))
    with pytest.raises(InputError, match="line 1: the label 'mood' is in no other row: if the line is a header"):
        read("a.tsv", "words\tmood\n" + rows)
    assert len(read("a.tsv", rows)) == 10
    assert len(read("a.tsv", "words\tmood\n" + rows, text_file_task(Columns(has_header=True)))) == 10
    assert len(read("a.tsv", "words\tmood\n" + rows, text_file_task(Columns("words", label="mood")))) == 10
    assert len(read("a.tsv", "words\tmood\n" + rows, text_file_task(Columns(has_header=False)))) == 11


FEW = "good film\tyes\nbad film\tno\nfine film\tyes\npoor film\tno\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("phrase\tmood\n" + FEW, SINGLE_LABEL),
        (2 * ("phrase\tmood\n" + FEW), SINGLE_LABEL),
        ("phrase\tmood\n" + FEW.replace("yes", "yes,loud") * 3, MULTI_LABEL),
    ],
)
def test_what_may_be_a_header_in_a_small_file_is_warned_of(read, caplog, content, problem):
    with caplog.at_level("WARNING", logger="absl"):
        assert read("a.tsv", content, text_file_task(problem=problem))[0].text_a == "phrase"
    assert "a.tsv, line 1: the label 'mood' is in no other row, and each of the others is in several" in caplog.text
    assert "or say --has_header; if it is not, say --nohas_header" in caplog.text


@pytest.mark.parametrize("content", ["so so\tmeh\n" + FEW[: FEW.index("fine")], "so so\tno\n" + FEW, 5 * FEW])
def test_a_first_row_like_others_is_not_warned_of(read, caplog, content):
    with caplog.at_level("WARNING", logger="absl"):
        read("a.tsv", content)
        read("b.tsv", "so so\tmeh\n" + FEW, text_file_task(Columns(has_header=False)))
    assert not caplog.text


def test_a_word_above_numbers_is_told_as_a_header(read):
    task = text_file_task(problem=REGRESSION)
    for content in ("phrase\tstars\nfine\t4.5\npoor\t1\n", 2 * "phrase\tstars\nfine\t4.5\n"):
        with pytest.raises(InputError, match='line 1: the label is "stars", and those below are numbers: if the line'):
            read("a.tsv", content, task)
    with pytest.raises(InputError, match="line 1: the label is 'much', but must be a number$"):
        read("a.tsv", "fine\tmuch\npoor\tlittle\n", task)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
@pytest.mark.parametrize("header", ["text\tlabel\n", "phrase\tlabel\n"])
def test_a_header_that_comes_again_is_left_out_and_counted(read, caplog, name, header):
    content = 2 * (header + FEW)
    with caplog.at_level("WARNING", logger="absl"):
        examples = read(name, content.replace("\t", ",") if name == "a.csv" else content)
    assert [example.label for example in examples] == 2 * ["yes", "no", "yes", "no"]
    assert re.search(rf"left out 1 row.s. that repeat the header, the first in .*{name}, line 6$", caplog.text, re.M)
    assert examples[4].place.endswith("line 7")


def test_texts_alone_may_say_what_the_header_says(read):
    assert [example.text_a for example in read("a.tsv", "text\nold\ntext\nnew\n")] == ["old", "text", "new"]


def test_languages_are_labels_and_no_header(read):
    assert values(read("a.tsv", "selamat pagi\tid\nguten Morgen\tde\n"))[0] == ("selamat pagi", None, "id")


def test_one_usual_name_makes_no_header_when_its_row_looks_like_the_others(read, caplog):
    labels = ("text", "code", "other", "code", "text")
    rows = "".join(f"part {number}\t{label}\n" for number, label in enumerate(labels))
    with caplog.at_level("WARNING", logger="absl"):
        assert len(read("a.tsv", rows)) == 5
        assert "a.tsv, line 1 is taken for a row and not for a header, with 'text' as the only" in caplog.text
        assert "--has_header" in caplog.text
        caplog.clear()
        assert len(read("b.tsv", f"words\tlabel\n{rows}")) == 5
        assert "b.tsv, line 1 is taken for a header and not for a row" in caplog.text
        assert "--nohas_header" in caplog.text
        caplog.clear()
        assert len(read("c.tsv", rows, text_file_task(Columns(0, label=1)))) == 5
        for sure in (f"text\tlabel\n{rows}", "id\ttext\n1\tx\n", "text\nx\n"):
            assert read("d.tsv", sure)[0].text_a in ("part 0", "x")
        assert len(read("e.tsv", f"words\tlabel\n{rows}", text_file_task(Columns("words")))) == 5
    assert caplog.text.count("is taken for") == 1


def test_a_column_number_is_no_name_of_a_header(read):
    assert len(read("a.tsv", "0\tfew\n7\tmany\n", text_file_task(Columns(1, label="0")))) == 2


def test_the_columns_in_use_are_told(read, tmp_path):
    task = text_file_task(Columns("utter", label="intent"))
    read("a.tsv", "code\tutter\tintent\tmore\n7\tHello\tx\t.\n", task)
    read("b.tsv", "utter\tlabel\nHello\tx\n", task)
    assert task.columns == {
        str(tmp_path / "a.tsv"): "the text is column 'utter', the label is column 'intent', not used: 'code', 'more'",
        str(tmp_path / "b.tsv"): "the text is column 'utter', there is no column 'intent' for the label, "
        "not used: 'label'",
    }
    plain = text_file_task()
    read("c.csv", "Hello,there,x\n", plain)
    assert plain.columns[str(tmp_path / "c.csv")] == (
        "the text is column 0, the second text is column 1, the label is column 2, all are used; the file has no header"
    )
    choices = choice_file_task(CHOICES)
    read("d.tsv", CHOICE_HEADER + "P.\tQ?\tx\ty\tz\t0\n", choices)
    assert choices.columns[str(tmp_path / "d.tsv")].startswith(
        "the passage is column 'passage', the question is column 'question', the choice A is column 'one', "
    )


def test_one_label_alone_cannot_be_learned(read):
    with pytest.raises(InputError, match=r"has 1 label\(s\) \(a\), and at least 2 must be told apart"):
        find_labels(find_task("text_file"), read("a.tsv", "text\tlabel\nx\ta\ny\ta\n"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"problem": "ranking"}, "the problem is 'ranking', but must be one of single_label_classification"),
        ({"problem": REGRESSION, "labels": ("a",)}, "a regression has numbers and no labels"),
        ({"problem": MULTI_LABEL, "separator": ""}, "the separator between labels is empty"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        text_file_task(**settings)


CHOICES = ChoiceColumns(("one", "two", "three"))
ANY = ChoiceColumns()
CHOICE_HEADER = "passage\tquestion\tone\ttwo\tthree\tlabel\n"


@pytest.mark.parametrize(
    ("label", "columns", "index"),
    [
        ("B", CHOICES, 1),
        ("0", CHOICES, 0),
        ("3", ChoiceColumns(CHOICES.choices, first_label=1), 2),
        ("three", CHOICES, 2),
        ("y", CHOICES, 1),
        ("", CHOICES, None),
    ],
)
def test_choices_in_columns(read, label, columns, index):
    (example,) = read("a.tsv", CHOICE_HEADER + f"P.\tQ?\tx\ty\tz\t{label}\n", choice_file_task(columns))
    assert (example.passage, example.question, example.choices) == ("P.", "Q?", ("x", "y", "z"))
    assert (example.id, example.label) == ("0", index)


def test_questions_may_have_fewer_choices_than_columns(read):
    examples = read("a.tsv", CHOICE_HEADER + "P.\tQ?\tx\ty\t\t1\nP.\tQ?\tx\ty\tz\t2\n", choice_file_task(CHOICES))
    assert [(example.choices, example.label) for example in examples] == [(("x", "y"), 1), (("x", "y", "z"), 2)]


def test_choices_in_a_list_of_json(read):
    task = choice_file_task(ChoiceColumns(("options",), label="answer"))
    line = {"id": "q1", "question": "How many?", "options": ["1997", "1998"], "answer": "1998"}
    (example,) = read("a.jsonl", json.dumps(line), task)
    assert (example.id, example.passage, example.question) == ("q1", "", "How many?")
    assert (example.choices, example.label) == (("1997", "1998"), 1)


@pytest.mark.parametrize(
    ("row", "columns", "message"),
    [
        ("P.\tQ?\tx\ty\tz\t3", CHOICES, "the right choice is \"3\", but must be a letter from A to C, a number from 0"),
        ("P.\tQ?\tx\ty\tz\t0", ChoiceColumns(CHOICES.choices, first_label=1), "a number from 1 to 3"),
        ("P.\tQ?\tx\ty\tz\tD", CHOICES, "line 2: the right choice is \"D\""),
        ("P.\tQ?\tx\t\t\t0", CHOICES, "line 2: 2 to 26 texts to choose from are needed"),
        ("P.\tQ?\tx\ty\tz\t0", ChoiceColumns(("one", "four")), "no column 'four' for a choice"),
    ],
)  # fmt: skip
def test_faults_of_choices_are_told(read, row, columns, message):
    with pytest.raises(InputError, match=message):
        read("a.tsv", CHOICE_HEADER + row + "\n", choice_file_task(columns))


EVEN = ["2", "4", "6"]
WORDS = ["x", "y", "z"]


@pytest.mark.parametrize(
    ("rows", "indices"),
    [
        ([(EVEN, "4"), (EVEN, "2")], [1, 0]),  # there is no choice 4, so these are texts
        ([(EVEN, "2"), (WORDS, "1")], [2, 1]),  # "1" is no text, so these are numbers
        ([(EVEN, 2), (WORDS, 1)], [2, 1]),
        ([(["B", "A"], "A"), (WORDS, "C")], [0, 2]),
        ([(["B", "A"], "A"), (WORDS, "z")], [1, 2]),
        ([(WORDS, "1"), (WORDS, "z"), (["1", "1"], "1")], [1, 2, 1]),  # each has one meaning, or two that are equal
    ],
)
def test_labels_that_can_be_numbers_or_texts_are_as_the_others(read, rows, indices):
    content = "".join(json.dumps({"question": "Q?", "choices": of, "label": label}) + "\n" for of, label in rows)
    assert [example.label for example in read("a.jsonl", content, choice_file_task(ANY))] == indices


@pytest.mark.parametrize("more", ["", "Q?\t4\tx\ty\t4\nQ?\tx\ty\tz\t1\n"])
def test_labels_that_can_be_numbers_or_texts_are_refused_where_nothing_tells(read, more):
    content = "question\tA\tB\tC\tlabel\nQ?\t1\t3\t5\t1\n" + more
    with pytest.raises(
        InputError, match='a.tsv, line 2: the right choice is "1", which names choice B and .* choice A'
    ):
        read("a.tsv", content, choice_file_task(ANY))
    assert read("a.tsv", content, choice_file_task(ChoiceColumns(first_label=0)))[0].label == 1
    with pytest.raises(InputError, match="must be 0 or 1"):
        choice_file_task(ChoiceColumns(first_label=2))


def test_a_column_that_is_named_is_nothing_else(read):
    content = "text\tchoice_1\tchoice_2\tchoice_3\tlabel\nQ?\tx\ty\tz\t0\n"
    (example,) = read("a.tsv", content, choice_file_task(ChoiceColumns(question="text")))
    assert (example.passage, example.question, example.choices) == ("", "Q?", ("x", "y", "z"))
    (example,) = read("a.tsv", content, choice_file_task(ChoiceColumns(question="text", passage="choice_3")))
    assert (example.passage, example.question, example.choices) == ("z", "Q?", ("x", "y"))
    content = "premise\ttext\tlabel\na\tb\tc\n"
    assert values(read("a.tsv", content, text_file_task(Columns(text_b="text")))) == [("a", "b", "c")]
    assert values(read("a.tsv", "class\ttext\na\tb\n", text_file_task(Columns("class")))) == [("a", None, None)]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (text_file_task(Columns("one", label="one")), "column 'one' is named twice, by --text_column and --label"),
        (text_file_task(Columns("one", "2", label="5")), "column 'one' is named twice, by --text_column and --text_b"),
        (choice_file_task(ChoiceColumns(("one", "one"))), "column 'one' is named twice, by --choice_columns: each"),
        (choice_file_task(ChoiceColumns(CHOICES.choices, label="three")), "by --choice_columns and --label_column"),
    ],
)  # fmt: skip
def test_one_column_cannot_be_two_things(read, task, message):
    with pytest.raises(InputError, match=message):
        read("a.tsv", CHOICE_HEADER + "P.\tQ?\tx\ty\tz\t0\n", task)


CHOICES_BY_USUAL_NAMES = {
    "list.jsonl": '{"question": "Q?", "Options": ["x", "y"], "answer": "B"}',
    "entries.json": '[\n{"question": "Q?", "choices": ["x", "y"], "label": 1}\n]',
    "keys.jsonl": '{"question": "Q?", "option_b": "y", "option_a": "x", "label": "option_b"}',
    "from_one.tsv": "question\tChoice_2\tChoice_1\tlabel\nQ?\ty\tx\tB",
    "from_zero.csv": 'question,ending0,ending1,label\n"Q?",x,y,1',
    "letters.csv": "question,A,B,answer\nQ?,x,y,B",
    "squeezed.tsv": "question\tanswerA\tanswerB\tlabel\nQ?\tx\ty\t1",
}


@pytest.mark.parametrize("name", CHOICES_BY_USUAL_NAMES)
@pytest.mark.parametrize("is_compressed", [False, True])
def test_choices_are_found_by_usual_names(read, tmp_path, name, is_compressed):
    content = CHOICES_BY_USUAL_NAMES[name].encode("utf-8-sig")
    if is_compressed:
        name, content = f"{name}.gz", gzip.compress(content)
    (example,) = read(name, content, choice_file_task(ANY))
    assert (example.question, example.choices, example.label) == ("Q?", ("x", "y"), 1)
    assert len(usual_choices(first_row(str(tmp_path / name)))) == (1 if name.startswith(("list", "entries")) else 2)


@pytest.mark.parametrize(
    "content",
    [
        "text\tlabel\na\tb\n",
        "A\tB\tlabel\na\tb\tc\n",  # a pair of texts: there is nothing that is asked
        "question\tchoice_1\tlabel\na\tb\tc\n",
        "question\tchoice_1\tchoice_3\na\tb\tc\n",
        "question\tchoice_2\tchoice_3\na\tb\tc\n",
        "options\tquestion\na\tb\n",  # a list is one of JSON
        "\xff\n",
        "",
    ],
)
def test_other_names_are_no_choices(tmp_path, content):
    (tmp_path / "a.tsv").write_bytes(content.encode("latin-1"))
    assert usual_choices(first_row(str(tmp_path / "a.tsv"))) == ()
    (tmp_path / "a.csv").write_bytes(content.replace("\t", ",").encode("latin-1"))
    assert usual_choices(first_row(str(tmp_path / "a.csv"))) == ()


@pytest.mark.parametrize("line", ['{"options": "x"}', '["x"]', "{", "x" * 200_000, "[]", " "])
def test_json_without_lists_is_no_choices(tmp_path, line):
    (tmp_path / "a.jsonl").write_text(line)
    assert usual_choices(first_row(str(tmp_path / "a.jsonl"))) == ()


@pytest.mark.parametrize("task", [TEXT_FILE, choice_file_task(ANY)])
def test_an_empty_list_of_json_is_told(read, task):
    with pytest.raises(InputError, match="a.json has no entries"):
        read("a.json", "[]", task)


def test_choices_need_columns_and_something_to_ask(read):
    with pytest.raises(InputError, match="a.tsv has no columns of choices with usual names, .* name two or more"):
        read("a.tsv", "question\tone\ttwo\nx\ty\tz\n", choice_file_task(ANY))
    with pytest.raises(InputError, match="neither a passage nor a question"):
        read("a.tsv", "one\ttwo\nx\ty\n", choice_file_task(ChoiceColumns(("one", "two"))))


def test_a_label_that_is_not_a_number_is_a_missing_one(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text('{"text": "a", "label": 1}\n{"text": "b", "label": NaN}\n')
    with pytest.raises(InputError, match=r"train.jsonl, line 2: there is no label, and other rows"):
        TEXT_FILE.read(str(path))


def test_many_numbers_are_not_taken_for_labels(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("text,score\n" + "".join(f"t,{number / 7}\n" for number in range(40)))
    with pytest.raises(InputError, match=r"40 labels in 40 rows.*numbers are learned with --problem_type=regression"):
        find_labels(TEXT_FILE, TEXT_FILE.read(str(path)))
