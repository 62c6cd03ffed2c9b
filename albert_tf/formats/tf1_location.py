"""Where a TF1 checkpoint is: its prefix, its config and its vocabulary, from whatever name a person has for it."""

from __future__ import annotations

import os
import re

from albert_tf.config import CONFIG_FILE
from albert_tf.errors import InputError
from albert_tf.head_config import HEAD_CONFIG_FILE
from albert_tf.tokenizer import SETTINGS_FILE

_FILE_ENDS = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
_POINTER = re.compile(r'^\s*model_checkpoint_path:\s*"((?:[^"\\]|\\.)*)"\s*$', re.MULTILINE)
_STEP = re.compile(r"(.*)-(\d+)")
_CONFIG_NAMES = (CONFIG_FILE, "bert_config.json", "config.json")
_OTHER_CONFIGS = (HEAD_CONFIG_FILE, SETTINGS_FILE, "generation_config.json")


def find_prefix(path: str) -> tuple[str, tuple[str, ...]]:
    """The prefix that a path stands for, and notes about the choice.

    Args:
        path: a prefix, one of its files, or a directory. In a directory with several checkpoints, the `checkpoint`
            file decides, then the name of the released archives, `model.ckpt-best`, then the highest step.

    Raises:
        InputError: there is none, or nothing says which of several is meant.
    """
    if os.path.isdir(path):
        return _find_in_directory(path)
    prefix = without_file_end(path)
    if not os.path.isfile(f"{prefix}.index"):
        raise InputError(
            f"{path} is no TF1 checkpoint: there is no file {prefix}.index; give the prefix of one (such as "
            "DIRECTORY/model.ckpt-best), its directory or its archive"
        )
    return prefix, ()


def without_file_end(path: str) -> str:
    """The prefix of which a path is one of the files: `.index`, `.meta` or `.data-…` at its end is taken away."""
    return _FILE_ENDS.sub("", path)


def _find_in_directory(directory: str) -> tuple[str, tuple[str, ...]]:
    names = sorted(name[: -len(".index")] for name in os.listdir(directory) if name.endswith(".index"))
    if not names:
        raise InputError(f"{directory} holds no TF1 checkpoint: there is no file ending in .index in it")
    pointed, notes = _pointed_at(directory, names)
    if pointed is None and len(names) == 1:
        pointed = names[0]
    if pointed is None:
        pointed = _best_of(directory, names)
        notes = (*notes, f"of the checkpoints {', '.join(names)} in the directory, {pointed} was taken")
    return os.path.join(directory, pointed), notes


def _pointed_at(directory: str, names: list[str]) -> tuple[str | None, tuple[str, ...]]:
    """What the `checkpoint` file names, if that is a checkpoint beside it."""
    pointer = os.path.join(directory, "checkpoint")
    if not os.path.isfile(pointer):
        return None, ()
    with open(pointer, encoding="utf-8", errors="replace") as file:
        match = _POINTER.search(file.read())
    if not match:
        return None, ()
    if match[1] in names:
        return match[1], ()
    if os.path.basename(match[1]) != match[1]:
        return None, (f"the file 'checkpoint' points outside the directory ({match[1]}), which is not followed",)
    return None, (f"the file 'checkpoint' names {match[1]}, which is not there",)


def _best_of(directory: str, names: list[str]) -> str:
    if "model.ckpt-best" in names:
        return "model.ckpt-best"
    numbered = [match for match in map(_STEP.fullmatch, names) if match]
    stems = {match[1] for match in numbered} | {name for name in names if not _STEP.fullmatch(name)}
    if len(stems) > 1 or not numbered:
        raise InputError(
            f"{directory} holds several checkpoints ({', '.join(names)}) and no file 'checkpoint' that names one of "
            "them: give the prefix of the one you mean"
        )
    return max(numbered, key=lambda match: int(match[2]))[0]


def find_config(directory: str) -> tuple[str | None, tuple[str, ...]]:
    """The JSON with the sizes in a directory: albert_config.json, or another whose name contains `config`.

    Returns:
        Its path, None where there is none; and a note where several are there and none is taken.
    """
    found = sorted(name for name in os.listdir(directory or ".") if "config" in name and name.endswith(".json"))
    found = [name for name in found if name not in _OTHER_CONFIGS]
    usual = [name for name in _CONFIG_NAMES if name in found]
    chosen = usual[0] if usual else found[0] if len(found) == 1 else None
    if chosen:
        return os.path.join(directory, chosen), ()
    return None, (f"none of {', '.join(found)} was taken for the config: give one",) if found else ()
