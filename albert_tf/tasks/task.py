"""The contract of a task: which files, which head, which labels, what counts, and how a submission is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from albert_tf import storage
from albert_tf.errors import InputError
from albert_tf.head_config import REGRESSION, HeadConfig
from albert_tf.tasks.examples import Example, Prediction

TRAIN = "train"
Reader = Callable[[str], "list[Example]"]  # path of a file or, where the original layout is one, of a directory
# (where to write, examples, their predictions, labels) -> the files that were written
Writer = Callable[[str, Sequence[Example], Sequence[Prediction], Sequence[str]], "list[str]"]


class Layout(NamedTuple):
    """How a table of a person's own begins.

    Attributes:
        names: of the header; None where there is none.
        width: how many columns there are.
        first: the place of the first example.
    """

    names: tuple[str, ...] | None
    width: int
    first: str


@dataclasses.dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        name: in lower case, "sts-b".
        title: as the literature writes it, "STS-B".
        head: the kind of head, see `head_config.KINDS`.
        read: reads one split's file; every error is an `InputError` that names the file and the line.
        files: split to the names of its file or directory below the data directory, the first that exists is taken.
            "train" is what is trained on; splits that begin with "dev" have labels, those with "test" need none.
        write_submission: writes the predictions of one split in the form its scorer takes; the path is given without
            an ending (`predictions/test_matched`).
        metrics: names in `metrics`; the first chooses the best checkpoint, the next ones where it is equal.
        labels: in the order of the logits; empty for a regression, and for a task whose labels the training file tells.
        problem_type: of a classifier, see `HeadConfig`.
        start_from: the task whose fine-tuned model this one's published results started from, or None.
        words: what a person should know, in a sentence for the list of tasks.
        starts_at_mean: whether the new head of a regression begins at the mean of the labels, and not at 0 as released.
        columns: of a person's own files; path of each file that was read to a sentence on which column is what.
        layouts: of a person's own tables of texts; path of each that was read to how it begins.
    """

    name: str
    title: str
    head: str
    read: Reader
    files: Mapping[str, tuple[str, ...]]
    write_submission: Writer
    metrics: tuple[str, ...]
    labels: tuple[str, ...] = ()
    problem_type: str | None = None
    start_from: str | None = None
    words: str = ""
    starts_at_mean: bool = False
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False)
    layouts: Mapping[str, Layout] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def dev_splits(self) -> tuple[str, ...]:
        """The splits with labels that are not trained on; the first chooses the best checkpoint."""
        return tuple(split for split in self.files if split.startswith("dev"))

    @property
    def test_splits(self) -> tuple[str, ...]:
        """The splits to predict for a submission."""
        return tuple(split for split in self.files if split.startswith("test"))

    def path(self, data_dir: str, split: str) -> str:
        """Where a split lies.

        Raises:
            InputError: there is no such split, or no file of it in the directory; the message has the full name.
        """
        if split not in self.files:
            raise InputError(f"{self.title} has no split {split!r}: it has {', '.join(self.files)}")
        paths = [storage.join(data_dir, name) for name in self.files[split]]
        for path in paths:
            if storage.exists(path):
                return path
        raise InputError(
            f"{self.title} needs {' or '.join(paths)}, which is not there: give the directory of its original files "
            f"with --data_dir, or the file itself with --{split.split('_')[0]}_file"
        )

    def head_config(self, labels: Sequence[str] = ()) -> HeadConfig:
        """The head for this task; `labels` as found in the data, where the task itself names none."""
        names = self.labels or tuple(labels)
        if self.head == "classifier" and self.problem_type == REGRESSION:
            return HeadConfig("classifier", 1, (), REGRESSION)
        if self.head in ("classifier", "tagger"):
            return HeadConfig(self.head, len(names), names, self.problem_type)
        return HeadConfig(self.head)
