"""What stands on the encoder: which head, how many labels and what they are called; without TensorFlow."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, NamedTuple

from albert_tf import files, storage
from albert_tf.errors import InputError

HEAD_CONFIG_FILE = "head_config.json"


class Kind(NamedTuple):
    """What is common to all heads of a kind.

    Attributes:
        has_pooler: whether it stands on the pooled vector.
        model_class: the name of its model, here and in Hugging Face transformers.
        in_hugging_face: whether transformers has that class.
    """

    has_pooler: bool
    model_class: str
    in_hugging_face: bool = True


ANSWERABLE = "answerable_span"  # knows of questions without an answer, which "span" does not
SPAN_KINDS = ("span", ANSWERABLE)
KINDS = {
    "encoder": Kind(True, "AlbertModel"),
    "pretraining": Kind(True, "AlbertForPreTraining"),
    "masked_lm": Kind(False, "AlbertForMaskedLM"),
    "classifier": Kind(True, "AlbertForSequenceClassification"),
    "multiple_choice": Kind(True, "AlbertForMultipleChoice"),
    "span": Kind(False, "AlbertForQuestionAnswering"),
    ANSWERABLE: Kind(False, "AlbertForAnswerableQuestionAnswering", in_hugging_face=False),
    "tagger": Kind(False, "AlbertForTokenClassification"),
}
LABELLED_KINDS = ("classifier", "tagger")
SINGLE_LABEL, MULTI_LABEL, REGRESSION = "single_label_classification", "multi_label_classification", "regression"
PROBLEM_TYPES = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """One head.

    Attributes:
        kind: one of `KINDS`.
        num_labels: C, columns of the logits of a classifier or tagger; None for the other kinds, whose width is fixed.
        labels: what the C labels are called, in order; empty where nobody said.
        problem_type: of a classifier, one of `PROBLEM_TYPES`; None means regression for C = 1, else single label.

    Raises:
        InputError: a value is none of the choices, or the number of labels and their names disagree.
    """

    kind: str
    num_labels: int | None = None
    labels: tuple[str, ...] = ()
    problem_type: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.labels, str):  # would be read letter by letter
            raise InputError(f"labels is the text {self.labels!r}, but must be a list of names")
        object.__setattr__(self, "labels", tuple(self.labels))
        if self.kind not in KINDS:
            raise InputError(f"the kind of head is {self.kind!r}, but must be one of {', '.join(KINDS)}")
        if self.num_labels is None and self.labels:
            object.__setattr__(self, "num_labels", len(self.labels))
        if self.kind in LABELLED_KINDS:
            if isinstance(self.num_labels, bool) or not isinstance(self.num_labels, int) or self.num_labels < 1:
                raise InputError(
                    f"num_labels of a {self.kind} is {self.num_labels!r}, but must be a whole number of at least 1"
                )
        elif self.num_labels is not None:
            raise InputError(f"a head of the kind {self.kind!r} has no labels, but num_labels is {self.num_labels!r}")
        if self.labels and len(self.labels) != self.num_labels:
            raise InputError(f"num_labels is {self.num_labels}, but {len(self.labels)} labels are named")
        if len(set(self.labels)) != len(self.labels):
            raise InputError(f"a label is named twice: {', '.join(self.labels)}")
        if self.problem_type is not None and (self.kind != "classifier" or self.problem_type not in PROBLEM_TYPES):
            raise InputError(
                f"problem_type of a {self.kind} is {self.problem_type!r}; a classifier's is one of "
                f"{', '.join(PROBLEM_TYPES)}"
            )

    @property
    def model_class(self) -> str:
        """The name of the model that has this head."""
        return KINDS[self.kind].model_class

    @property
    def has_pooler(self) -> bool:
        """Whether the head stands on the pooled vector; a model without such a head has no pooler."""
        return KINDS[self.kind].has_pooler

    @property
    def problem(self) -> str | None:
        """The `problem_type` that holds, with None told by the number of labels; None for heads of other kinds."""
        if self.kind != "classifier" or self.problem_type:
            return self.problem_type
        return REGRESSION if self.num_labels == 1 else SINGLE_LABEL

    @property
    def in_hugging_face(self) -> bool:
        """Whether Hugging Face transformers has a class for this head."""
        return KINDS[self.kind].in_hugging_face

    def to_dict(self) -> dict[str, Any]:
        """The keys of head_config.json, those without a value left out."""
        return {key: value for key, value in dataclasses.asdict(self).items() if value not in (None, ())}

    def write(self, directory: str | os.PathLike[str]) -> None:
        """Writes head_config.json."""
        files.write_json(os.path.join(directory, HEAD_CONFIG_FILE), self.to_dict())

    @classmethod
    def from_dict(cls, values: Any, source: str) -> HeadConfig:
        """Makes one from the keys of head_config.json; `source` is for messages.

        Raises:
            InputError: an unknown key, no kind, or a value that does not fit.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(values, dict) or "kind" not in values or set(values) - known:
            raise InputError(f"{source} must be a JSON object with 'kind' and none but {', '.join(sorted(known))}")
        try:
            return cls(**values)
        except (InputError, TypeError) as error:
            raise InputError(f"{source}: {error}") from None

    @classmethod
    def read(cls, directory: str | os.PathLike[str]) -> HeadConfig | None:
        """The head of a portable directory, which may be at an address; None where it names none."""
        path = storage.join(os.fspath(directory), HEAD_CONFIG_FILE)
        return cls.from_dict(storage.read_json(path), path) if storage.exists(path) else None
