"""Whether the installed TensorFlow, Keras and TensorFlow Text belong together, told without importing them."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Callable, Mapping
from types import TracebackType

# Other names under which TensorFlow is distributed.
TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-rocm", "tensorflow-macos", "intel-tensorflow")
SUPPORTED_MINORS = (15, 18, 19, 20, 21)  # of TensorFlow 2.x; setup.py says which Python takes which


class VersionError(ImportError):
    """The installed versions do not fit together; the message says in one line which, and what to install."""


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _minor(version: str) -> int | None:
    """The x of a version 2.x; None for another major version."""
    match = re.match(r"2\.(\d+)", version)
    return int(match.group(1)) if match else None


def find_problem(
    installed: Callable[[str], str | None] = _installed, environment: Mapping[str, str] = os.environ
) -> str | None:
    """Says in one line what is wrong with the installed versions, or returns None.

    Args:
        installed: gives the version of a distribution by its name, or None where it is not installed.
        environment: the environment variables.
    """
    name = next((name for name in TENSORFLOWS if installed(name)), None)
    if name is None:
        return None  # preparation works without TensorFlow; what needs it fails on its own import
    tensorflow = installed(name) or ""
    minor = _minor(tensorflow)
    if minor not in SUPPORTED_MINORS:
        known = ", ".join(f"2.{known}" for known in SUPPORTED_MINORS)
        return (
            f"albert_tf runs on TensorFlow {known}, but {name} {tensorflow} is installed; "
            f"to fix it: pip install '{name}=={'2.15.*' if sys.version_info < (3, 12) else '2.21.*'}'"
        )
    text = installed("tensorflow-text")
    if text is not None and _minor(text) != minor:
        return (
            f"{name} {tensorflow} and tensorflow-text {text} do not match, their first two numbers must be the same; "
            f"to fix it: pip install '{name}==2.{minor}.*' 'tensorflow-text==2.{minor}.*'"
        )
    keras = installed("keras")
    keras_major = int(keras.split(".")[0]) if keras else None
    if keras is not None and keras_major != (2 if minor == 15 else 3):
        wanted = "keras==2.15.*" if minor == 15 else "keras>=3.5"
        return f"{name} {tensorflow} does not work with keras {keras}; to fix it: pip install '{wanted}'"
    if minor != 15 and environment.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        return (
            f"TF_USE_LEGACY_KERAS is set, but with {name} {tensorflow} albert_tf runs on Keras 3; "
            "to fix it: unset TF_USE_LEGACY_KERAS"
        )
    return None


def check() -> None:
    """Raises VersionError where `find_problem` finds one; uncaught, it is printed as one line."""
    problem = find_problem()
    if problem is None:
        return
    previous_hook = sys.excepthook

    def print_one_line(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, VersionError):
            print(f"ImportError: {error}", file=sys.stderr)
        else:
            previous_hook(kind, error, traceback)

    sys.excepthook = print_one_line
    raise VersionError(problem)
