"""`python -m albert_tf.export`: versions, what stands beside them, and TF Serving's own messages and tools on them."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import json
import pathlib
import subprocess
import sys
import threading
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import export, task_model
from albert_tf.errors import InputError
from albert_tf.exporting import required_ops, saved_model, serving_files, source, version_directories, warmup
from tests import exported_models, own_flags, source_files
from tests.exported_models import kind_of, make

CLIENTS = source_files.REPOSITORY / "examples" / "serving"
HAS_API = importlib.util.find_spec("tensorflow_serving") is not None
needs_api = pytest.mark.skipif(not HAS_API, reason="needs tensorflow-serving-api")


def run_here(monkeypatch, **given) -> None:
    """The command in this process, with the flags that are given and the others' defaults."""
    with monkeypatch.context() as patched:
        own_flags.use(patched, export, values=own_flags.parsed(export, **given))
        export.main([])


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> tuple[pathlib.Path, str]:
    """The directory of versions that the command wrote for a classifier of pairs, and what it printed."""
    folder = tmp_path_factory.mktemp("command")
    model, tokenizer = make("AlbertForSequenceClassification")
    task_model.save(str(folder / "model"), model, tokenizer, kind_of(model), {"pairs": True})
    command = [sys.executable, "-m", "albert_tf.export", f"--model={folder / 'model'}", "--format=saved_model"]
    (folder / "texts.txt").write_text("a text\nanother one here\n")
    command += [f"--output={folder / 'served'}", "--name=pairs", f"--check_texts={folder / 'texts.txt'}"]
    done = subprocess.run(command, cwd=source_files.REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "served", done.stdout


@functools.cache
def loaded(directory: pathlib.Path):
    pytest.importorskip("tensorflow_text")
    return tf.saved_model.load(str(directory))


def served(directory: pathlib.Path, signature: str = "serving_default"):
    return loaded(directory).signatures[signature]


def test_a_version_holds_what_a_server_wants(exported):
    base, printed = exported
    assert {path.name for path in base.iterdir()} == {"1", "models.config", "batching_parameters.txt"}
    config = (base / "models.config").read_text()
    assert 'name: "pairs"' in config and f'base_path: "{base}"' in config
    ops = json.loads((base / "1" / "assets.extra" / "ops.json").read_text())
    assert ops["TensorFlow Text"] == ["SentencepieceOp", "SentencepieceTokenizeOp"]
    assert "MatMul" in ops["TensorFlow"]
    for name, names in ops.items():
        assert f"{name}: {', '.join(names)}" in printed
    function = served(base / "1")
    assert set(function.structured_input_signature[1]) == {"text_a", "text_b"}
    told = json.loads((base / "1" / "assets.extra" / "comparison.json").read_text())
    assert set(told["outputs"]) == {"logits", "probabilities", "probability", "sequence_output", "pooled_output"}
    assert f"logits: max difference {told['outputs']['logits']['max_difference']:.3g}, relative rms " in printed


def test_all_other_operations_are_in_plain_tensorflow(exported):
    ops = json.loads((exported[0] / "1" / "assets.extra" / "ops.json").read_text())
    code = (
        "import json, sys, tensorflow as tf; from tensorflow.python.framework import op_def_registry\n"
        "print([name for name in json.load(sys.stdin) if op_def_registry.get(name) is None])"
    )
    names = json.dumps([*ops["TensorFlow"], *ops["TensorFlow Text"]])
    done = subprocess.run([sys.executable, "-c", code], input=names, capture_output=True, text=True)
    assert done.stdout.strip() == str(ops["TensorFlow Text"]), done.stderr[-2000:]


def test_saved_model_cli_shows_the_signatures(exported, monkeypatch, capsys):
    from tensorflow.python.tools import saved_model_cli

    pytest.importorskip("tensorflow_text")

    arguments = ["saved_model_cli", "show", "--dir", str(exported[0] / "1"), "--tag_set", "serve", "--all"]
    monkeypatch.setattr(sys, "argv", arguments)
    try:
        saved_model_cli.main()
    except SystemExit as end:
        assert not end.code
    shown = capsys.readouterr().out
    for name in ("serving_default", "ids", "embeddings"):
        assert f"signature_def['{name}']" in shown
    of_ids = shown.split("signature_def['ids']")[1].split("signature_def")[0]
    for name in ("input_ids", "input_mask", "segment_ids"):
        described = of_ids.split(f"inputs['{name}']")[1]
        assert "DT_INT32" in described[:60] and "(-1, -1)" in described[:90]


def test_versions_count_up(exported, tmp_path):
    base = exported[0]
    assert version_directories.next_version(str(base)) == 2
    assert version_directories.next_version(str(tmp_path / "none")) == 1
    with pytest.raises(InputError, match="is there already"), version_directories.new_version(str(base), 1):
        pass
    with version_directories.new_version(str(tmp_path), 10) as directory:
        (pathlib.Path(directory) / "file").write_text("")
    for name in ("notes", "9", "٣٣"):
        (tmp_path / name).mkdir()
    assert version_directories.versions(str(tmp_path)) == [(n, str(tmp_path / str(n))) for n in (10, 9)]
    assert (tmp_path / "10" / "file").exists() and version_directories.next_version(str(tmp_path)) == 11


def test_two_exports_to_one_directory_do_not_meet(tmp_path):
    base = str(tmp_path / "base")
    with version_directories.new_version(base, 1) as directory:
        (pathlib.Path(directory) / "file").write_text("first")
        with pytest.raises(InputError, match="--output=.*base is in use by another process"):
            version_directories.new_version(base, 1).__enter__()
    assert (tmp_path / "base" / "1" / "file").read_text() == "first"


@needs_api
def test_the_warm_up_is_answered(exported):
    from tensorflow_serving.apis import prediction_log_pb2

    records = tf.data.TFRecordDataset(str(exported[0] / "1" / "assets.extra" / warmup.WARMUP_FILE))
    logs = [prediction_log_pb2.PredictionLog.FromString(record.numpy()) for record in records]
    requests = [log.predict_log.request for log in logs]
    assert [request.model_spec.signature_name for request in requests] == ["serving_default"] * 2 + ["ids"] * 2
    for request in requests:
        function = served(exported[0] / "1", request.model_spec.signature_name)
        inputs = {name: tf.constant(tf.make_ndarray(value)) for name, value in request.inputs.items()}
        rows = len(next(iter(inputs.values())))
        assert function(**inputs)["probabilities"].shape == (rows, 3)


@contextlib.contextmanager
def grpc_server(directory: pathlib.Path):
    """TF Serving's service, answered with the SavedModel."""
    import grpc
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    function = served(directory)

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):  # noqa: N802
            response = predict_pb2.PredictResponse()
            inputs = {name: tf.constant(tf.make_ndarray(value)) for name, value in request.inputs.items()}
            for name, value in function(**inputs).items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
            return response

    server = grpc.server(futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None)


