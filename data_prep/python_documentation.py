"""Sample text that is on every machine: the English documentation inside a Python installation.

Documents are the language-reference topics of `pydoc` and the docstrings of each module of the standard library, cut to
sentences, one a line, with a blank line after each document. Nothing is downloaded, and one Python always gives the
same text.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence

from absl import flags

from albert_tf import errors, files, progress
from albert_tf.errors import InputError

# Of the standard library: folders whose docstrings say little about anything, or that are not part of it.
SKIPPED_DIRECTORIES = frozenset({"__pycache__", "dist-packages", "idle_test", "site-packages", "test", "tests"})
STOP_WORDS = frozenset(
    "a an and are as at be been but by can does for from has have if in into is it its may must no not of on or "
    "should than that the their them then there these they this to was when where which will with you".split()
)
MIN_WORDS, MAX_WORDS = 4, 100
MIN_LETTER_SHARE = 0.72  # of a sentence's characters without spaces; code and tables have less
MIN_STOP_WORD_SHARE = 0.1

_LIST_ITEM = re.compile(r"^\s*(?:[-*+•]|\(?\d{1,2}[.)]|\[\d+\])\s+")
_FIELD = re.compile(r"^\s*(?::\w[^:]*:|@\w+)\s*")
_SENTENCE_END = re.compile(r"([.!?][\"')\]]*)\s+(?=[\"'(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|al|Fig|No|Mr|Dr|St|Jr|[A-Z])\.$")
_MARKUP = re.compile(r"``|\*\*|(?<!\w)[*`](?=\w)|(?<=\w)[*`](?!\w)|(?<=\s):(?:\w+:)?(?=`)")
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")


def paragraphs(text: str) -> Iterator[str]:
    """Cuts a docstring or topic to paragraphs and list items, each on one line; doctests and rulers end one."""
    lines: list[str] = []
    in_doctest = False
    for line in [*text.expandtabs().splitlines(), ""]:
        stripped = line.strip()
        in_doctest = bool(stripped) and (in_doctest or stripped.startswith((">>>", "$ ")))
        is_break = in_doctest or not re.search(r"[^\W\d_]", stripped)
        starts_item = bool(_LIST_ITEM.match(line) or _FIELD.match(line))
        if lines and (is_break or starts_item):
            yield " ".join(lines)
            lines = []
        if not is_break:
            lines.append(_FIELD.sub("", _LIST_ITEM.sub("", stripped)).strip())


def split_sentences(paragraph: str) -> Iterator[str]:
    """Cuts a paragraph behind `.`, `!` or `?` where a capital or a digit follows, abbreviations excepted."""
    start = 0
    for match in _SENTENCE_END.finditer(paragraph):
        sentence = paragraph[start : match.end(1)]
        if not _ABBREVIATION.search(sentence):
            yield sentence.strip()
            start = match.end()
    yield paragraph[start:].strip()


def is_prose(sentence: str) -> bool:
    """Whether a sentence reads as English: a letter first, an end, mostly letters, and enough of the small words."""
    words = _WORD.findall(sentence)
    if not MIN_WORDS <= len(words) <= MAX_WORDS or not re.match(r"[\"'(]?[A-Za-z]", sentence):
        return False
    if not re.search(r"[.!?:][\"')]*$", sentence) or re.search(r"::=|\s{3,}|[<>=|_]{2,}|[{}\\]|\.\.\.\s", sentence):
        return False
    letters = sum(map(len, words))
    small_words = sum(word.lower() in STOP_WORDS for word in words)
    return letters >= MIN_LETTER_SHARE * len(sentence.replace(" ", "")) and small_words >= MIN_STOP_WORD_SHARE * len(
        words
    )


def prose_sentences(text: str) -> list[str]:
    """The sentences of a docstring or topic that read as prose, without markup."""
    found = []
    for paragraph in paragraphs(text):
        for sentence in split_sentences(re.sub(r"\s+", " ", _MARKUP.sub("", paragraph))):
            if is_prose(sentence):
                found.append(sentence)
    return found


def docstrings(source: str) -> list[str]:
    """The docstrings of a module's source, in their order; none where this Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the source
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, holders)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))
    return [inspect.cleandoc(text) for text in map(ast.get_docstring, nodes) if text]


def topic_texts() -> list[str]:
    """The language-reference topics of pydoc, sorted by name; empty where the installation left them out."""
    if importlib.util.find_spec("pydoc_data") is None or importlib.util.find_spec("pydoc_data.topics") is None:
        return []
    from pydoc_data import topics

    return [topics.topics[name] for name in sorted(topics.topics)]


def module_files(directory: str) -> list[str]:
    """The Python files below a directory, sorted by their path inside it."""
    found = []
    for parent, names, file_names in os.walk(directory):
        names[:] = sorted(name for name in names if name not in SKIPPED_DIRECTORIES and not name.startswith("."))
        found += [os.path.join(parent, name) for name in file_names if name.endswith(".py")]
    return sorted(found, key=lambda name: os.path.relpath(name, directory).replace(os.sep, "/"))


def documents(texts: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Makes each group of texts a document of sentences; a sentence seen before, and a lone one, is left out."""
    seen: set[str] = set()
    for group in texts:
        sentences = []
        for text in group:
            for sentence in prose_sentences(text):
                if sentence not in seen:
                    seen.add(sentence)
                    sentences.append(sentence)
        if len(sentences) > 1:
            yield sentences


def write_documents(output_file: str, standard_library: str) -> tuple[int, int, int]:
    """Writes the sample text and returns the numbers of documents, sentences and bytes.

    Raises:
        InputError: the Python installation has no documentation to speak of.
    """
    sources = module_files(standard_library)
    topics = topic_texts()
    num_documents = num_sentences = num_bytes = 0
    bar = progress.Progress(len(topics) + len(sources), "reading documentation", "files")

    def texts() -> Iterator[list[str]]:
        for topic in topics:
            yield [topic]
            bar.update(1)
        for name in sources:
            with open(name, encoding="utf-8", errors="replace") as source:
                yield docstrings(source.read())
            bar.update(1)

    with bar, files.atomic_write(output_file) as file:
        for sentences in documents(texts()):
            block = ("\n".join(sentences) + "\n\n").encode("utf-8")
            file.write(block)
            num_documents += 1
            num_sentences += len(sentences)
            num_bytes += len(block)
        if num_documents < 2:
            raise InputError(
                f"this Python has no documentation to train on (looked into {standard_library}): give text of your own"
            )
    return num_documents, num_sentences, num_bytes


def define_flags() -> None:
    flags.DEFINE_string("output_file", None, "Text file to write: one sentence a line, a blank line after a document.")
    flags.mark_flag_as_required("output_file")


def main(argv: Sequence[str]) -> None:
    del argv
    output_file = flags.FLAGS.output_file
    num_documents, num_sentences, num_bytes = write_documents(output_file, sysconfig.get_path("stdlib"))
    print(
        f"{output_file}: {num_documents:,} documents, {num_sentences:,} sentences, {num_bytes:,} bytes of the "
        f"documentation in Python {sys.version_info.major}.{sys.version_info.minor}"
    )


if __name__ == "__main__":
    define_flags()
    errors.run_main(main)
