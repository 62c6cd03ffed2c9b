"""Reads questions with answers in their context: SQuAD 1.1 and 2.0 JSON, and CMRC 2018's own layout.

    {"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"text", "answer_start"}],
    "is_impossible"}]}]}]}                                       SQuAD, XQuAD, JSQuAD, CMRC 2018 in SQuAD's style
    [{"context_id", "context_text", "qas": [{"query_id", "query_text", "answers": ["text", …]}]}]          CMRC 2018

Every text is taken as it stands, spaces at its ends too. An answer that does not stand where its file says is kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from absl import logging

from albert_tf import json_text
from albert_tf.errors import InputError
from albert_tf.json_text import JsonFault, shown
from albert_tf.tasks import rows
from albert_tf.tasks.examples import GoldAnswer, QuestionExample

NOWHERE = -1  # the start of an answer that its file gives no place for

_KINDS = {str: "a text", list: "a list", dict: "an object", bool: "true or false", int: "a whole number"}
_REQUIRED = object()


class _Keys(NamedTuple):
    """What a layout calls things."""

    context: str
    id: str
    question: str


_SQUAD = _Keys("context", "id", "question")
_CMRC = _Keys("context_text", "query_id", "query_text")


def read_questions(path: str) -> list[QuestionExample]:
    """The questions of one file, in order.

    `answers` of an example is None where the file has no answers for it, () where it says that there is none: by
    `is_impossible`, or by an empty list.

    Raises:
        InputError: the file cannot be read, is not JSON, or something in it is missing or of another type.
    """
    path = os.fspath(path)
    text = rows.read_text(path)
    try:
        root = json_text.parse(text)
    except JsonFault as error:
        raise InputError(f"{path} is not a JSON file: {error}") from error
    try:
        examples = list(_cmrc_questions(root, path) if isinstance(root, list) else _squad_questions(root, path))
    except InputError as error:
        raise InputError(f"{error} ({_line_and_column(str(error), path, text)})") from error
    _report(examples, path)
    return examples


def locate(context: str, answer: GoldAnswer) -> tuple[int, int] | None:
    """Where an answer stands in its context: the first character and the one behind the last.

    That is where its file says, or else the nearest place with the same text (spaces at its ends left out, if need
    be); None if there is none.
    """
    bare = answer.text.strip()
    if not bare:
        return None
    at = max(answer.start, 0)
    for text, start in ((answer.text, at), (bare, at + answer.text.index(bare))):
        if context.startswith(text, start):
            return start, start + len(text)
        places = [context.rfind(text, 0, start + len(text)), context.find(text, start)]
        found = [place for place in places if place >= 0]
        if found:
            nearest = min(found, key=lambda place: abs(place - start))
            return nearest, nearest + len(text)
    return None


def _line_and_column(message: str, path: str, text: str) -> str:
    """Where in the file that is what a message begins with: "FILE: data[0].paragraphs[2] …"."""
    found = re.match(r": ([\w.\[\]]*)", message[len(path) :])
    steps = re.findall(r"\w+", found[1]) if found and found[1].endswith("]") else []
    line, column = json_text.place_of(text, [int(step) if step.isdecimal() else step for step in steps])
    return f"line {line}, column {column}"


def _squad_questions(root: Any, path: str) -> Iterator[QuestionExample]:
    for article, at_article in _items(root, "data", f"{path}: the file"):
        title = _value(article, "title", str, at_article, "")
        for paragraph, at_paragraph in _items(article, "paragraphs", at_article):
            yield from _paragraph(paragraph, at_paragraph, _SQUAD, title)


def _cmrc_questions(root: list[Any], path: str) -> Iterator[QuestionExample]:
    for number, paragraph in enumerate(root):
        yield from _paragraph(paragraph, f"{path}: [{number}]", _CMRC)


def _paragraph(paragraph: Any, place: str, keys: _Keys, title: str = "") -> Iterator[QuestionExample]:
    context = _value(paragraph, keys.context, str, place)
    title = title or _value(paragraph, "title", str, place, "")
    for question, at_question in _items(paragraph, "qas", place):
        yield QuestionExample(
            id=_identifier(question, keys.id, at_question),
            question=_value(question, keys.question, str, at_question),
            context=context,
            answers=_answers(question, context, at_question),
            title=title,
            place=at_question,
        )


def _identifier(question: Any, key: str, place: str) -> str:
    number = isinstance(question, dict) and isinstance(question.get(key), int)
    return str(question[key]) if number else _value(question, key, str, place)


def _answers(question: Any, context: str, place: str) -> tuple[GoldAnswer, ...] | None:
    if _value(question, "is_impossible", bool, place, False):
        return ()
    if question.get("answers") is None:
        return None
    answers = []
    for answer, at_answer in _items(question, "answers", place):
        if isinstance(answer, str):  # CMRC 2018's own files give no place
            answers.append(GoldAnswer(answer, context.find(answer)))
        else:
            text = _value(answer, "text", str, at_answer)
            answers.append(GoldAnswer(text, _value(answer, "answer_start", int, at_answer)))
    return tuple(answers)


def _items(parent: Any, key: str, place: str) -> Iterator[tuple[Any, str]]:
    inside = place if place.endswith("]") else place.rsplit(" ", 2)[0]  # "FILE: the file" gives "FILE:"
    separator = "." if place.endswith("]") else " "
    for number, item in enumerate(_value(parent, key, list, place)):
        yield item, f"{inside}{separator}{key}[{number}]"


def _value(parent: Any, key: str, kind: type, place: str, default: Any = _REQUIRED) -> Any:
    """`parent[key]`, if it is of that kind; `default` where the key is missing."""
    if not isinstance(parent, dict):
        raise InputError(f"{place} is {shown(parent)}, but must be an object with {key!r}, as SQuAD files have it")
    value = parent.get(key)
    if value is None and default is not _REQUIRED:
        return default
    if value is None:
        raise InputError(f"{place} has no {key!r}, which SQuAD files have there")
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(f"{place}: {key!r} is {shown(value)}, but must be {_KINDS[kind]}")
    return value


def _report(examples: list[QuestionExample], path: str) -> None:
    """One warning for all answers that do not stand where the file says, and one for ids that come again."""
    total = moved = lost = 0
    for example in examples:
        for answer in example.answers or ():
            total += 1
            if answer.start < 0 or not example.context.startswith(answer.text, answer.start):
                found = locate(example.context, answer) is not None
                moved, lost = moved + found, lost + (not found)
    if moved or lost:
        logging.warning(
            "%s: %d of %d answers do not stand in their context at answer_start: %d are taken from the nearest place "
            "that has them, %d stand nowhere and count for scores alone",
            path,
            moved + lost,
            total,
            moved,
            lost,
        )
    rows.warn_of_repeated_ids(path, examples)
