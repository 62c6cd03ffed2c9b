"""All classes that Keras must know to load a file with them; importing this registers them."""

from albert_tf.models import AlbertForPreTraining, AlbertModel
from albert_tf.optimizers import AdamW, Lamb
from albert_tf.task_models import (
    AlbertForAnswerableQuestionAnswering,
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)

__all__ = [
    "AdamW",
    "AlbertForAnswerableQuestionAnswering",
    "AlbertForMaskedLM",
    "AlbertForMultipleChoice",
    "AlbertForPreTraining",
    "AlbertForQuestionAnswering",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "AlbertModel",
    "Lamb",
]
