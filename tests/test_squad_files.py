"""Reading SQuAD files of every shape, the real ones, and ones with faults."""

from __future__ import annotations

import json
import logging as python_logging

import pytest
from absl import logging

from albert_tf.errors import InputError
from albert_tf.tasks.examples import GoldAnswer
from albert_tf.tasks.squad_files import locate, read_questions

REAL = [  # questions, without an answer, answers that do not stand at their place
    ("train_slice-v2.0.json", 2805, 1527, 0),
    ("train_slice-v1.1.json", 1278, 0, 0),
    ("dev_slice-v2.0.json", 1260, 628, 0),
    ("dev_slice-v1.1.json", 632, 0, 0),
    ("xquad.en.json", 1080, 0, 0),
    ("xquad.de.json", 1190, 0, 0),
    ("xquad.zh.json", 1190, 0, 0),
    ("cmrc2018_trial.zh.json", 1002, 0, 5),
    ("cmrc2018_dev_part1.zh.json", 2402, 0, 159),
    ("jsquad_valid_part1.ja.json", 3972, 0, 0),
]


@pytest.fixture
def warnings(caplog):
    """The warnings so far, one text for all."""
    logger = logging.get_absl_logger()
    logger.addHandler(caplog.handler)
    yield lambda: "\n".join(r.getMessage() for r in caplog.records if r.levelno >= python_logging.WARNING)
    logger.removeHandler(caplog.handler)


@pytest.mark.parametrize(("name", "questions", "impossible", "misplaced"), REAL)
def test_real_files(shared, warnings, name, questions, impossible, misplaced):
    examples = read_questions(str(shared / "data/squad" / name))
    assert len(examples) == len({example.id for example in examples}) == questions
    assert sum(example.is_impossible for example in examples) == impossible
    answers = [(example.context, answer) for example in examples for answer in example.answers]
    assert sum(c[a.start : a.start + len(a.text)] != a.text or a.start < 0 for c, a in answers) == misplaced
    assert (f"{misplaced} of {len(answers)} answers" in warnings()) == bool(misplaced)
    located = [locate(context, answer) for context, answer in answers]
    for (context, answer), span in zip(answers, located):
        assert span is None or context[slice(*span)] in (answer.text, answer.text.strip())
    assert located.count(None) <= misplaced


def written(tmp_path, value) -> str:
    path = tmp_path / "questions.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return str(path)


def squad(*qas, context="  Paris is big.") -> dict:
    return {"version": "v2.0", "data": [{"title": "Paris", "paragraphs": [{"context": context, "qas": list(qas)}]}]}


def test_nothing_is_stripped(tmp_path):
    question = {"id": "q1", "question": " What? ", "answers": [{"text": "Paris", "answer_start": 2}]}
    [example] = read_questions(written(tmp_path, squad(question)))
    assert (example.id, example.question, example.context) == ("q1", " What? ", "  Paris is big.")
    assert example.answers == (GoldAnswer("Paris", 2),)
    assert locate(example.context, example.answers[0]) == (2, 7)
    assert example.title == "Paris"
    assert "questions.json" in example.place and "qas[0]" in example.place


def test_answers_none_unknown_and_several(tmp_path):
    answer = {"text": "big", "answer_start": 11}
    examples = read_questions(
        written(
            tmp_path,
            squad(
                {"id": "1", "question": "?", "answers": [], "is_impossible": True, "plausible_answers": [answer]},
                {"id": "2", "question": "?", "is_impossible": True},
                {"id": 3, "question": "?"},
                {"id": "4", "question": "?", "answers": [answer, answer], "is_impossible": False},
            ),
        )
    )
    assert [example.answers for example in examples] == [(), (), None, (GoldAnswer("big", 11),) * 2]
    assert [example.id for example in examples] == ["1", "2", "3", "4"]
    assert [example.is_impossible for example in examples] == [True, True, False, False]


def test_a_byte_order_mark_and_a_lone_surrogate(tmp_path):
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(squad({"id": "1", "question": "\ud83d"})).encode())
    assert read_questions(str(path))[0].question == "\ud83d"


