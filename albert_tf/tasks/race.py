"""Reading comprehension with choices: RACE (four, in two levels) and DREAM (three, about dialogues)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from albert_tf import storage
from albert_tf.errors import InputError
from albert_tf.json_text import shown
from albert_tf.tasks import json_records, rows
from albert_tf.tasks.examples import LEAST_CHOICES, ChoiceExample, Example
from albert_tf.tasks.json_records import Record
from albert_tf.tasks.submissions import LETTERS, write_choices
from albert_tf.tasks.task import Task

LEVELS = ("middle", "high")
_ENDINGS = (".txt", ".json", ".jsonl")


def read_race(path: str) -> list[Example]:
    """Reads a split of RACE: a directory with `middle/` and `high/`, one of articles, or a file of merged articles.

    An article is a JSON object with `article`, `questions`, `options`, `answers` (letters; absent in a test split)
    and `id`. Articles come in the order of the levels and of the names of their files.

    Raises:
        InputError: nothing is found, or an article is not of that form; the message names file and line.
    """
    examples: list[Example] = []
    for file, level in _article_files(path):
        for record in json_records.read_records(file):
            examples += _article(record, level)
    return rows.checked(path, examples)


def read_dream(path: str) -> list[Example]:
    """Reads DREAM: a JSON list of [turns, [{question, choice, answer}, …], id].

    The turns become the lines of the passage. The answer is the text of the right choice, absent in a test split.

    Raises:
        InputError: the file is not of that form; the message names the dialogue.
    """
    dialogues = json_records.read_value(path)
    if not isinstance(dialogues, list):
        raise InputError(f"{path} must be a JSON list of dialogues, but is {shown(dialogues)}")
    examples: list[Example] = []
    for number, dialogue in enumerate(dialogues, start=1):
        examples += _dialogue(dialogue, f"{path}, dialogue {number}")
    return rows.checked(path, examples)


def _article_files(path: str) -> Iterator[tuple[str, str]]:
    """The files of articles with the level that their directory tells."""
    if not storage.is_directory(path):
        yield path, _level_of(storage.basename(path))
        return
    levels = [level for level in LEVELS if storage.is_directory(storage.join(path, level))]
    directories = [(storage.join(path, level), level) for level in levels] or [
        (path, _level_of(storage.basename(path)))
    ]
    is_empty = True
    for directory, level in directories:
        for name in storage.list_directory(directory):
            if name.endswith(_ENDINGS):
                is_empty = False
                yield storage.join(directory, name), level
    if is_empty:
        raise InputError(
            f"{path} has no articles: RACE has directories {' and '.join(LEVELS)} there, with one .txt file an article"
        )


def _level_of(name: str) -> str:
    """The level that the name of a file, a directory or an article begins with or is ended by, or ""."""
    match = re.match(r"(middle|high)(?![a-z])", name) or re.search(r"(?<![a-z])(middle|high)(\.\w+)?$", name)
    return match[1] if match else ""


def _article(record: Record, level: str) -> Iterator[ChoiceExample]:
    """The questions about one article."""
    place, passage = record.place, record.text("article")
    questions, options = record.list("questions"), record.list("options")
    answers = record.list("answers") if "answers" in record.values else [None] * len(questions)
    if not len(questions) == len(options) == len(answers):
        raise InputError(
            f"{place} has {len(questions)} question(s), {len(options)} list(s) of options and {len(answers)} "
            "answer(s): there must be as many of each"
        )
    identifier = str(record.value("id"))
    for number, (question, choices, answer) in enumerate(zip(questions, options, answers)):
        yield ChoiceExample(
            id=f"{identifier}-{number}",
            passage=passage,
            question=_text(question, f"{place}, question {number + 1}"),
            choices=_choices(choices, f"{place}, question {number + 1}"),
            label=None if answer is None else _letter(answer, len(choices), f"{place}, question {number + 1}"),
            group=level or _level_of(identifier),
            place=place,
        )


def _dialogue(dialogue: Any, place: str) -> Iterator[ChoiceExample]:
    """The questions about one dialogue."""
    if not isinstance(dialogue, list) or len(dialogue) != 3 or not all(isinstance(part, list) for part in dialogue[:2]):
        raise InputError(f"{place} must be [[turns], [questions], id], but is {shown(dialogue)}")
    turns, questions, identifier = dialogue
    passage = "\n".join(_text(turn, place) for turn in turns)
    for number, question in enumerate(questions):
        where = f"{place} ({identifier}), question {number + 1}"
        if not isinstance(question, dict):
            raise InputError(f"{where} must be a JSON object, but is {shown(question)}")
        record = Record(where, question)
        choices = _choices(record.list("choice"), where)
        answer = record.values.get("answer")
        if answer is not None and answer not in choices:
            raise InputError(f"{where}: the answer {shown(answer)} is none of the choices {shown(choices)}")
        label = None if answer is None else choices.index(answer)
        yield ChoiceExample(f"{identifier}-{number}", passage, record.text("question"), choices, label, place=where)


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{place}: a text is needed, but there is {shown(value)}")
    return value


def _choices(values: Any, place: str) -> tuple[str, ...]:
    if not isinstance(values, list) or not LEAST_CHOICES <= len(values) <= len(LETTERS):
        raise InputError(
            f"{place}: the options must be a list of {LEAST_CHOICES} to {len(LETTERS)} texts, not {shown(values)}"
        )
    return tuple(_text(value, place) for value in values)


def _letter(answer: Any, choices: int, place: str) -> int:
    """The index that a letter stands for."""
    if not isinstance(answer, str) or len(answer) != 1 or answer not in LETTERS[:choices]:
        raise InputError(f"{place}: the answer is {shown(answer)}, but must be one of {', '.join(LETTERS[:choices])}")
    return LETTERS.index(answer)


def _splits(*names: str) -> dict[str, tuple[str, ...]]:
    return {split: tuple(name.format(split=split) for name in names) for split in ("train", "dev", "test")}


RACE = Task(
    name="race",
    title="RACE",
    head="multiple_choice",
    read=read_race,
    files=_splits("{split}", "{split}.jsonl", "{split}.json", "{split}.txt", "RACE/{split}"),
    write_submission=write_choices,
    metrics=("accuracy",),
    words="exam questions about a passage with four choices, for middle and high school",
)
DREAM = Task(
    name="dream",
    title="DREAM",
    head="multiple_choice",
    read=read_dream,
    files=_splits("{split}.json"),
    write_submission=write_choices,
    metrics=("accuracy",),
    words="questions about a dialogue with three choices",
)
