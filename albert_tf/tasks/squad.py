"""Questions that a part of their context answers: SQuAD 1.1 and 2.0, and the same in Chinese and Japanese.

XQuAD's files, and any other in SQuAD's layout, are read as `squad1.1` or, with unanswerable questions, `squad2.0`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from albert_tf import storage
from albert_tf.errors import InputError
from albert_tf.head_config import ANSWERABLE
from albert_tf.tasks.examples import AnswerPrediction, Example, Prediction
from albert_tf.tasks.squad_files import read_questions
from albert_tf.tasks.task import TRAIN, Task

PREDICTIONS, N_BEST = "predictions.json", "nbest_predictions.json"
BEST_ANSWERS, NULL_ODDS = "best_answers.json", "null_odds.json"


def read(path: str) -> list[Example]:
    """The questions of a file, see `squad_files.read_questions`."""
    return [*read_questions(path)]


def read_answerable(path: str) -> list[Example]:
    """The same of a task whose questions all have an answer.

    Raises:
        InputError: some of them have none, and others have.
    """
    examples = read_questions(path)
    without = [example for example in examples if example.is_impossible]
    if without and any(example.answers for example in examples):
        raise InputError(
            f"{without[0].place}: {len(without)} of the {len(examples)} questions, this one the first, have no answer, "
            f"which this task does not know: give --task={SQUAD_2.name}"
        )
    return [*examples]


def write_answers(
    path: str, examples: Sequence[Example], predictions: Sequence[Prediction], labels: Sequence[str]
) -> list[str]:
    """Writes the files of the official scripts into the directory `path`, each an object from id to value.

    predictions.json has the answers, "" for none: this is what is submitted. nbest_predictions.json has the best
    answers of each question, as the released code writes them, with `start` and `end` in the context as well.

    A model that knows of no answer gives two more: null_odds.json, how much likelier than an answer it is that there is
    none; and best_answers.json, the best answer to each question whatever the null odds. These two go together: with
    them the official script finds the best threshold (`evaluate-v2.0.py DATA best_answers.json --na-prob-file
    null_odds.json`), which it cannot from predictions.json, where a threshold has been applied.
    """
    answers = [prediction for prediction in predictions if isinstance(prediction, AnswerPrediction)]
    written = [
        _write(storage.join(path, PREDICTIONS), {answer.id: answer.text for answer in answers}),
        _write(storage.join(path, N_BEST), {answer.id: list(answer.n_best) for answer in answers}),
    ]
    odds = {answer.id: answer.null_odds for answer in answers if answer.null_odds is not None}
    if odds:
        best = {answer.id: answer.n_best[0]["text"] if answer.n_best else "" for answer in answers}
        written += [_write(storage.join(path, BEST_ANSWERS), best), _write(storage.join(path, NULL_ODDS), odds)]
    return written


def _write(path: str, values: dict[str, Any]) -> str:
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    # Half of a pair of surrogates, which JSON can hold and UTF-8 cannot, becomes the escape that JSON has for it.
    storage.write_bytes(path, text.encode("utf-8", "backslashreplace"))
    return path


def _task(name: str, title: str, head: str, train: Sequence[str], dev: Sequence[str], **further: Any) -> Task:
    files = {TRAIN: tuple(train), "dev": tuple(dev), **further.pop("test", {})}
    reader = read if head == ANSWERABLE else read_answerable
    return Task(name, title, head, reader, files, write_answers, **further)


SQUAD_1 = _task(
    "squad1.1",
    "SQuAD 1.1",
    "span",
    ["train-v1.1.json"],
    ["dev-v1.1.json"],
    metrics=("f1", "exact_match"),
    words="the answer is a part of the context",
)
SQUAD_2 = _task(
    "squad2.0",
    "SQuAD 2.0",
    ANSWERABLE,
    ["train-v2.0.json"],
    ["dev-v2.0.json"],
    metrics=("best_f1", "best_exact_match", "f1", "exact_match"),
    words="the answer is a part of the context, or there is none; both learned together",
)
CMRC = _task(
    "cmrc2018",
    "CMRC 2018",
    "span",
    ["cmrc2018_train.json", "train.json"],
    ["cmrc2018_dev.json", "dev.json"],
    test={"test": ("cmrc2018_test_2k.json", "test.json")},
    metrics=("cmrc_f1", "cmrc_exact_match"),
    words="Chinese; F1 by the longest common run of characters",
)
JSQUAD = _task(
    "jsquad",
    "JSQuAD",
    "span",
    [f"train-v1.{minor}.json" for minor in (3, 2, 1, 0)],
    [f"valid-v1.{minor}.json" for minor in (3, 2, 1, 0)],
    metrics=("characters_f1", "exact_match"),
    words="Japanese; F1 by characters",
)
TASKS = (SQUAD_1, SQUAD_2, CMRC, JSQUAD)
