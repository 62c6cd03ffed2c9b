"""The product's source files and their syntax trees, for the tests that read code."""

from __future__ import annotations

import ast
import functools
import pathlib
from collections.abc import Iterator

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ("albert_tf", "data_prep")


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module of the packages by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            parts = path.relative_to(REPOSITORY).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


@functools.cache
def scripts() -> tuple[str, ...]:
    """The modules that are run with `python -m`: those that end with the `__main__` question."""
    return tuple(
        name
        for name, tree in modules().items()
        if any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body)
    )


def flag_modules(script: str) -> tuple[str, ...]:
    """A script and the modules of flags that it imports, and these: where its flags are defined and read."""
    found = [script]
    for name in found:
        imported = {module for module, _ in imports(modules()[name], name)}
        found += sorted(module for module in imported if module.endswith("_flags") and module not in found)
    return tuple(found)


def defined_flags(tree: ast.AST) -> dict[str, str]:
    """The flags that a module defines, by name; the value is the name of the DEFINE_ function."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return {ast.literal_eval(call.args[0]): call.func.attr for call in calls if call.func.attr.startswith("DEFINE_")}


def flags_of(script: str) -> dict[str, str]:
    """The same of a script and its modules of flags."""
    return {flag: kind for name in flag_modules(script) for flag, kind in defined_flags(modules()[name]).items()}


def imports(tree: ast.AST, package: str) -> Iterator[tuple[str, ast.stmt]]:
    """Every import below a node as (dotted name of the module, statement); names of our modules are resolved.

    Imports for the type checker alone (`if TYPE_CHECKING:`) are none.
    """
    for_types = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for child in node.body
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{package}: relative import {ast.unparse(node)}"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in modules() else str(node.module)), node
