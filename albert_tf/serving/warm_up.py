"""Calls a SavedModel before a user does: TensorFlow makes its plans when it is called for the first time.

The requests are those that TensorFlow Serving would replay (`exporting.warmup`), if they are there and
tensorflow-serving-api is installed to read them; else one row of each signature that takes nothing but strings.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from albert_tf.exporting.serving_files import EXTRA
from albert_tf.exporting.warmup import WARMUP_FILE
from albert_tf.serving.backend import DEFAULT_SIGNATURE, Signature

_TEXT = "A text."


def warm_up(path: str, functions: Mapping[str, Any], signatures: Mapping[str, Signature]) -> None:
    """Calls the functions of the signatures; one that does not take the request is none the worse for it.

    Args:
        path: of the SavedModel.
        functions: of each signature.
        signatures: what goes in.
    """
    for name, inputs in _recorded(path) or _rows(signatures):
        try:
            functions[name](**inputs)
        except Exception as error:  # of whatever kind: what it is asked here, nobody wants to know
            logging.warning("the signature %s of %s does not answer the warm-up: %s", name, path, error)


def _recorded(path: str) -> list[tuple[str, dict[str, tf.Tensor]]]:
    file = os.path.join(path, EXTRA, WARMUP_FILE)
    if not os.path.isfile(file) or importlib.util.find_spec("tensorflow_serving") is None:
        return []
    from tensorflow_serving.apis import prediction_log_pb2

    try:
        logs = [prediction_log_pb2.PredictionLog.FromString(one.numpy()) for one in tf.data.TFRecordDataset(file)]
        requests = [log.predict_log.request for log in logs if log.HasField("predict_log")]
        return [
            (
                request.model_spec.signature_name or DEFAULT_SIGNATURE,
                {name: tf.constant(tf.make_ndarray(value)) for name, value in request.inputs.items()},
            )
            for request in requests
        ]
    except Exception as error:  # of whatever kind: damaged records are no reason not to serve
        logging.warning("%s cannot be replayed: %s", file, error)
        return []


def _rows(signatures: Mapping[str, Signature]) -> list[tuple[str, dict[str, tf.Tensor]]]:
    return [
        (
            name,
            {key: tf.fill([max(1, size) for size in info.shape or (1,)], _TEXT) for key, info in about.inputs.items()},
        )
        for name, about in signatures.items()
        if about.inputs and all(info.type == "DT_STRING" and info.shape != () for info in about.inputs.values())
    ]