@needs_api
def test_the_grpc_client_is_answered(exported):
    with grpc_server(exported[0] / "1") as port:
        command = [sys.executable, CLIENTS / "grpc_client.py", f"localhost:{port}", "pairs", "text_a=a x b", "text_b=é"]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    printed = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    function = served(exported[0] / "1")
    wanted = function(text_a=tf.constant(["a x b"]), text_b=tf.constant(["é"]))
    assert printed["label"] == wanted["label"][0].numpy().decode()
    np.testing.assert_allclose(json.loads(printed["probabilities"]), wanted["probabilities"][0], atol=1e-5)


def test_the_rest_client_is_answered(exported):
    function = served(exported[0] / "1")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # noqa: N802
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            rows = asked["instances"]
            outputs = function(**{name: tf.constant([row[name] for row in rows]) for name in rows[0]})
            body = json.dumps({"predictions": [{"label": v.numpy().decode()} for v in outputs["label"]]}).encode()
            self.send_response(200 if self.path == "/v1/models/pairs:predict" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = http.server.HTTPServer(("localhost", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://localhost:{server.server_port}"
    command = [sys.executable, CLIENTS / "rest_client.py", address, "pairs", "text_a=a x b", "text_b=é"]
    done = subprocess.run(command, capture_output=True, text=True)
    server.shutdown()
    wanted = function(text_a=tf.constant(["a x b"]), text_b=tf.constant(["é"]))["label"][0].numpy().decode()
    assert done.stdout == f"label: {wanted}\n", done.stderr[-2000:]


def test_ids_alone_load_in_plain_tensorflow(exported, tmp_path, monkeypatch, capsys):
    run_here(monkeypatch, model=exported[0].parent / "model", output=tmp_path / "ids", ids_only=True, version=7)
    assert "TensorFlow Text: none" in capsys.readouterr().out
    inputs = {"input_ids": [[2, 7, 3]], "input_mask": [[1, 1, 1]], "segment_ids": [[0, 0, 0]]}
    requests = [("ids/7", name, inputs) for name in ("serving_default", "ids", "embeddings")]
    told = json.loads((tmp_path / "ids" / "7" / "assets.extra" / "comparison.json").read_text())
    assert told["texts"] == {"source": "random pieces", "count": 200}
    assert told["outputs"]["logits"]["relative_rms"] < told["bound"] == 1e-3
    default, of_ids, vectors = exported_models.ask(tmp_path, requests, "plain")
    assert default == of_ids and set(vectors) == {"sequence_output", "pooled_output"}
    assert not required_ops.required_ops(str(tmp_path / "ids" / "7")) & required_ops.TEXT_OPS


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "nowhere"}, "nowhere holds no weights"),
        ({"max_seq_length": 9999}, "max_seq_length is 9999, but the model has 32 positions"),
        ({"doc_stride": 3}, "doc_stride is no setting of a task with the head 'classifier'"),
        ({"version": 1}, "served/1 is there already"),
    ],
)
def test_what_cannot_be_is_a_sentence(given, message, exported, monkeypatch):
    base = exported[0]
    with pytest.raises(InputError, match=message):
        run_here(monkeypatch, **{"model": base.parent / "model", "output": base, **given})
    assert {path.name for path in base.iterdir()} == {"1", "models.config", "batching_parameters.txt"}


