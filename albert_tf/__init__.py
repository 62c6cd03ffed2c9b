"""ALBERT (Lan et al., arXiv 1909.11942) in TensorFlow 2.

Importing the package is light: TensorFlow is imported with the first of the names below that needs it.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from albert_tf import versions

__version__ = "0.1.0"

versions.check()

# The public names and the modules they live in.
_MODULES = {
    "AlbertConfig": "config",
    "AlbertForAnswerableQuestionAnswering": "keras_classes",
    "AlbertForMaskedLM": "keras_classes",
    "AlbertForMultipleChoice": "keras_classes",
    "AlbertForPreTraining": "keras_classes",
    "AlbertForQuestionAnswering": "keras_classes",
    "AlbertForSequenceClassification": "keras_classes",
    "AlbertForTokenClassification": "keras_classes",
    "AlbertModel": "keras_classes",
    "HeadConfig": "head_config",
    "InputError": "errors",
    "MultipleChoiceAnswerer": "pipelines.multiple_choice",
    "QuestionAnswerer": "pipelines.question_answerer",
    "TextClassifier": "pipelines.text_classifier",
    "TokenTagger": "pipelines.token_tagger",
    "config_path": "config_files",
    "finetuning_adamw": "finetuning_optimizer",
    "load_tokenizer": "tokenization",
}
__all__ = [*sorted(_MODULES), "__version__"]


if sys.modules.get("tensorflow"):  # Keras' load_model knows only classes that have been imported
    importlib.import_module("albert_tf.keras_classes")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")
    return getattr(importlib.import_module(f"albert_tf.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
