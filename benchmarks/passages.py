"""Text whose neighbours share words: passages of a corpus, each beside some of its own clauses."""

from __future__ import annotations

import pathlib
import random
import re
from collections.abc import Iterator

from albert_tf.files import atomic_directory, expand_globs
from data_prep.documents import open_text, read_documents

_CLAUSES = re.compile(r"(?<=[,;:.!?])\s+")


def write_passages(input_file: str, directory: pathlib.Path, words: int = 26) -> str:
    """Writes each passage of some words as a document of two lines: the passage, and clauses of it, in either order.

    The clauses are about half of the passage's, shuffled. With NSP a model has to find what the two have in common: the
    Inverse Cloze Task of Lee et al. 2019 (arXiv 1906.00300, section 4) with what is asked for left in place.

    Args:
        input_file: plain or gzip text files, a blank line between documents, which no passage crosses.
        directory: gets a file for each of them, unless it is there already.
        words: of a passage.

    Returns:
        The pattern of what it wrote.
    """
    pattern = str(directory / "*.txt")
    if directory.exists():
        return pattern
    rng = random.Random(1)
    with atomic_directory(directory) as new:
        for index, path in enumerate(expand_globs(input_file, "input_file")):
            with open(pathlib.Path(new) / f"{index:05}.txt", "w", encoding="utf-8") as file:
                for passage in _passages(path, words):
                    file.write("\n".join(_beside_its_clauses(passage, rng)) + "\n\n")
    return pattern


def _passages(path: str, words: int) -> Iterator[str]:
    with open_text(path) as file:
        for document in read_documents(file, path, 0, 0, None, "strict"):
            of_it = " ".join(document.lines).split()
            for start in range(0, len(of_it), words):
                yield " ".join(of_it[start : start + words])


def _beside_its_clauses(passage: str, rng: random.Random) -> list[str]:
    clauses = _CLAUSES.split(passage)
    some = [clause for clause in clauses if rng.random() < 0.5] or [rng.choice(clauses)]
    rng.shuffle(some)
    lines = [passage, " ".join(some)]
    rng.shuffle(lines)
    return lines
