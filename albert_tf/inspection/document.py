"""A page of HTML that needs no other file and no network, and text made safe to be shown on it."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Mapping
from typing import Any

from albert_tf.inspection.style import SCRIPT, STYLE

FOLDED_CHARACTERS = 600  # a longer text shows its beginning and unfolds
_SHOWN_CHARACTERS = 350
# HTML forbids control characters, so they are shown by their pictures (U+2400 …); a lone surrogate has no bytes.
_PICTURES = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: "␡",
    **dict.fromkeys(range(0xD800, 0xE000), "�"),
}


def escaped(text: str) -> str:
    """The text as HTML shows it, quotes escaped too, so that it may stand in an attribute."""
    return html.escape(text.replace("\r\n", "\n").translate(_PICTURES))


def isolated(text: str) -> str:
    """A name or short text in a line of others, whose direction leaves theirs alone."""
    return f"<bdi>{escaped(text)}</bdi>"


def block(content: str, names: str = "text") -> str:
    """HTML of a text as a paragraph in the text's own direction."""
    return f'<p class="{names}" dir="auto">{content}</p>'


def folded(text: str, label: str = "") -> str:
    """A text as a paragraph; of a long one its beginning, which unfolds to the whole.

    Args:
        text: as in the file.
        label: what stands in front of it, such as "A".
    """
    prefix = f'<bdi class="part">{escaped(label)}</bdi> ' if label else ""
    if len(text) <= FOLDED_CHARACTERS:
        return block(prefix + escaped(text))
    return block(prefix + escaped(text[:_SHOWN_CHARACTERS]) + " …") + unfolding(
        f"the whole text, {len(text.split()):,} words", block(escaped(text))
    )


def unfolding(summary: str, content: str) -> str:
    """HTML that is shown when its summary (plain text) is clicked."""
    return f"<details><summary>{escaped(summary)}</summary>{content}</details>"


def fact_list(values: Mapping[str, Any]) -> str:
    """HTML of the numbers that a page begins with, name to value."""
    items = "".join(
        f"<li><b>{isolated(f'{value:.4f}' if isinstance(value, float) else str(value))}</b>"
        f"<span>{isolated(name)}</span></li>"
        for name, value in values.items()
    )
    return f'<ul class="facts">{items}</ul>'


def table(heads: Iterable[str], rows: Iterable[str]) -> str:
    """HTML of a table that scrolls where it is too wide.

    Args:
        heads: HTML of the columns' names.
        rows: HTML of each row, a `<tr>`.
    """
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(rows)
    return f'<div class="scrolls"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n'


def document(title: str, body: str) -> str:
    """The whole page. Its policy lets the browser load nothing and run no script but the page's own.

    Args:
        title: plain text.
        body: HTML.
    """
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{isolated(title)}</h1>\n{body}\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
