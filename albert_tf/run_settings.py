"""OUTPUT_DIR/run.json: the settings that a run began with, to which it is held when it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from absl import logging

from albert_tf import json_text, storage
from albert_tf.errors import InputError

RUN_FILE = "run.json"
_KEY_OF_FINE_TUNING = "task"  # a pre-training's settings have none


def holds_fine_tuning(output_dir: str) -> bool | None:
    """Whether the run in there is a fine-tuning; None where there is no run."""
    path = storage.join(output_dir, RUN_FILE)
    return _KEY_OF_FINE_TUNING in _read(path) if storage.exists(path) else None


def claim(output_dir: str, settings: Mapping[str, Any], what_to_do: str, *, allow_changes: bool = False) -> None:
    """Records what decides a run's result, or refuses to go on with a run that was begun otherwise.

    Where nothing but run.json is there, that start was refused, and holds nobody to its settings.

    Args:
        output_dir: of the run.
        settings: values that JSON holds.
        what_to_do: about other settings, the end of the message.
        allow_changes: go on with other settings and say which.

    Raises:
        InputError: the run in there was begun with others, which are named.
    """
    is_begun = storage.list_directory(output_dir) != [RUN_FILE]
    changed = changed_settings(output_dir, settings) if is_begun else []
    if changed and not allow_changes:
        raise InputError(
            f"--output_dir={output_dir} holds a run that was begun with other settings: {'; '.join(changed)}. "
            f"{what_to_do}"
        )
    for sentence in changed:
        logging.warning("going on with a changed setting: %s", sentence)
    record_settings(output_dir, settings)


def changed_settings(output_dir: str, settings: Mapping[str, Any]) -> list[str]:
    """`name was old, now new` for each setting that differs from those the run in there began with.

    Of a setting that has parts, those that differ are named: `model.hidden_size was 128, now 256`.
    """
    path = storage.join(output_dir, RUN_FILE)
    before, now = _parts(_read(path) if storage.exists(path) else settings), _parts(settings)
    return [
        f"{name} was {_told(before, name)}, now {_told(now, name)}"
        for name in sorted({*before, *now})
        if name not in before or name not in now or before[name] != now[name]
    ]


def _read(path: str) -> Mapping[str, Any]:
    settings = storage.read_json(path)
    if not isinstance(settings, Mapping):
        raise InputError(f"{path} holds no settings of a run: give another --output_dir")
    return settings


def _parts(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values with the names of all that they are in before their own; an empty part is a value too."""
    parts: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            parts.update(_parts(value, f"{prefix}{name}."))
        else:
            parts[prefix + name] = value
    return parts


def _told(parts: Mapping[str, Any], name: str) -> str:
    return json_text.shown(parts[name]) if name in parts else "not set"


def record_settings(output_dir: str, settings: Mapping[str, Any]) -> None:
    """Writes the settings that decide a run's result beside its checkpoints."""
    storage.write_json(storage.join(output_dir, RUN_FILE), dict(settings))
