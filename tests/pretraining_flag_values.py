"""The flags of run_pretraining inside a test's own process."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from absl import flags

from albert_tf import device_flags, pretraining_flags, record_flags, run_pretraining
from tests import source_files


def of(**given: Any) -> flags.FlagValues:
    """The flags with their defaults, but for those given; the process's own flags stay as they are."""
    values = flags.FlagValues()
    with pytest.MonkeyPatch.context() as patch:
        for name in {*source_files.flags_of("albert_tf.run_pretraining").values(), "adopt_module_key_flags"}:
            patch.setattr(flags, name, functools.partial(getattr(flags, name), flag_values=values))
        pretraining_flags.define_flags()
    values(["run_pretraining", *(f"--{name}={value}" for name, value in given.items())])
    return values


def use(monkeypatch: pytest.MonkeyPatch, **given: Any) -> None:
    """Lets the modules that read flags read these until the end of the test."""
    values = of(**given)
    for module in (device_flags, pretraining_flags, record_flags, run_pretraining):
        monkeypatch.setattr(module, "FLAGS", values)
