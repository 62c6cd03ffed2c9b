"""What a model that is served may be called."""

from __future__ import annotations

import re


def check_name(name: str) -> bool:
    """Whether a model may go by this name in addresses."""
    return re.fullmatch(r"[\w.-]+", name, flags=re.ASCII) is not None
