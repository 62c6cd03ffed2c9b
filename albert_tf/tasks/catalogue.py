"""All tasks by name."""

from __future__ import annotations

import re

from albert_tf.errors import InputError
from albert_tf.tasks import chinese, glue, race, squad, tagging, text_file
from albert_tf.tasks.task import Task

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *glue.TASKS,
        *squad.TASKS,
        race.RACE,
        race.DREAM,
        tagging.CONLL,
        *chinese.TASKS,
        text_file.TEXT_FILE,
    )
}

# Further names people use, as `_key` leaves them.
_ALIASES = {
    "sst": "sst-2",
    "sts": "sts-b",
    "mnlim": "mnli",
    "mnlimatched": "mnli",
    "multinli": "mnli",
    "squad": "squad1.1",
    "squad1": "squad1.1",
    "squadv1": "squad1.1",
    "squadv11": "squad1.1",
    "squad2": "squad2.0",
    "squadv2": "squad2.0",
    "squadv20": "squad2.0",
    "cmrc": "cmrc2018",
    "conll2003": "conll",
    "ner": "conll",
    "tagging": "conll",
    "text": "text_file",
}


def find_task(name: str) -> Task:
    """The task of that name; case, hyphens, underscores and dots do not matter ("STS-B", "stsb", "sts").

    Raises:
        InputError: there is none; the message lists all.
    """
    key = _key(name)
    for task in TASKS.values():
        if key == _key(task.name):
            return task
    if key in _ALIASES:
        return TASKS[_ALIASES[key]]
    usual = ["text" if task.name == text_file.TEXT_FILE.name else task.name for task in TASKS.values()]
    raise InputError(f"there is no task {name!r}: the tasks are {', '.join(usual)}")


def _key(name: str) -> str:
    return re.sub(r"[-_.\s]", "", name.lower())
