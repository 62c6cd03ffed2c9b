"""Every flag is read, only scripts and their modules of flags define and read some, and `--help` works anywhere."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import os
import subprocess
import sys
import time

import pytest
from absl import flags

from tests import source_files

SECONDS_FOR_HELP = 20
FLAG_MODULES = {name for script in source_files.scripts() for name in source_files.flag_modules(script)}


def read_flags(name: str, tree: ast.AST) -> set[str]:
    """The flags that a module reads: `FLAGS.x`, `FLAGS["x"]`, and `FLAGS[field.name]` over a dataclass's fields."""
    read = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and ast.unparse(node.value) in ("FLAGS", "flags.FLAGS"):
            if isinstance(node, ast.Attribute):
                if not hasattr(flags.FlagValues, node.attr):
                    read.add(node.attr)
            elif isinstance(node.slice, ast.Constant):
                read.add(node.slice.value)
        elif isinstance(node, (ast.DictComp, ast.ListComp, ast.For)) and "FLAGS[field.name]" in ast.unparse(node):
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "dataclasses.fields":
                    settings = getattr(importlib.import_module(name), ast.unparse(call.args[0]))
                    read |= {field.name for field in dataclasses.fields(settings)}
    return read


def read_flags_of(script: str) -> set[str]:
    """The same of a script and its modules of flags."""
    return {
        flag for name in source_files.flag_modules(script) for flag in read_flags(name, source_files.modules()[name])
    }


@pytest.mark.parametrize("name", source_files.scripts())
def test_every_flag_is_read(name):
    defined = source_files.flags_of(name)
    assert defined, f"{name} defines no flags"
    aliases = {flag for flag, kind in defined.items() if kind == "DEFINE_alias"}
    read = read_flags_of(name)
    assert set(defined) - aliases - read == set(), f"{name}: flags without effect"
    assert read - set(defined) == set(), f"{name}: unknown flags"


@pytest.mark.parametrize("name", source_files.scripts())
def test_settings_made_of_flags_are_used(name):
    """A flag that only becomes a field of a settings object must be read from there."""
    trees = [source_files.modules()[module] for module in source_files.flag_modules(name)]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    direct = {node.attr for node in nodes if ast.unparse(node.value) in ("FLAGS", "flags.FLAGS")}
    through_settings = read_flags_of(name) & set(source_files.flags_of(name)) - direct
    attributes = {
        node.attr
        for module in source_files.modules().values()
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("FLAGS", "flags.FLAGS")
    }
    subscripts = {
        node.slice.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    }
    assert through_settings - attributes - subscripts == set()


@pytest.mark.parametrize("name", sorted(set(source_files.modules()) - FLAG_MODULES))
def test_library_code_takes_arguments(name):
    tree = source_files.modules()[name]
    assert source_files.defined_flags(tree) == {}
    if name != "albert_tf.errors":  # which parses them for the scripts
        names = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))}
        assert not {text for text in names if text == "FLAGS" or text.endswith(".FLAGS")}


def test_modules_of_flags_are_found():
    modules = source_files.flag_modules("albert_tf.run_finetuning")
    assert {"albert_tf.run_finetuning", "albert_tf.finetuning_flags", "albert_tf.device_flags"} <= set(modules)
    assert {"task", "learning_rate", "tpu"} <= set(source_files.flags_of("albert_tf.run_finetuning"))


def test_the_check_finds_a_flag_without_effect():
    tree = ast.parse("flags.DEFINE_bool('used', True, '')\nflags.DEFINE_bool('idle', True, '')\nprint(FLAGS.used)")
    assert set(source_files.defined_flags(tree)) - read_flags("script", tree) == {"idle"}


def test_help_works_from_anywhere():
    environment = {**os.environ, "PYTHONPATH": str(source_files.REPOSITORY)}
    for name in source_files.scripts():
        start = time.monotonic()
        command = [sys.executable, "-m", name, "--help"]
        result = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True)
        assert result.returncode == 0, f"{name}: {result.stderr}"
        assert time.monotonic() - start < SECONDS_FOR_HELP, name
        missing = [flag for flag in source_files.flags_of(name) if flag not in result.stdout]
        assert not missing, f"{name} --help does not show {missing}"


@pytest.mark.parametrize("name", source_files.scripts())
def test_an_unknown_flag_is_one_sentence(name):
    command = [sys.executable, "-m", name, "--no_such_flag=1"]
    result = subprocess.run(command, cwd=source_files.REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 1
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "no_such_flag" in lines[0] and "Traceback" not in result.stderr
