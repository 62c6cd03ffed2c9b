"""A SavedModel has answered before the first request: what TensorFlow Serving would replay, or one row of strings."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest
import tensorflow as tf

from albert_tf.exporting import warmup
from albert_tf.serving import saved_model
from albert_tf.serving.settings import Settings

needs_api = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow_serving") is None, reason="needs tensorflow-serving-api"
)


class Counting(tf.Module):
    """Counts the rows that it was asked."""

    def __init__(self):
        super().__init__()
        self.rows = tf.Variable(0)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="text"),
            tf.TensorSpec([None, None], tf.string, name="options"),
        ]
    )
    def serving_default(self, text, options):
        self.rows.assign_add(tf.size(options))
        return {"text": text}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.int32, name="ids")])
    def ids(self, ids):
        self.rows.assign_add(100)
        return {"ids": ids}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="number")])
    def picky(self, number):
        return {"number": tf.strings.to_number(number)}


def write(directory: pathlib.Path) -> str:
    model = Counting()
    tf.saved_model.save(
        model, str(directory), {name: getattr(model, name) for name in ("serving_default", "ids", "picky")}
    )
    return str(directory)


def rows_after_loading(path: str) -> int:
    return int(saved_model.load(path, Settings().max_answer_values)._loaded.rows.numpy())


def test_one_row_of_strings_is_asked_and_what_fails_is_no_trouble(tmp_path, caplog):
    assert rows_after_loading(write(tmp_path / "1")) == 1
    assert "the signature picky" in caplog.text


@needs_api
def test_what_a_server_would_replay_is_asked(tmp_path):
    path = write(tmp_path / "1")
    warmup.write(path, "m", 1, {"serving_default": {"text": ["a"], "options": [["b", "c"]]}})
    assert rows_after_loading(path) == 2 * (1 + 8)
    pathlib.Path(path, "assets.extra", warmup.WARMUP_FILE).write_bytes(b"damaged")
    assert rows_after_loading(path) == 1
