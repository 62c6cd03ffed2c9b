"""The sample text: what is kept of documentation, and that it is the same on every run."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

from albert_tf.errors import InputError
from data_prep import python_documentation

DOCSTRING = """Return the number of items in the queue.

The *limit* argument is optional, e.g. None means that there is no
limit at all.  See also ``queue.full()``.

>>> queue.size()
3
>>> queue.full()
False

Options:

- The first option is the name of the file (it must exist).
* The second option is not used by the caller.

    ==========  =========
    name        value
    ----------  ---------
    a = b | c   {x: y}

:param name: This is what the thing is called.
"""


def test_prose_is_kept_and_cut_to_sentences():
    assert python_documentation.prose_sentences(DOCSTRING) == [
        "Return the number of items in the queue.",
        "The limit argument is optional, e.g. None means that there is no limit at all.",
        "The first option is the name of the file (it must exist).",
        "The second option is not used by the caller.",
        "This is what the thing is called.",
    ]


@pytest.mark.parametrize(
    "noise",
    [
        "x = compute(a, b)[0] | mask.",
        "stmt ::= expression_stmt.",
        "Too short.",
        "This sentence is of the kind that has no end",
        '{"a": 1, "the": 2, "is": 3, "of": 4}.',
        "Foo bar baz qux quux corge grault.",
    ],
)
def test_noise_is_dropped(noise):
    assert python_documentation.prose_sentences(noise) == []


def test_docstrings_come_in_source_order():
    source = (
        '"""Module."""\nclass A:\n    """Class."""\n    def f(self):\n        """Method."""\n'
        'async def g():\n    """Function."""\n'
    )
    assert python_documentation.docstrings(source) == ["Module.", "Class.", "Method.", "Function."]
    assert python_documentation.docstrings("this is not Python") == []


def test_repeated_sentences_and_lone_ones_are_left_out():
    one, two, three = (f"This is the {n} sentence of the text." for n in ("first", "second", "third"))
    groups = [[f"{one} {two}"], [f"{two} {three}"], [f"{one} {three} It is here for the first time."]]
    # The second group is left with its third sentence alone, which counts as seen.
    assert list(python_documentation.documents(groups)) == [[one, two]]


def test_the_text_of_this_python(tmp_path: pathlib.Path):
    outputs = [tmp_path / "first.txt", tmp_path / "second.txt"]
    for output in outputs:
        command = [sys.executable, "-m", "data_prep.python_documentation", f"--output_file={output}"]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        assert str(output) in result.stdout
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    text = outputs[0].read_text(encoding="utf-8")
    assert len(text.encode()) > 1_000_000
    groups = text.strip("\n").split("\n\n")
    assert len(groups) > 300
    assert all(len(group.splitlines()) > 1 for group in groups)
    lines = [line for group in groups for line in group.splitlines()]
    assert len(lines) == len(set(lines))
    assert all(line == line.strip() and re.search(r"[.!?:][\"')\]]*$", line) for line in lines)


def test_no_documentation_is_said(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(python_documentation, "topic_texts", list)
    with pytest.raises(InputError, match="no documentation"):
        python_documentation.write_documents(str(tmp_path / "out.txt"), str(tmp_path))
    assert list(tmp_path.iterdir()) == []
