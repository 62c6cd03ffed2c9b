"""OUTPUT_DIR/run.json: the settings that a run began with, to which it is held when it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tf import storage

RUN_FILE = "run.json"


def changed_settings(output_dir: str, settings: Mapping[str, Any]) -> list[str]:
    """One sentence `name was old, now new` for each setting that differs from those the run in there began with."""
    path = storage.join(output_dir, RUN_FILE)
    before = storage.read_json(path) if storage.exists(path) else settings
    return [
        f"{name} was {before.get(name)!r}, now {settings.get(name)!r}"
        for name in sorted({*before, *settings})
        if before.get(name) != settings.get(name)
    ]


def record_settings(output_dir: str, settings: Mapping[str, Any]) -> None:
    """Writes the settings that decide a run's result beside its checkpoints."""
    storage.write_json(storage.join(output_dir, RUN_FILE), dict(settings))