def test_nothing_that_tells_of_pairs_is_an_error(tmp_path, monkeypatch):
    model, tokenizer = make("AlbertForSequenceClassification")
    task_model.save(str(tmp_path / "model"), model, tokenizer, kind_of(model), {})
    with pytest.raises(InputError, match="takes single texts or pairs: give --nopairs or --pairs"):
        run_here(monkeypatch, model=tmp_path / "model", output=tmp_path / "served")
    assert not (tmp_path / "served").exists()


def test_versions_at_an_address(exported, monkeypatch):
    """What a server looks for comes last, and all that it needs is there."""
    written, copy = [], tf.io.gfile.copy
    monkeypatch.setattr(tf.io.gfile, "copy", lambda a, b, overwrite: (written.append(b), copy(a, b, overwrite)))
    given = {"model": exported[0].parent / "model", "output": "ram://exported", "ids_only": True}
    run_here(monkeypatch, **given)
    assert written[-1] == "ram://exported/1/saved_model.pb"
    assert tf.io.gfile.exists("ram://exported/models.config")
    ids = tf.constant([[2, 7, 3]])
    function = tf.saved_model.load("ram://exported/1").signatures["ids"]
    found = function(input_ids=ids, input_mask=tf.ones_like(ids), segment_ids=tf.zeros_like(ids))
    assert found["probabilities"].shape == (1, 3)
    assert version_directories.next_version("ram://exported") == 2


@pytest.mark.parametrize(
    "given",
    [
        {"format": "onnx", "mixed_precision": "bfloat16"},
        {"format": "onnx", "ids_only": True},
        {"format": "tflite", "top_k": 3},
        {"format": "openvino", "name": "mine"},
        {"format": "saved_model", "weights": "int8"},
    ],
)
def test_a_flag_that_does_nothing_is_refused(given, tmp_path, monkeypatch):
    name = list(given)[1]
    with pytest.raises(InputError, match=f"--{name} does nothing for --format={given['format']}"):
        run_here(monkeypatch, model="nowhere", output=tmp_path, **given)


@pytest.mark.parametrize(
    ("model_class", "given", "message"),
    [
        ("AlbertForSequenceClassification", {"top_k": 3}, "with the head classifier"),
        ("AlbertForTokenClassification", {"format": "onnx", "pairs": True}, "with the head tagger"),
        ("AlbertModel", {"format": "tflite", "pairs": True}, "with the head encoder"),
        ("AlbertForMaskedLM", {"ids_only": True, "top_k": 3}, "with --ids_only"),
    ],
)
def test_a_flag_that_does_nothing_for_the_head_is_refused(model_class, given, message, tmp_path, monkeypatch):
    model, tokenizer = make(model_class)
    monkeypatch.setattr(source, "load", lambda *_, **__: source.Source(model, tokenizer, kind_of(model), {}))
    with pytest.raises(InputError, match=f"--{list(given)[-1]} does nothing .*{message}"):
        run_here(monkeypatch, model="some", output=tmp_path, **given)


def test_settings_that_are_there_stay(tmp_path):
    (tmp_path / "models.config").write_text("mine")
    serving_files.write_samples(str(tmp_path), "pairs")
    assert (tmp_path / "models.config").read_text() == "mine"
    assert "max_batch_size" in (tmp_path / "batching_parameters.txt").read_text()


def test_the_sample_of_settings_names_the_directory_from_wherever_it_is_read(tmp_path, monkeypatch):
    from google.protobuf import struct_pb2, text_format

    monkeypatch.chdir(tmp_path)
    (tmp_path / 'a "b').mkdir()
    for base, wanted in (('a "b', f'{tmp_path}/a "b'), ("ram://samples", "ram://samples")):
        serving_files.write_samples(base, "pairs")
        content = tf.io.gfile.GFile(f"{base}/models.config").read()
        (path,) = (line.split(": ", 1)[1] for line in content.splitlines() if "base_path:" in line)
        assert text_format.Parse(f"string_value: {path}", struct_pb2.Value()).string_value == wanted


@pytest.mark.parametrize("name", ['a"b', "a/b", ""])
def test_a_name_that_cannot_be_in_an_address_is_refused(name, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=f"--name={name} cannot be in an address"):
        run_here(monkeypatch, model="nowhere", output=tmp_path, name=name)


def test_one_trace_serves_every_length():
    model, tokenizer = make("AlbertForSequenceClassification")
    parts = saved_model.make_parts(model, tokenizer, kind=kind_of(model))
    head = saved_model.head_signatures(parts)
    of_texts, of_ids = saved_model.text_function(head), saved_model.ids_function(head)
    for length in range(1, 51):
        of_texts(tf.constant([" ".join("a" * length)] * (1 + length % 3)))
        ids = tf.ones([1 + length % 4, min(length, 32)], tf.int32)
        of_ids(ids, ids, 0 * ids)
    assert of_texts.experimental_get_tracing_count() == of_ids.experimental_get_tracing_count() == 1


def test_the_module_gives_the_function():
    assert export.export_saved_model is saved_model.export_saved_model
