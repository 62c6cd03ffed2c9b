"""RACE in its original tree and merged, and DREAM's real files."""

from __future__ import annotations

import collections
import json

import pytest

from albert_tf.errors import InputError
from albert_tf.tasks.catalogue import find_task


def article(identifier, answers=("A", "D"), **changes):
    values = {
        "article": f"The passage of {identifier}.\nIt has “two” lines.",
        "questions": [f"What is {number}?" for number in range(len(answers))],
        "options": [[f"{letter}{number}" for letter in "abcd"] for number in range(len(answers))],
        "answers": list(answers),
        "id": identifier,
    }
    return json.dumps({**values, **changes})


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


@pytest.fixture
def tree(tmp_path):
    """RACE's tree: one article a file, in the order of the names `high1`, `middle10`, `middle2`."""
    for level, name in (("high", "1"), ("middle", "2"), ("middle", "10")):
        write(tmp_path / "RACE" / "train" / level / f"{name}.txt", article(f"{level}{name}.txt"))
    return tmp_path


def test_the_tree_is_read_in_a_stable_order_with_levels_and_ids(tree):
    task = find_task("RACE")
    examples = task.read(task.path(str(tree / "RACE"), "train"))
    assert [(example.id, example.group) for example in examples] == [
        ("middle10.txt-0", "middle"),
        ("middle10.txt-1", "middle"),
        ("middle2.txt-0", "middle"),
        ("middle2.txt-1", "middle"),
        ("high1.txt-0", "high"),
        ("high1.txt-1", "high"),
    ]
    example = examples[1]
    assert example.passage == "The passage of middle10.txt.\nIt has “two” lines."
    assert (example.question, example.choices, example.label) == ("What is 1?", ("a1", "b1", "c1", "d1"), 3)
    assert example.place.endswith("middle/10.txt, line 1")
    assert task.read(task.path(str(tree), "train")) == task.read(str(tree / "RACE" / "train"))


def test_one_level_and_merged_lines_are_the_same_questions(tree, tmp_path):
    read = find_task("race").read
    whole = read(str(tree / "RACE" / "train"))
    middle = read(str(tree / "RACE" / "train" / "middle"))
    assert [(e.id, e.group) for e in middle] == [(e.id, e.group) for e in whole[:4]]
    write(tmp_path / "all.jsonl", article("middle10.txt") + "\n\n" + article("high1.txt") + "\r\n")
    merged = read(str(tmp_path / "all.jsonl"))
    assert [(e.id, e.group, e.label) for e in merged] == [
        (e.id, e.group, e.label) for e in whole if e.id.split("-")[0] in ("middle10.txt", "high1.txt")
    ]
    assert merged[2].place.endswith("all.jsonl, line 3")
    write(tmp_path / "list.json", f"[{article('middle10.txt')},\n{article('high1.txt')}]")
    assert [e.id for e in read(str(tmp_path / "list.json"))] == [e.id for e in merged]


def test_an_article_over_several_lines_is_one_article(tmp_path):
    write(tmp_path / "1.txt", json.dumps(json.loads(article("high1.txt")), indent=2))
    assert len(find_task("race").read(str(tmp_path))) == 2


def test_a_test_split_may_lack_answers(tmp_path):
    values = json.loads(article("high1.txt"))
    del values["answers"]
    write(tmp_path / "1.txt", json.dumps(values))
    assert [example.label for example in find_task("race").read(str(tmp_path))] == [None, None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"1\.txt, line 1: not JSON"),
        (article("x")[:-1], r"1\.txt, line 1: not JSON"),
        ('"text"', r"line 1 must be a JSON object, but is \"text\""),
        ('{"article": "A.", "questions": []}', "line 1 has no 'options'; it has article, questions"),
        (article("x", answers=("A", "E")), "question 2: the answer is \"E\", but must be one of A, B, C, D"),
        (article("x", answers=("A", "b")), "question 2: the answer is \"b\""),
        (article("x", questions=["One?"]), r"1 question\(s\), 2 list\(s\) of options and 2 answer\(s\)"),
        (article("x", options=[["a", "b", "c", "d"], ["a"]]), "question 2: the options must be a list of 2 to 26"),
        (article("x", options=[["a", "b", "c", "d"], ["a"] * 27]), "question 2: the options must be a list of 2 to 26"),
        (article("x", options=[["a", "b", "c", "d"], ["a", 7]]), "question 2: a text is needed, but there is 7"),
        (article("x", article=None), "'article' must be a text, but is null"),
        (article("x") + "\n" + "nonsense", "line 2: not JSON"),
        (article("x") + article("y"), r"line 1: not JSON: behind the value another one begins \(several need"),
        (article("x") + "\n" + article("y") + " " + article("z"), "line 2: not JSON: behind the value another one"),
        ("[1] [2]", r"line 1: not JSON: behind the value another one begins .*or one list around all"),
    ],
)  # fmt: skip
def test_bad_articles_are_told_with_file_and_line(tmp_path, content, message):
    write(tmp_path / "middle" / "1.txt", content)
    with pytest.raises(InputError, match=message) as caught:
        find_task("race").read(str(tmp_path))
    assert str(tmp_path / "middle" / "1.txt") in str(caught.value)


def test_a_directory_without_articles_is_told(tmp_path):
    with pytest.raises(InputError, match="has no articles: RACE has directories middle and high"):
        find_task("race").read(str(tmp_path))


@pytest.mark.parametrize(("name", "dialogues", "questions"), [("train", 1500, 2357), ("dev", 400, 652)])
def test_dream(shared, name, dialogues, questions):
    path = shared / "data" / "multiple_choice" / f"dream_{name}_slice.json"
    examples = find_task("dream").read(str(path))
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert (len(raw), len(examples)) == (dialogues, questions)
    assert collections.Counter(len(example.choices) for example in examples) == {3: questions}
    expected = [
        (f"{identifier}-{number}", "\n".join(turns), one["question"], tuple(one["choice"]), one["answer"])
        for turns, several, identifier in raw
        for number, one in enumerate(several)
    ]
    assert [(e.id, e.passage, e.question, e.choices, e.choices[e.label]) for e in examples] == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, "must be a JSON list of dialogues"),
        ([[["A: Hi."], "x"]], r"dialogue 1 must be \[\[turns\], \[questions\], id\]"),
        ([[["A: Hi."], [{"question": "Who?", "choice": ["a", "b"], "answer": "c"}], "5-1"]], "is none of the choices"),
        ([[["A: Hi."], [{"question": "Who?", "answer": "c"}], "5-1"]], r"\(5-1\), question 1 has no 'choice'"),
        ([[[3], [], "5-1"]], "dialogue 1: a text is needed, but there is 3"),
        ([], "has no example"),
    ],
)  # fmt: skip
def test_bad_dialogues_are_told_with_their_number(tmp_path, value, message):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(value))
    with pytest.raises(InputError, match=message):
        find_task("dream").read(str(path))
