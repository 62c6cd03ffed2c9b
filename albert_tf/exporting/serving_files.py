"""What an operator wants beside a SavedModel: the operations that the server needs, and samples of its settings."""

from __future__ import annotations

import json
import os

from albert_tf import files, storage
from albert_tf.exporting.required_ops import TEXT_OPS, required_ops

EXTRA = "assets.extra"  # in a SavedModel: for the server alone
OPS_FILE, MODELS_FILE, BATCHING_FILE = "ops.json", "models.config", "batching_parameters.txt"

_MODELS = """\
# tensorflow_model_server --model_config_file=models.config --port=8500 --rest_api_port=8501
# base_path is the directory with the versions, as the server sees it: in a container, where that is mounted.
model_config_list {{
  config {{
    name: "{name}"
    base_path: {base_path}
    model_platform: "tensorflow"
    model_version_policy {{ latest {{ num_versions: 1 }} }}
  }}
}}
"""
_BATCHING = """\
# --enable_batching --batching_parameters_file=batching_parameters.txt
max_batch_size { value: 32 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 128 }
num_batch_threads { value: 2 }
# Requests with ids or options of unlike lengths are padded with 0 and "", which the model takes for no piece and no
# option. A batch costs by its longest row.
pad_variable_length_inputs: true
"""


def write_extra(directory: str) -> dict[str, list[str]]:
    """Writes the operations of a SavedModel into it, as JSON.

    Returns:
        The same: those of TensorFlow, those of TensorFlow Text.
    """
    names = required_ops(directory)
    ops = {"TensorFlow": sorted(names - TEXT_OPS), "TensorFlow Text": sorted(names & TEXT_OPS)}
    os.makedirs(os.path.join(directory, EXTRA), exist_ok=True)
    files.write_json(os.path.join(directory, EXTRA, OPS_FILE), ops)
    return ops


def write_samples(base: str, name: str) -> None:
    """Writes sample settings of a server into the directory of the versions, unless it has some already."""
    path = base if storage.is_remote(base) else os.path.abspath(base)
    models = _MODELS.format(name=name, base_path=json.dumps(path, ensure_ascii=False))
    for file, content in ((MODELS_FILE, models), (BATCHING_FILE, _BATCHING)):
        path = storage.join(base, file)
        if not storage.exists(path):
            storage.write_bytes(path, content.encode())
