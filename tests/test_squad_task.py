"""The tasks with questions, and the files their answers are written to."""

from __future__ import annotations

import json
import pathlib

import pytest

from albert_tf.errors import InputError
from albert_tf.files import read_json
from albert_tf.head_config import KINDS
from albert_tf.tasks import squad
from albert_tf.tasks.catalogue import find_task
from albert_tf.tasks.examples import AnswerPrediction


@pytest.mark.parametrize(
    ("name", "title", "head"),
    [
        ("squad", "SQuAD 1.1", "span"),
        ("SQuAD-1.1", "SQuAD 1.1", "span"),
        ("squad_v2", "SQuAD 2.0", "answerable_span"),
        ("SQuAD2.0", "SQuAD 2.0", "answerable_span"),
        ("cmrc", "CMRC 2018", "span"),
        ("JSQuAD", "JSQuAD", "span"),
    ],
)
def test_tasks_by_name(name, title, head):
    task = find_task(name)
    assert (task.title, task.head) == (title, head) and head in KINDS
    assert task.head_config().kind == head


@pytest.mark.parametrize(
    ("task", "split", "name"),
    [
        (squad.SQUAD_1, "train", "train-v1.1.json"),
        (squad.SQUAD_2, "dev", "dev-v2.0.json"),
        (squad.CMRC, "train", "cmrc2018_train.json"),
        (squad.CMRC, "dev", "dev.json"),
        (squad.CMRC, "test", "test.json"),
        (squad.JSQUAD, "dev", "valid-v1.1.json"),
    ],
)
def test_files_of_the_original_names(tmp_path, task, split, name):
    (tmp_path / name).touch()
    assert task.path(str(tmp_path), split) == str(tmp_path / name)


def test_real_files_are_read_by_their_tasks(shared):
    folder = shared / "data/squad"
    assert len(squad.SQUAD_2.read(str(folder / "dev_slice-v2.0.json"))) == 1260
    assert len(squad.CMRC.read(str(folder / "cmrc2018_trial.zh.json"))) == 1002


def test_written_files(tmp_path):
    best = {"text": "«Étoile» \ud83d", "probability": 1.0, "start": 3, "end": 11}
    predictions = [
        AnswerPrediction("a", best["text"], 3, 11, 1.0, -2.5, (best,)),
        AnswerPrediction("b", "", -1, -1, 0.9, 4.5, (best,)),
        AnswerPrediction("c", "", -1, -1, 0.0, 1e6, ()),
    ]
    files = squad.write_answers(str(tmp_path / "predictions" / "dev"), [], predictions, ())
    assert files == [
        str(tmp_path / "predictions/dev" / name)
        for name in (squad.PREDICTIONS, squad.N_BEST, squad.BEST_ANSWERS, squad.NULL_ODDS)
    ]
    answers, n_best, whatever_the_odds, odds = map(read_json, files)
    assert answers == {"a": best["text"], "b": "", "c": ""}
    assert whatever_the_odds == {"a": best["text"], "b": best["text"], "c": ""}
    assert n_best == {"a": [best], "b": [best], "c": []}
    assert odds == {"a": -2.5, "b": 4.5, "c": 1e6}
    assert "«Étoile»" in pathlib.Path(files[0]).read_text(encoding="utf-8")


def test_no_null_odds_from_a_model_that_always_answers(tmp_path):
    files = squad.write_answers(str(tmp_path / "dev"), [], [AnswerPrediction("a", "x", 0, 1, 1.0)], ())
    assert [file.rsplit("/", 1)[1] for file in files] == [squad.PREDICTIONS, squad.N_BEST]


def test_questions_without_an_answer_are_no_part_of_squad_1(tmp_path):
    path = tmp_path / "dev.json"
    answered = {"id": "a", "question": "q", "answers": [{"text": "b", "answer_start": 2}]}
    unanswered = {"id": "b", "question": "q", "answers": [], "is_impossible": True}

    def write(*questions: dict) -> str:
        path.write_text(json.dumps({"data": [{"paragraphs": [{"context": "a b c", "qas": questions}]}]}))
        return str(path)

    with pytest.raises(InputError, match=r"qas\[1\]: 1 of the 2 questions, .* give --task=squad2.0"):
        squad.SQUAD_1.read(write(answered, unanswered))
    assert len(squad.SQUAD_2.read(write(answered, unanswered))) == 2
    for questions in ([answered], [{**unanswered, "is_impossible": False}]):  # the latter: a file without labels
        assert len(squad.SQUAD_1.read(write(*questions))) == 1
