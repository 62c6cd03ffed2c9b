"""Texts, or pairs of texts, to classes, to several classes at once, or to numbers.

N texts, C labels.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.finetuning_data import check_pairs
from albert_tf.head_config import MULTI_LABEL, REGRESSION, SINGLE_LABEL, HeadConfig
from albert_tf.pipelines.arguments import (
    label_name,
    label_names_given,
    plain,
    rows_of,
    settings_given,
    validation_columns,
)
from albert_tf.pipelines.learner import Batch
from albert_tf.pipelines.pipeline import PREDICTION_BATCH, Pipeline
from albert_tf.task_file import PAIRS
from albert_tf.task_kinds.arrays import label_names
from albert_tf.task_kinds.texts import LABEL_IDS
from albert_tf.tasks import text_file
from albert_tf.tasks.examples import Example, TextExample, TextPrediction, come_in_pairs
from albert_tf.tokenizer import Tokenizer

Text = Union[str, "tuple[str, str]", "list[str]"]


class ClassifiedText(NamedTuple):
    """The answer to one text.

    Attributes:
        label: the likeliest label; of a multi-label classifier a tuple of those above one half; of a regression the
            number.
        probability: of that label; None where it is not one of several.
        probabilities: label to probability, of all; of a multi-label classifier each by itself; empty of a regression.
    """

    label: str | tuple[str, ...] | float
    probability: float | None
    probabilities: Mapping[str, float]


class TextClassifier(Pipeline):
    """Strings in, labels out; learns from strings.

    >>> classifier = TextClassifier.from_pretrained("albert_base_v2", labels=["bad", "good"])
    >>> classifier.fit(texts, labels, validation_data=(more_texts, more_labels))
    >>> classifier.predict(["A fine film."])[0].label
    """

    heads = ("classifier",)
    begins_with = "labels=[…]"
    recipe_name = "text_file"

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike[str],
        *,
        labels: Sequence[str | int] | None = None,
        regression: bool = False,
        multi_label: bool = False,
        max_seq_length: int | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> TextClassifier:
        """A classifier that was fine-tuned before, or one that has yet to learn.

        Args:
            path: a directory that `save` or `albert_tf.run_finetuning` wrote, or a classifier of any other form; with
                `labels` or `regression`, whatever `AlbertModel.from_pretrained` reads, whose head then begins at
                random unless it is the very same.
            labels: the names of the classes, to begin with a new head; numbers and truth values stand for the strings
                that they print.
            regression: begin with a head for numbers.
            multi_label: any number of the labels may hold at once.
            max_seq_length: the most pieces of a text or pair; by default as it was fine-tuned, else 512.
            tokenizer: for weights without a vocabulary beside them.

        Raises:
            InputError: nothing that fits is there, or it was never fine-tuned and no labels are given.
        """
        settings = settings_given(max_seq_length=max_seq_length)
        if labels is None and not regression:
            return cls._load(path, settings)  # type: ignore[no-any-return]
        if labels is None:
            head = HeadConfig("classifier", 1, (), REGRESSION)
        elif regression:
            raise InputError("a regression has no labels: give labels= or regression=True")
        else:
            problem = MULTI_LABEL if multi_label else SINGLE_LABEL
            names = label_names_given(labels)
            if len(names) == 1 and not multi_label:
                raise InputError(
                    f"labels names {names[0]!r} alone: give two or more, multi_label=True for one that holds or does "
                    "not, or regression=True for numbers"
                )
            head = HeadConfig("classifier", labels=names, problem_type=problem)
        return cls._begin(path, head, tokenizer, settings)  # type: ignore[no-any-return]

    @property
    def labels(self) -> tuple[str, ...]:
        """C labels in the order of the probabilities; () for a regression."""
        return label_names(self.kind.head)

    def fit(
        self,
        texts: Iterable[Text],
        labels: Iterable[Any],
        validation_data: tuple[Iterable[Text], Iterable[Any]] | None = None,
        **arguments: Any,
    ) -> Any:
        """Learns; returns Keras' History.

        Args:
            texts: N strings, or N pairs of two strings.
            labels: N labels by name, or the numbers they were named by; lists of labels for a multi-label classifier;
                numbers for a regression.
            validation_data: texts and labels to be measured on after each epoch.
            **arguments: `epochs`, `batch_size`, `seed`, `callbacks` and `verbose`, as of `Pipeline.fit_examples`.

        Raises:
            InputError: there is not a label to each text, a label is none of the classifier's, or some texts are single
                strings and some are pairs.
        """
        examples, validation = self._examples(texts, labels), None
        if validation_data is not None:
            more_texts, more_labels = validation_columns(validation_data, "texts", "labels")
            validation = self._examples(more_texts, more_labels, "validation text")
            check_pairs(validation, come_in_pairs(examples), "this classifier is to learn from")
        return self.fit_examples(examples, validation, **arguments)

    def fit_examples(
        self, examples: Sequence[Example], validation: Sequence[Example] | None = None, **arguments: Any
    ) -> Any:
        """See `Pipeline.fit_examples`; remembers whether the texts came in pairs."""
        pairs = come_in_pairs(examples)
        if pairs is not None:
            self.about[PAIRS] = pairs
        return super().fit_examples(examples, validation, **arguments)

    def evaluate(
        self, texts: Iterable[Text], labels: Iterable[Any], *, batch_size: int = PREDICTION_BATCH
    ) -> dict[str, float]:
        """Metric to value, `loss` among them.

        Raises:
            InputError: as `fit`, or the texts are pairs and the classifier learned from single ones, or the reverse.
        """
        return self.evaluate_examples(self._examples_as_learned(texts, labels), batch_size=batch_size)

    def predict(self, texts: Iterable[Text], *, batch_size: int = PREDICTION_BATCH) -> list[ClassifiedText]:
        """One answer for each text, in order.

        Raises:
            InputError: the texts are pairs and the classifier learned from single ones, or the reverse.
        """
        predictions = self.predict_examples(self._examples_as_learned(texts, None), batch_size=batch_size)
        return [self._classified(prediction) for prediction in predictions]

    def export(self, directory: str | os.PathLike[str], *, pairs: bool | None = None, ids_only: bool = False) -> None:
        """Writes a SavedModel with texts in and labels out, see `exporting.saved_model`.

        Args:
            directory: where; an earlier one is replaced.
            pairs: whether it takes `text_a` and `text_b` in place of `text`; by default as in `fit`.
            ids_only: leave out the signature with texts, so that plain TensorFlow, without TensorFlow Text, loads it.

        Raises:
            InputError: nothing tells whether texts come in pairs, or the directory cannot be written.
        """
        from albert_tf.exporting.saved_model import export_saved_model

        if ids_only:
            export_saved_model(directory, self.model)
            return
        pairs = self.about.get(PAIRS) if pairs is None else pairs
        if pairs is None:
            raise InputError("nothing tells whether this classifier takes single texts or pairs: give pairs=")
        export_saved_model(directory, self.model, self.tokenizer, kind=self.kind, pairs=pairs)

    def _examples(self, texts: Iterable[Text], labels: Iterable[Any] | None, name: str = "text") -> list[TextExample]:
        """Examples whose place in messages is "text 3", counted from 0 as in Python.

        Raises:
            InputError: a text is no string and no pair of strings, single ones and pairs are mixed, or there is not a
                label to each.
        """
        of_label = plain if self.kind.head.problem == REGRESSION else _named
        examples = []
        for number, (text, label) in enumerate(rows_of(texts=texts, labels=labels)):
            first, second = (text, None) if isinstance(text, str) else _pair(text, f"{name} {number}")
            examples.append(TextExample(str(number), first, second, of_label(label), f"{name} {number}"))
        if len({example.text_b is None for example in examples}) > 1:
            raise InputError(f"some {name}s are single strings and some are pairs: give one or the other")
        return examples

    def _examples_as_learned(self, texts: Iterable[Text], labels: Iterable[Any] | None) -> list[TextExample]:
        examples = self._examples(texts, labels)
        check_pairs(examples, self.about.get(PAIRS), "this classifier has learned from")
        return examples

    def _classified(self, prediction: TextPrediction) -> ClassifiedText:
        if prediction.probabilities is None:
            return ClassifiedText(prediction.label, None, {})
        probabilities = dict(zip(self.labels, map(float, prediction.probabilities)))
        label = prediction.label
        return ClassifiedText(label, probabilities[label] if isinstance(label, str) else None, probabilities)

    def _default_metrics(self) -> Sequence[str]:
        return text_file.DEFAULT_METRICS[self.kind.head.problem or SINGLE_LABEL]

    def _can_observe(self) -> bool:
        return True

    def _observed(self, outputs: tf.Tensor, batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        """Labels [B], [B,C] or, of a regression, [B]; the probabilities [B,C] or the numbers [B]."""
        problem, labels = self.kind.head.problem, batch[LABEL_IDS]
        if problem == REGRESSION:
            return labels, outputs[:, 0]
        return labels, tf.sigmoid(outputs) if problem == MULTI_LABEL else tf.nn.softmax(outputs)

    def _training_metrics(self) -> list[Any]:
        if "accuracy" not in self._names or self.kind.head.problem in (REGRESSION, MULTI_LABEL):
            return []
        return [tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")]


def _pair(text: Any, place: str) -> tuple[str, str]:
    if isinstance(text, (tuple, list)) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return text[0], text[1]
    raise InputError(f"{place} is {text!r:.60}, but must be a string or a pair of two strings")


def _named(label: Any) -> Any:
    """A label, or several as a tuple, by name."""
    label = plain(label)
    if isinstance(label, (set, frozenset)):
        return tuple(sorted(map(label_name, label)))
    return tuple(map(label_name, label)) if isinstance(label, (list, tuple)) else label_name(label)
