"""Small models of every head with random weights, and another process that asks their SavedModels."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import task_model
from albert_tf.config import AlbertConfig
from tests import pipeline_models, toy_vocabulary

HEADS: dict[str, dict[str, Any]] = {
    "AlbertModel": {},
    "AlbertForMaskedLM": {},
    "AlbertForPreTraining": {},
    "AlbertForSequenceClassification": {"labels": ("no", "perhaps", "ja – oui")},
    "AlbertForMultipleChoice": {},
    "AlbertForQuestionAnswering": {},
    "AlbertForAnswerableQuestionAnswering": {},
    "AlbertForTokenClassification": {"labels": ("O", "B-A", "I-A")},
}
SETTINGS = {
    "AlbertForSequenceClassification": {"max_seq_length": 20},
    "AlbertForMultipleChoice": {"max_seq_length": 30, "max_qa_length": 9},
    "AlbertForQuestionAnswering": {"max_seq_length": 32, "doc_stride": 8, "max_query_length": 10},
    "AlbertForAnswerableQuestionAnswering": {"max_seq_length": 32, "doc_stride": 8, "max_query_length": 10},
    "AlbertForTokenClassification": {"max_seq_length": 16, "doc_stride": 5},
}
# Asks each SavedModel named in requests.json; the second argument says whether it may import TensorFlow Text.
_PROCESS = """
import json, sys
import tensorflow as tf
if sys.argv[2] == "text":
    import tensorflow_text
def value(v):
    v = v.numpy()
    return json.loads(json.dumps(v.tolist(), default=lambda b: b.decode("utf-8", "replace")))
loaded, answers = {}, []
for directory, signature, inputs in json.load(open("requests.json")):
    if directory not in loaded:
        loaded[directory] = tf.saved_model.load(directory)
    function = loaded[directory].signatures[signature]
    specs = function.structured_input_signature[1]
    given = {name: tf.constant(rows, specs[name].dtype) for name, rows in inputs.items()}
    answers.append({name: value(v) for name, v in function(**given).items()})
known = [name for name in sys.modules if name.split(".")[0] in ("albert_tf", "tf_keras", "transformers")]
assert not known, known
json.dump(answers, open("answers.json", "w"))
"""


def make(model_class: str, **head: Any):
    """A model and its tokenizer."""
    tf.keras.utils.set_random_seed(2)
    config = AlbertConfig.from_dict({**pipeline_models.SIZES, "num_hidden_layers": 2})
    model = getattr(albert_tf, model_class)(config, **(head or HEADS[model_class]))
    random = np.random.default_rng(0)
    for name, variable in model.named_variables().items():
        variable.assign(random.normal(1.0 if name.endswith("gamma") else 0.0, 0.2, variable.shape))
    return model, albert_tf.load_tokenizer(toy_vocabulary.alphabet_model())


def kind_of(model):
    """The kind of task with this file's settings; None for a head without a task."""
    settings = SETTINGS.get(type(model).__name__)
    return settings and task_model.catalogue.kind_from_settings(model.head, settings)


def write_classifier(folder: pathlib.Path) -> pathlib.Path:
    """FOLDER/model, fine-tuned as it were on texts of one's own, and FOLDER/dev.tsv to score it on."""
    model, tokenizer = make("AlbertForSequenceClassification", labels=("no", "yes"))
    task_model.save(str(folder / "model"), model, tokenizer, kind_of(model), {"task": "text_file", "pairs": False})
    (folder / "dev.tsv").write_text(
        "text\tlabel\n" + "".join(f"a {'word ' * n}here\t{'yes' if n % 3 else 'no'}\n" for n in range(9))
    )
    return folder


def python_of_the_other_stack() -> str:
    """That of an environment beside this one's, as `make test-all` makes both; skips where there is none."""
    code = (
        "import sys, importlib.util as util\n"
        "print(sys.version_info >= (3, 12), all(map(util.find_spec, ['tensorflow', 'tensorflow_text'])))"
    )
    wanted = f"{sys.version_info < (3, 12)} True"
    for python in sorted(pathlib.Path(sys.prefix).parent.glob("py3*/bin/python")):
        result = subprocess.run([python, "-c", code], capture_output=True, text=True)
        if result.stdout.strip() == wanted:
            return str(python)
    pytest.skip("needs the environment of the other stack beside this one, with TensorFlow Text")


def ask(folder: pathlib.Path, requests: list[tuple[str, str, dict]], imports: str = "text", python: str | None = None):
    """(directory, signature, inputs) each to outputs by name, as lists, from another process in `folder`."""
    (folder / "requests.json").write_text(json.dumps(requests))
    command = [python or sys.executable, "-c", _PROCESS, folder, imports]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads((folder / "answers.json").read_text())