def test_the_layout_of_cmrc_2018(tmp_path, warnings):
    root = [
        {
            "context_id": "TRIAL_1",
            "context_text": "北京是首都。",
            "title": "北京",
            "qas": [
                {"query_id": "TRIAL_1_QUERY_0", "query_text": "首都？", "answers": ["北京", "是首都", "上海"]},
                {"query_id": "TRIAL_1_QUERY_1", "query_text": "？"},
            ],
        }
    ]
    first, second = read_questions(written(tmp_path, root))
    assert first.answers == (GoldAnswer("北京", 0), GoldAnswer("是首都", 2), GoldAnswer("上海", -1))
    assert (first.id, first.question, first.context, first.title) == (
        "TRIAL_1_QUERY_0",
        "首都？",
        "北京是首都。",
        "北京",
    )
    assert second.answers is None
    assert "1 of 3 answers" in warnings()


def test_an_answer_is_found_again_nearby():
    context = "red, blue, red and green"
    assert locate(context, GoldAnswer("red", 11)) == (11, 14)
    assert locate(context, GoldAnswer("red", 10)) == (11, 14)
    assert locate(context, GoldAnswer("red", 12)) == (11, 14)
    assert locate(context, GoldAnswer("red", 1)) == (0, 3)
    assert locate(context, GoldAnswer("red", -1)) == (0, 3)
    assert locate(context, GoldAnswer(" green ", 18)) == (19, 24)
    assert locate(context, GoldAnswer("yellow", 3)) is None
    assert locate(context, GoldAnswer(" ", 4)) is None
    assert locate(context, GoldAnswer("red", 999)) == (11, 14)


QUESTION = {"id": "1", "question": "?", "answers": [{"text": "big", "answer_start": 11}]}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{", "is not a JSON file"),
        ("", "is not a JSON file"),
        ("7", "the file is 7, but must be an object with 'data'"),
        ({"articles": []}, "the file has no 'data'"),
        ({"data": {}}, "'data' is {}, but must be a list"),
        ({"data": [{}]}, "data[0] has no 'paragraphs'"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "data[0].paragraphs[0] has no 'context'"),
        (squad("what"), 'data[0].paragraphs[0].qas[0] is "what", but must be an object'),
        (squad(QUESTION, {"id": "2"}), "qas[1] has no 'question'"),
        (squad({**QUESTION, "id": None}), "qas[0] has no 'id'"),
        (squad({**QUESTION, "question": 5}), "qas[0]: 'question' is 5, but must be a text"),
        (squad({**QUESTION, "is_impossible": "no"}), "'is_impossible' is \"no\", but must be true or false"),
        (squad({**QUESTION, "answers": [{"text": "x"}]}), "qas[0].answers[0] has no 'answer_start'"),
        (squad({**QUESTION, "answers": [{"text": "x", "answer_start": "4"}]}), "must be a whole number"),
        ([{"context_text": "x", "qas": [{"query_id": "1"}]}], "[0].qas[0] has no 'query_text'"),
        ([["speaker: hello"], []], "[0] is [\"speaker: hello\"], but must be an object with 'context_text'"),
    ],
)
def test_faults_are_told_with_their_place(tmp_path, value, words):
    path = written(tmp_path, value)
    with pytest.raises(InputError) as error:
        read_questions(path)
    assert words in str(error.value)
    assert path in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*nothing\.json"):
        read_questions(str(tmp_path / "nothing.json"))


def test_ids_that_come_again_are_warned_of(tmp_path, warnings):
    assert len(read_questions(written(tmp_path, squad(QUESTION, QUESTION)))) == 2
    assert "1 example(s) have the id of one before, the first" in warnings()


def test_a_fault_has_its_line_and_column(tmp_path):
    fault = squad(QUESTION, {**QUESTION, "id": None})
    for indent, place in ((None, r"line 1, column 1\d\d"), (1, "line 20, column 7")):
        with pytest.raises(InputError, match=rf"paragraphs\[0\].qas\[1\] has no 'id', .* \({place}\)$"):
            read_questions(written(tmp_path, json.dumps(fault, indent=indent)))
