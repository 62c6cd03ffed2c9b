"""The splits of a task: which files they are, their examples and, with a tokenizer, their sequences. No TensorFlow."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Collection, Iterable, Mapping, Sequence

from absl import logging

from albert_tf import storage
from albert_tf.errors import InputError
from albert_tf.tasks import rows
from albert_tf.tasks.examples import Example, TagExample, TextExample
from albert_tf.tasks.task import TRAIN, Task


@dataclasses.dataclass(frozen=True)
class Split:
    """Examples of one file.

    Attributes:
        name: "train", "dev_matched", …
        path: where they were read.
        examples: in the order of the file.
        in_file: how many the file has, where `examples` are some of them.
    """

    name: str
    path: str
    examples: Sequence[Example]
    in_file: int


def kind_of_split(name: str) -> str:
    """ "train", "dev" or "test": what a split is for, and which flag names its file."""
    return name.split("_")[0]


def find_paths(task: Task, data_dir: str | None, files: Mapping[str, str | None]) -> dict[str, str]:
    """Split to path, for all splits whose files are there.

    Args:
        task: the task.
        data_dir: of its files under their usual names; None for none.
        files: "train", "dev" and "test" to a file that takes the place of all splits of that kind.

    Raises:
        InputError: a file that is named is not there, or the directory is none.
    """
    if data_dir is not None and not storage.is_directory(data_dir):
        raise InputError(f"--data_dir={data_dir} is not a directory: give the one with the files of {task.title}")
    paths = {}
    for split in task.files:
        kind = kind_of_split(split)
        if files.get(kind):
            continue
        if data_dir is not None and any(storage.exists(storage.join(data_dir, name)) for name in task.files[split]):
            paths[split] = task.path(data_dir, split)
    for kind, path in files.items():
        if path and not storage.exists(path):
            raise InputError(f"--{kind}_file={path} does not exist")
        if path:
            paths[kind] = path
    return paths


def check_needed(task: Task, data_dir: str | None, paths: Mapping[str, str], kinds: Iterable[str]) -> None:
    """Refuses to go on without a split of each of these kinds.

    Raises:
        InputError: there is none; the message has the names that were looked for.
    """
    for kind in kinds:
        if any(kind_of_split(split) == kind for split in paths):
            continue
        wanted = next((split for split in task.files if kind_of_split(split) == kind), None)
        if wanted is None:
            raise InputError(f"{task.title} has no {kind} split: name a file with --{kind}_file")
        if data_dir is None:
            raise InputError(f"--data_dir is missing: the directory with {' or '.join(task.files[wanted])}")
        task.path(data_dir, wanted)


def read_split(task: Task, name: str, path: str, *, most: int | None = None, seed: int = 0) -> Split:
    """Reads a split.

    Args:
        task: the task.
        name: of the split.
        path: of its file or directory.
        most: take that many examples, drawn by `seed`, in the order of the file; None for all.
        seed: of the draw.

    Raises:
        InputError: the file cannot be read; the message has the line.
    """
    examples = task.read(path)
    if not examples:
        raise InputError(f"{path} has no examples")
    some: Sequence[Example] = examples
    if most is not None and most < len(examples):
        some = [examples[at] for at in sorted(random.Random(seed).sample(range(len(examples)), most))]
    return Split(name, path, some, len(examples))


def has_labels(examples: Iterable[Example]) -> bool:
    """Whether the file tells what is right, of one example at least."""
    return any(
        getattr(example, name, None) is not None for example in examples for name in ("label", "answers", "tags")
    )


def check_labels(task: Task, split: Split) -> None:
    """Refuses a split to train on or to score that does not tell what is right.

    Raises:
        InputError: no example has a label; the message names the file and, of a person's own, its columns.
    """
    kind = kind_of_split(split.name)
    if kind not in (TRAIN, "dev") or has_labels(split.examples):
        return
    is_own = split.path in task.columns
    said = f" ({task.columns[split.path]})" if is_own else ""
    help_ = f"{'name its column with --label_column, or ' if is_own else ''}give another file as --{kind}_file"
    what = "nothing can be learned" if kind == TRAIN else "there are no scores (--nodo_eval goes without)"
    raise InputError(f"{split.path} has no label in any row{said}, and without them {what}: {help_}")


def without_placeholders(split: Split, labels: Sequence[str]) -> Split:
    """The split; without labels where it is only predicted and none of them is one, as the -1 of GLUE's test files.

    Args:
        split: of any kind; one to train on or to score stays as it is.
        labels: those of the model; () where it has none by name, as a regression.

    Raises:
        InputError: some labels are among those of the model and some are not.
    """
    if kind_of_split(split.name) != "test" or not labels:
        return split
    found = [pair for example in split.examples for pair in _labels_with_places(example)]
    other = next(((label, place) for label, place in found if label not in labels), None)
    if other is None:
        return split
    label, place = other
    if any(label in labels for label, _ in found):
        raise InputError(
            f"{place}: the label is {label!r}, and the model has {rows.names(labels)}: a file to predict (--test_file) "
            "needs no labels, but this one has some of the model's: correct the others, or take away all"
        )
    logging.warning(
        "%s: no row has a label of the model (%s), the first has %r: they are taken for unknown, and not scored",
        split.path,
        rows.names(labels),
        label,
    )
    return dataclasses.replace(split, examples=[_without_label(example) for example in split.examples])


def _labels_with_places(example: Example) -> list[tuple[str, str]]:
    if isinstance(example, TagExample) and example.tags is not None:
        return list(zip(example.tags, example.word_places or [example.place] * len(example.tags)))
    if isinstance(example, TextExample) and isinstance(example.label, (str, tuple)):
        labels = (example.label,) if isinstance(example.label, str) else example.label
        return [(label, example.place) for label in labels]
    return []


def _without_label(example: Example) -> Example:
    if isinstance(example, TagExample):
        return dataclasses.replace(example, tags=None)
    return dataclasses.replace(example, label=None) if isinstance(example, TextExample) else example


def check_pairs(examples: Iterable[Example], pairs: bool | None, learned_from: str, columns: str | None = None) -> None:
    """Refuses single texts beside pairs to learn from, and the other way round.

    Args:
        examples: to score or to predict.
        pairs: what is learned from; None where that is not known.
        learned_from: where that is told, as the beginning of a sentence: "train.tsv has".
        columns: of a person's own file, a sentence on which column is what.

    Raises:
        InputError: with the place of the first one.
    """
    for example in examples if pairs is not None else ():
        if isinstance(example, TextExample) and (example.text_b is not None) != pairs:
            what, there = ("pairs of texts", "a single one") if pairs else ("single texts", "a pair")
            hint = f" ({columns}; --text_column, --text_b_column and --label_column name them)" if columns else ""
            raise InputError(f"{example.place}: {learned_from} {what}, and this is {there}{hint}")


def warn_of_unlike_headers(task: Task, splits: Collection[Split]) -> None:
    """Warns of a file that seems to have a header too, since another with as many columns has one.

    That alone says little, as some people write a header into one file and none into the other. It seems so where what
    stands in the label's column of the first row is in no other row.
    """
    layouts = {split.path: task.layouts[split.path] for split in splits if split.path in task.layouts}
    for split in [split for split in splits if split.path in layouts]:
        names, width, first = layouts[split.path]
        other = next((path for path, of in layouts.items() if of.names is not None and of.width == width), None)
        if names is not None or other is None:
            continue
        pairs = [pair for example in split.examples for pair in _labels_with_places(example)]
        own = [label for label, place in pairs if place == first]
        if own and not set(own).intersection(label for label, place in pairs if place != first):
            logging.warning(
                "%s is taken for a row, though its label %r is in no other one and %s has a header: if the line is a "
                "header too, say --has_header",
                first,
                ", ".join(own),
                other,
            )


def warn_of_overlap(training: Split, others: Iterable[Split]) -> None:
    """Warns of a split that is the training file itself."""
    for split in others:
        if storage.same_file(split.path, training.path):
            logging.warning("%s is %s: its scores say nothing of other texts", split.name, TRAIN)
