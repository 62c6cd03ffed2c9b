"""Which module makes the signatures of a head."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from albert_tf.exporting import answers, choices, classifier, encoder, fillings, tags
from albert_tf.exporting.parts import HeadSignatures, Parts

SIGNATURES: Mapping[str, Callable[[Parts], HeadSignatures]] = {
    "encoder": encoder.signatures,
    "classifier": classifier.signatures,
    "multiple_choice": choices.signatures,
    "span": answers.signatures,
    "answerable_span": answers.signatures,
    "tagger": tags.signatures,
    "masked_lm": fillings.signatures,
    "pretraining": fillings.signatures,
}
