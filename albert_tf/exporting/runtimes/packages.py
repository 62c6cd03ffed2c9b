"""Packages that only some of the formats need."""

from __future__ import annotations

import importlib.util

from albert_tf.errors import InputError


def require(package: str, extra: str) -> None:
    """Looks whether a package is there.

    Raises:
        InputError: it is not; the sentence names the extra that brings it.
    """
    if importlib.util.find_spec(package) is None:
        raise InputError(f"this needs the package {package}, which is not installed: pip install 'albert_tf[{extra}]'")
