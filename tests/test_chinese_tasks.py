"""The Chinese tasks in the forms in which their files go round."""

from __future__ import annotations

import collections
import re

import pytest

from albert_tf.errors import InputError
from albert_tf.tasks.catalogue import find_task

REAL = {
    ("afqmc", "pair_zh_afqmc/dev_part1.txt"): {"0": 2033, "1": 967},
    ("cmnli", "nli_zh_cmnli/dev_part1.txt"): {"contradiction": 2651, "entailment": 2856, "neutral": 2493},
    ("chnsenticorp", "cls_zh_chnsenticorp/train.tsv"): {"negative": 4763, "positive": 4773},
    ("chnsenticorp", "cls_zh_chnsenticorp/dev.tsv"): {"negative": 288, "positive": 312},
}
JSON_PAIR = '{"sentence1": "花呗怎么还款", "sentence2": "花呗如何还款", "label": "1"}'


@pytest.fixture
def read(tmp_path):
    def reading(task, content, name="dev.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode("utf-8"))
        return find_task(task).read(str(path))

    return reading


@pytest.mark.parametrize(("task", "name"), REAL)
def test_real_files_have_the_counted_rows_and_labels(shared, task, name):
    path = shared / "data" / name
    examples = find_task(task).read(str(path))
    assert collections.Counter(example.label for example in examples) == REAL[task, name]
    for example, line in zip(examples, path.read_text(encoding="utf-8").split("\n")):
        texts = [example.text_a] if example.text_b is None else [example.text_a, example.text_b]
        assert [*texts, example.label] == line.split("\t")


@pytest.mark.parametrize("name", ["dev.json", "dev.txt"])
def test_lines_of_json_are_known_by_their_content(read, name):
    content = JSON_PAIR + '\n{"sentence1": "还款", "sentence2": "提额", "label": 0, "id": 12}\n'
    examples = read("AFQMC", content, name)
    assert [(e.id, e.text_a, e.text_b, e.label) for e in examples] == [
        ("0", "花呗怎么还款", "花呗如何还款", "1"),
        ("12", "还款", "提额", "0"),
    ]
    assert examples[1].place.endswith(f"{name}, line 2")


def test_csv_has_quotes_and_the_label_in_front(read):
    rows = '"房间很好, 下次再来"', "0", '"他说""不好""\n再见"'
    content = f"label,review\n1,{rows[0]}\n{rows[1]},{rows[2]}\n"
    for text in (content, content.split("\n", 1)[1]):
        examples = read("ChnSentiCorp", text, "train.csv")
        assert [(e.text_a, e.text_b, e.label) for e in examples] == [
            ("房间很好, 下次再来", None, "positive"),
            ('他说"不好"\n再见', None, "negative"),
        ]


def test_a_test_file_has_ids_and_no_labels(read):
    examples = read("cmnli", '{"id": 0, "sentence1": "一", "sentence2": "二"}\n', "test.json")
    assert [(e.id, e.text_a, e.text_b, e.label) for e in examples] == [("0", "一", "二", None)]
    assert [(e.text_a, e.text_b, e.label) for e in read("lcqmc", "一\t二\n三\t四\n")] == [
        ("一", "二", None),
        ("三", "四", None),
    ]


def test_tables_with_a_header_with_the_label_at_either_end(read):
    assert read("lcqmc", "text_a\ttext_b\tlabel\n一\t二\t1\n")[0].label == "1"
    (example,) = read("ChnSentiCorp", "label\ttext_a\n1\t房间很好\n")
    assert (example.text_a, example.label) == ("房间很好", "positive")
    (example,) = read("chnsenticorp", "qid\tlabel\ttext_a\n5\t0\t房间太小\n")
    assert (example.id, example.text_a, example.label) == ("5", "房间太小", "negative")
    (example,) = read("chnsenticorp", "0\t房间太小\n")
    assert (example.text_a, example.label) == ("房间太小", "negative")


def test_rows_without_a_majority_are_left_out_and_counted(read, caplog):
    undecided = '{"sentence1": "一", "sentence2": "二", "label": "-"}\n'
    with caplog.at_level("WARNING", logger="absl"):
        examples = read("cmnli", "\n" + undecided + undecided.replace("-", "neutral") + undecided, "train.json")
        read("cmnli", f"[{undecided.replace('-', 'neutral')},\n\n{undecided}]", "dev.json")
    assert [example.label for example in examples] == ["neutral"]
    assert re.search(r"left out 2 row\(s\) with the label '-', the first in .*train.json, line 2$", caplog.text, re.M)
    assert re.search(r"left out 1 row\(s\) with the label '-', the first in .*dev.json, entry 2$", caplog.text, re.M)


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        ("afqmc", "", "is empty"),
        ("afqmc", "一\t二\t7\n", "line 1: AFQMC needs JSON lines, or 2 column"),
        ("afqmc", "一\t二\t1\n三\t四\t7\n", "line 2: the label is '7', but AFQMC's labels are 0, 1"),
        ("afqmc", "一\t二\t1\n三\t1\n", r"line 2 has 2 column\(s\), and the first line has 3"),
        ("afqmc", JSON_PAIR + "\n{\n", "line 2: not JSON"),
        ("afqmc", JSON_PAIR + "\n[]\n", r"line 2 must be a JSON object, but is \[\]"),
        ("afqmc", JSON_PAIR + '\n{"sentence1": "一"}\n', "line 2 has no 'sentence2'; it has sentence1"),
        ("afqmc", JSON_PAIR.replace('"1"', "[1]"), "line 1: 'label' must be a text or a whole number"),
        ("cmnli", JSON_PAIR, "line 1: the label is '1', but CMNLI's labels are contradiction, entailment, neutral"),
        ("chnsenticorp", "好\tgut\n", "line 1: ChnSentiCorp needs JSON lines, or 1 column"),
    ],
)  # fmt: skip
def test_wrong_files_are_told_with_their_place(read, task, content, message):
    with pytest.raises(InputError, match=message) as caught:
        read(task, content)
    assert "dev.txt" in str(caught.value)
