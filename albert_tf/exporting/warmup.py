"""Requests that TF Serving answers while it loads a model, so that the first one of a user is not the slow one.

The form is TensorFlow's: PredictionLog records in `assets.extra/tf_serving_warmup_requests`, at most 1000 of them.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.exporting.serving_files import EXTRA

WARMUP_FILE = "tf_serving_warmup_requests"
_ROWS = (1, 8)  # of the requests for each signature


def write(directory: str, name: str, version: int, samples: Mapping[str, Mapping[str, Any]]) -> bool:
    """Writes the requests into a SavedModel, if tensorflow-serving-api is installed.

    Args:
        directory: of the SavedModel.
        name: what the server calls the model.
        version: its number.
        samples: signature to the inputs of one row, by name.

    Returns:
        Whether it is.
    """
    if importlib.util.find_spec("tensorflow_serving") is None:
        return False
    os.makedirs(os.path.join(directory, EXTRA), exist_ok=True)
    with tf.io.TFRecordWriter(os.path.join(directory, EXTRA, WARMUP_FILE)) as writer:
        for signature, inputs in samples.items():
            for rows in _ROWS:
                writer.write(_record(name, version, signature, inputs, rows))
    return True


def _record(name: str, version: int, signature: str, inputs: Mapping[str, Any], rows: int) -> bytes:
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    request.model_spec.version.value = version
    request.model_spec.signature_name = signature
    for key, value in inputs.items():
        array = np.repeat(np.array(value), rows, axis=0)
        array = array.astype(np.int32 if array.dtype.kind == "i" else object)
        request.inputs[key].CopyFrom(tf.make_tensor_proto(array))
    predict_log = prediction_log_pb2.PredictLog(request=request)
    record: bytes = prediction_log_pb2.PredictionLog(predict_log=predict_log).SerializeToString()
    return record
