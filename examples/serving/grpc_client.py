"""Asks a model server over gRPC: `python grpc_client.py localhost:8500 albert text='A fine film.'`.

Needs tensorflow and tensorflow-serving-api (`pip install albert_tf[tf_serving]`), and nothing of albert_tf. Each input
is a name and one value, as listed by `saved_model_cli show --dir MODEL/1 --tag_set serve --signature_def
serving_default`; several values behind "|" are one row of a list, as the options of a question.
"""

from __future__ import annotations

import sys

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

SECONDS = 30


def ask(address: str, model: str, inputs: dict[str, list]) -> dict[str, list]:
    """Inputs by name, a value for each row, to outputs by name."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = "serving_default"
    for name, rows in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(rows, dtype=tf.string))
    with grpc.insecure_channel(address) as channel:
        response = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, timeout=SECONDS)
    return {name: tf.make_ndarray(value).tolist() for name, value in response.outputs.items()}


def row_of(value: str) -> str | list[str]:
    return value.split("|") if "|" in value else value


def main() -> None:
    address, model, *pairs = sys.argv[1:]
    inputs = {name: [row_of(value)] for name, _, value in (pair.partition("=") for pair in pairs)}
    for name, rows in sorted(ask(address, model, inputs).items()):
        print(f"{name}: {rows[0].decode() if isinstance(rows[0], bytes) else rows[0]}")


if __name__ == "__main__":
    main()
