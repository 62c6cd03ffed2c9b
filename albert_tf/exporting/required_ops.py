"""Which operations of a SavedModel a server must have."""

from __future__ import annotations

import os

from tensorflow.core.protobuf import saved_model_pb2

# Those of TensorFlow Text that the tokenizers here may be made of; all others are TensorFlow's own.
TEXT_OPS = frozenset(
    {
        "SentencepieceOp",
        "SentencepieceTokenizeOp",
        "SentencepieceTokenizeWithOffsetsOp",
        "WordpieceTokenizeWithOffsets",
    }
)


def required_ops(directory: str) -> set[str]:
    """The names of all operations in the graphs of the SavedModel, those inside functions too."""
    saved_model = saved_model_pb2.SavedModel()
    with open(os.path.join(directory, "saved_model.pb"), "rb") as file:
        saved_model.ParseFromString(file.read())
    names: set[str] = set()
    for meta_graph in saved_model.meta_graphs:
        graph = meta_graph.graph_def
        functions = {function.signature.name for function in graph.library.function}
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
        names |= {node.op for node in nodes} - functions
    return names
