"""The flags of a script inside a test's own process, whose own flags stay as they are."""

from __future__ import annotations

import functools
import types
from typing import Any

import pytest
from absl import flags

from albert_tf import device_flags, pretraining_flags, record_flags, run_pretraining
from albert_tf.errors import InputError
from tests.script_driver import arguments


def parsed(module: types.ModuleType, *given: str, **values: Any) -> flags.FlagValues:
    """What the module's `define_flags` defines, with the defaults but for those given; none of them has to be."""
    found = flags.FlagValues()
    with pytest.MonkeyPatch.context() as patch:
        for name in dir(flags):
            if name.startswith("DEFINE_") or name == "adopt_module_key_flags":
                patch.setattr(flags, name, functools.partial(getattr(flags, name), flag_values=found))
        for name in ("mark_flag_as_required", "mark_flags_as_required"):
            patch.setattr(flags, name, lambda _: None)
        module.define_flags()
        if "flagfile" not in found:
            flags.DEFINE_string("flagfile", "", "")
    found([module.__name__, *given, *arguments(values)])
    return found


def use(monkeypatch: pytest.MonkeyPatch, *modules: types.ModuleType, values: flags.FlagValues) -> None:
    """Lets modules that read flags read these until the end of the test."""
    for module in modules:
        monkeypatch.setattr(module, "FLAGS", values)


def use_for_pretraining(monkeypatch: pytest.MonkeyPatch, **given: Any) -> None:
    """The flags of run_pretraining, for all modules that read them."""
    values = parsed(pretraining_flags, **given)
    use(monkeypatch, device_flags, pretraining_flags, record_flags, run_pretraining, values=values)


def refusal(script: types.ModuleType, *given: str) -> str:
    """What a script's main says when it refuses what it is given; "" when it ends well."""
    with pytest.MonkeyPatch.context() as patch:
        use(patch, script, values=parsed(script, *given))
        try:
            return "" if script.main([]) == 0 else "failed"
        except InputError as error:
            return str(error)
