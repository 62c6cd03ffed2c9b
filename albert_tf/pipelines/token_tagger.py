"""Sentences of words to a tag for each word.

N sentences, C tags.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from albert_tf.head_config import HeadConfig
from albert_tf.pipelines.arguments import (
    label_names_given,
    rows_of,
    settings_given,
    texts_of,
    validation_columns,
)
from albert_tf.pipelines.pipeline import PREDICTION_BATCH, Pipeline
from albert_tf.task_kinds.arrays import label_names
from albert_tf.tasks.examples import TagExample
from albert_tf.tokenizer import Tokenizer


class TaggedWord(NamedTuple):
    """A word, its likeliest tag, and the tag's probability."""

    word: str
    tag: str
    probability: float


class TokenTagger(Pipeline):
    """Words in, tags out: names, parts of speech; learns from sentences whose tags are known."""

    heads = ("tagger",)
    begins_with = "labels=[…]"
    recipe_name = "conll"

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike[str],
        *,
        labels: Sequence[str] | None = None,
        max_seq_length: int | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> TokenTagger:
        """One that was fine-tuned before, or with `labels` one that has yet to learn.

        Args:
            path: a directory that `save` or `albert_tf.run_finetuning` wrote, or a tagger of any other form; with
                `labels`, whatever `AlbertModel.from_pretrained` reads.
            labels: the names of the tags, "O" and "B-PER" and such, to begin with a new head.
            max_seq_length: the most pieces of a window; longer sentences have several.
            tokenizer: for weights without a vocabulary beside them.

        Raises:
            InputError: nothing that fits is there.
        """
        settings = settings_given(max_seq_length=max_seq_length)
        if labels is None:
            return cls._load(path, settings)  # type: ignore[no-any-return]
        head = HeadConfig("tagger", labels=label_names_given(labels))
        return cls._begin(path, head, tokenizer, settings)  # type: ignore[no-any-return]

    @property
    def labels(self) -> tuple[str, ...]:
        """C tags in the order of the logits."""
        return label_names(self.kind.head)

    def fit(
        self,
        sentences: Iterable[str | Sequence[str]],
        tags: Iterable[Sequence[str]],
        validation_data: tuple[Iterable[str | Sequence[str]], Iterable[Sequence[str]]] | None = None,
        **arguments: Any,
    ) -> Any:
        """Learns; returns Keras' History.

        Args:
            sentences: N lists of words; a string is cut at its spaces.
            tags: N lists, a tag for each word.
            validation_data: both, to be measured on after each epoch.
            **arguments: `epochs`, `batch_size`, `seed`, `callbacks` and `verbose`, as of `Pipeline.fit_examples`.

        Raises:
            InputError: there is not a tag to each word, or a tag is none of the tagger's.
        """
        validation = None
        if validation_data is not None:
            validation = _examples(*validation_columns(validation_data, "sentences", "tags"))
        return self.fit_examples(_examples(sentences, tags), validation, **arguments)

    def evaluate(
        self,
        sentences: Iterable[str | Sequence[str]],
        tags: Iterable[Sequence[str]],
        *,
        batch_size: int = PREDICTION_BATCH,
    ) -> dict[str, float]:
        """Metric to value, `loss` among them; with `entity_f1` that of each type of entity too."""
        return self.evaluate_examples(_examples(sentences, tags), batch_size=batch_size)

    def predict(
        self, sentences: Iterable[str | Sequence[str]], *, batch_size: int = PREDICTION_BATCH
    ) -> list[list[TaggedWord]]:
        """For each sentence, in order, its words with their tags."""
        examples = _examples(sentences, None)
        predictions = self.predict_examples(examples, batch_size=batch_size)
        return [
            [TaggedWord(*both) for both in zip(example.words, prediction.tags, prediction.probabilities)]
            for example, prediction in zip(examples, predictions)
        ]

    def _default_metrics(self) -> Sequence[str]:
        has_entities = any(label.startswith("B-") for label in self.labels)
        return ("entity_f1", "accuracy") if has_entities else ("accuracy",)


def _examples(sentences: Iterable[str | Sequence[str]], tags: Iterable[Sequence[str]] | None) -> list[TagExample]:
    """Raises InputError: a sentence or its tags are no lists of strings, or there are not as many of both."""
    return [
        TagExample(
            str(number),
            texts_of(words.split() if isinstance(words, str) else words, f"sentences[{number}]", "words"),
            None if given is None else label_names_given(given, f"tags[{number}]", "tags"),
            f"sentence {number}",
        )
        for number, (words, given) in enumerate(rows_of(sentences=sentences, tags=tags))
    ]
