"""albert_tf.serve as a process: TensorFlow Serving's REST API, its limits, and its end."""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from albert_tf import AlbertModel, serve, serving, task_model
from albert_tf.errors import InputError
from albert_tf.exporting import saved_model, source
from albert_tf.exporting.saved_model import export_saved_model
from albert_tf.serving import rest
from albert_tf.serving.settings import Settings
from albert_tf.serving.tensors import to_json
from tests import answering_models, own_flags

pytest.importorskip("aiohttp", reason="needs the extra `serve`: aiohttp")
pytest.importorskip("prometheus_client", reason="needs the extra `serve`: prometheus_client")
from albert_tf.model_name import check_name  # noqa: E402
from albert_tf.serving import loading, server  # noqa: E402
from albert_tf.serving.loading import load_backend  # noqa: E402

MOST_BODY = 100_000
MOST_ROWS = 50
MOST_VALUES = 100
READ_SECONDS = 1.5
IDLE_SECONDS = 2.0
TEXTS = ["a b c", "", "中文 é 😀 \x00", "g " * 300]
SETTINGS = Settings(max_batch_rows=8)


class Served:
    """A server in a process of its own on a free port."""

    def __init__(self, model: str, name: str, *more: str):
        command = [sys.executable, "-m", "albert_tf.serve", f"--model={model}", f"--model_name={name}", "--port=0"]
        self.process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.name = name

    def wait(self) -> Served:
        line = self.process.stdout.readline()
        match = re.search(r"version (\d+), at http://127.0.0.1:(\d+)/", line)
        assert match, line + self.process.stderr.read()
        self.version, self.port = int(match[1]), int(match[2])
        return self

    def ask(self, method: str, path: str, body=None, headers=()) -> tuple[int, object]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
            connection.request(method, path, data, dict(headers))
            response = connection.getresponse()
            content = response.read()
        is_json = response.getheader("Content-Type", "").startswith("application/json")
        return response.status, json.loads(content) if is_json else content.decode()

    def predict(self, body, path: str = "") -> tuple[int, object]:
        return self.ask("POST", path or f"/v1/models/{self.name}:predict", body)

    def stop(self) -> str:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=60)
        return errors


SIGNATURES = ("serving_default", "two", "single", "unlike", "any_rank", "pick")


class Half(tf.Module):
    """A SavedModel that is not ours: the one of TensorFlow Serving's documentation, with further signatures."""

    def __init__(self, added: float):
        super().__init__()
        self.added = tf.Variable(added)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serving_default(self, x):
        return {"y": x / 2.0 + self.added}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32, name="ids"),
            tf.TensorSpec([None], tf.string, name="words"),
        ]
    )
    def two(self, ids, words):
        return {"sum": tf.reduce_sum(ids, 1), "words": words, "words_bytes": words}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
    def single(self, x):
        return {"y": x * 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def unlike(self, x):
        """Outputs of other sizes than the rows."""
        return {"sum": tf.reduce_sum(x), "larger": tf.boolean_mask(x, x > 1)}

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, name="x")])
    def any_rank(self, x):
        return {"y": x + 1.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="x")])
    def pick(self, x):
        return {"y": tf.gather([3.0, 4.0], x)}


def write_versions(directory) -> str:
    """Two versions, and one that is not complete yet."""
    for version, added in (("9", 1.0), ("10", 2.0)):
        half = Half(added)
        signatures = {name: getattr(half, name) for name in SIGNATURES}
        tf.saved_model.save(half, os.path.join(directory, version), signatures)
    os.makedirs(os.path.join(directory, "11"))
    return str(directory)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """A classifier, and a SavedModel that is not ours."""
    directory = tmp_path_factory.mktemp("served")
    limits = [f"--max_body_mb={MOST_BODY / (1 << 20)}", f"--max_rows={MOST_ROWS}", "--max_batch_rows=8"]
    limits += [f"--read_seconds={READ_SECONDS}", f"--idle_seconds={IDLE_SECONDS}", "--max_wait_ms=20"]
    model = answering_models.write_task_model(directory, "classifier")
    started = [Served(model, "classifier", *limits)]
    of_half = ["--file_system_poll_wait_seconds=0.1", f"--max_answer_values={MOST_VALUES}"]
    started.append(Served(write_versions(directory / "half"), "half", *of_half))
    try:
        yield [server.wait() for server in started]
    finally:
        for server in started:
            server.stop()


@pytest.fixture(scope="module")
def classifier(servers):
    return servers[0]


@pytest.fixture(scope="module")
def half(servers):
    return servers[1]


# TensorFlow Serving's own examples


def test_half_plus_two(half):
    assert half.version == 10
    assert half.predict({"instances": [1.0, 2.0, 5.0]}) == (200, {"predictions": [2.5, 3.0, 4.5]})
    assert half.predict({"instances": [{"x": 1}, {"x": 0.2}]}) == (200, {"predictions": [2.5, 2.1]})
    assert half.predict({"inputs": [1.0, 2.0]}) == (200, {"outputs": [2.5, 3.0]})
    assert half.predict({"inputs": {"x": [1.0]}}, "/v1/models/half/versions/10:predict") == (200, {"outputs": [2.5]})
    assert half.predict({"signature_name": "single", "inputs": 3.0}) == (200, {"outputs": 6.0})
    assert half.predict(b'{"instances": [NaN, -Infinity]}')[1]["predictions"][1] == -float("inf")


def test_several_inputs_and_outputs(half):
    words = [base64.b64encode(bytes([255, 0])).decode(), base64.b64encode("é".encode()).decode()]
    rows = [{"ids": [1, 2], "words": {"b64": words[0]}}, {"ids": [3, 4], "words": "é"}]
    predictions = [
        {"sum": 3, "words": {"b64": words[0]}, "words_bytes": {"b64": words[0]}},
        {"sum": 7, "words": "é", "words_bytes": {"b64": words[1]}},
    ]
    assert half.predict({"signature_name": "two", "instances": rows}) == (200, {"predictions": predictions})
    columns = {"ids": [[1, 2], [3, 4]], "words": ["a", "b"]}
    status, answer = half.predict({"signature_name": "two", "inputs": columns})
    assert (status, answer["outputs"]["sum"], answer["outputs"]["words"]) == (200, [3, 7], ["a", "b"])


def test_outputs_without_a_value_for_each_row(half):
    answer = half.predict({"signature_name": "unlike", "inputs": [1.0, 2.0, 3.0]})
    assert answer == (200, {"outputs": {"sum": 6.0, "larger": [2.0, 3.0]}})
    status, answer = half.predict({"signature_name": "unlike", "instances": [1.0, 2.0, 3.0]})
    assert status == 400 and "not one value for each row" in answer["error"]


def test_a_rank_that_is_not_known_is_any(half):
    for x in (1.0, [1.0], [[1.0, 2.0]]):
        assert half.predict({"signature_name": "any_rank", "inputs": x}) == (
            200, {"outputs": (np.array(x) + 1).tolist()}
        )  # fmt: skip
    assert half.predict({"signature_name": "any_rank", "instances": [[1.0], [2.0]]}) == (
        200, {"predictions": [[2.0], [3.0]]}
    )  # fmt: skip


def test_status_and_metadata(half):
    about = {"version": "10", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    for path in ("/v1/models/half", "/v1/models/half/versions/10"):
        assert half.ask("GET", path) == (200, {"model_version_status": [about]})
    status, answer = half.ask("GET", "/v1/models/half/metadata")
    assert status == 200 and answer["model_spec"] == {"name": "half", "signature_name": "", "version": "10"}
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert set(signatures) == set(SIGNATURES)
    assert signatures["any_rank"]["inputs"]["x"]["tensor_shape"] == {"dim": [], "unknown_rank": True}
    assert signatures["serving_default"]["inputs"]["x"]["dtype"] == "DT_FLOAT"
    ids = signatures["two"]["inputs"]["ids"]
    assert ids["dtype"] == "DT_INT32" and [size["size"] for size in ids["tensor_shape"]["dim"]] == ["-1", "-1"]
    assert signatures["two"]["outputs"]["words"]["dtype"] == "DT_STRING"


@pytest.mark.parametrize(
    "body, message",
    [
        ({"instances": ["a"]}, "is not of the type DT_FLOAT"),
        ({"instances": [[1.0]]}, "has the shape"),
        ({"instances": [True]}, "is not of the type DT_FLOAT"),
        (b'{"inputs": ' + b"[" * 900 + b"]" * 900 + b"}", "lists within lists"),
        ({"instances": [{"y": 1.0}]}, "must be an object with x"),
        ({"signature_name": "two", "instances": [1]}, "must be objects with ids, words"),
        ({"signature_name": "two", "inputs": {"ids": [[1], [2, 3]], "words": ["a", "b"]}}, "different length"),
        ({"signature_name": "two", "inputs": {"ids": [[1 << 40]], "words": ["a"]}}, "too large for DT_INT32"),
        ({"signature_name": "two", "inputs": {"ids": [[1]]}}, "inputs must have ids, words"),
        ({"signature_name": "no", "instances": [1.0]}, 'Serving signature key "no" not found'),
        (
            {"signature_name": "pick", "instances": [1, 7]},
            "the signature pick does not take these values: indices[1] = 7 is not in [0, 2)",
        ),
    ],
)
def test_tensors_that_do_not_fit(half, body, message):
    status, answer = half.predict(body)
    assert status == 400 and list(answer) == ["error"] and message in answer["error"]


@pytest.mark.parametrize("signature", ["serving_default", "unlike", "any_rank"])
def test_an_answer_that_is_too_large_is_refused(half, signature):
    """Be it read at once or in parts of which none is too large."""
    values = MOST_VALUES - (signature == "unlike")
    status, answer = half.predict({"signature_name": signature, "inputs": [2.0] * values})
    assert status == 200
    status, answer = half.predict({"signature_name": signature, "inputs": [2.0] * (values + 1)})
    assert status == 413 and "the answer would have 101 values, and at most 100 are given" in answer["error"]


def test_a_newer_version_takes_over(half):
    """While it comes, and one that is damaged comes after it, every request has its answer."""
    base = half.process.args[3].partition("=")[2]
    states = {}

    def wait_for(version: str, state: str) -> None:
        end = time.monotonic() + 60
        while states.get(version) != state:
            assert time.monotonic() < end, states
            assert half.predict({"instances": [1.0]})[1]["predictions"][0] in (2.5, 4.5)
            _, answer = half.ask("GET", "/v1/models/half")
            states.update((about["version"], about["state"]) for about in answer["model_version_status"])

    one = Half(4.0)
    tf.saved_model.save(one, os.path.join(base, "aside"), {"serving_default": one.serving_default})
    os.rename(os.path.join(base, "aside"), os.path.join(base, "12"))
    wait_for("12", "AVAILABLE")
    assert half.predict({"instances": [1.0]}, "/v1/models/half/versions/12:predict") == (200, {"predictions": [4.5]})
    assert half.predict({"instances": [1.0]}, "/v1/models/half/versions/10:predict")[0] == 404
    wait_for("10", "END")
    os.makedirs(os.path.join(base, "13"))
    pathlib.Path(base, "13", "saved_model.pb").write_bytes(b"damaged")
    wait_for("13", "END")
    _, answer = half.ask("GET", "/v1/models/half/versions/13")
    assert "13" in answer["model_version_status"][0]["status"]["error_message"]
    assert half.predict({"instances": [1.0]}) == (200, {"predictions": [4.5]})


# A model of our own


def test_the_answers_are_those_of_the_model(classifier, tmp_path_factory):
    from albert_tf import TextClassifier

    wanted = TextClassifier.from_pretrained(classifier.process.args[3].partition("=")[2]).predict(TEXTS)
    status, answer = classifier.predict({"instances": [{"text": text} for text in TEXTS]})
    assert status == 200
    for found, one in zip(answer["predictions"], wanted):
        assert list(found) == ["labels", "probabilities", "label", "probability", "is_cut"]
        assert found["labels"] == ["minus", "plus"] and found["label"] == one.label
        assert found["probabilities"] == pytest.approx(list(one.probabilities.values()), abs=1e-5)
    assert [found["is_cut"] for found in answer["predictions"]] == [False, False, False, True]
    assert classifier.predict({"instances": TEXTS}) == (status, answer)  # one input: its name may be left out
    for inputs in (TEXTS, {"text": TEXTS}):
        status, columns = classifier.predict({"inputs": inputs})
        rows = [dict(zip(columns["outputs"], values)) for values in zip(*columns["outputs"].values())]
        assert status == 200 and rows == answer["predictions"]


def test_many_at_once_are_answered_each(classifier):
    """More rows than a batch holds, and many requests at the same time: each gets its own answer."""
    texts = [" ".join("abcdefg"[number % 7] * (1 + number % 3)) for number in range(MOST_ROWS)]
    status, whole = classifier.predict({"instances": texts})
    assert status == 200 and len(whole["predictions"]) == MOST_ROWS
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda text: classifier.predict({"instances": [text]}), texts))
    for (status, answer), wanted in zip(answers, whole["predictions"]):
        assert status == 200 and answer["predictions"][0]["label"] == wanted["label"]
        assert answer["predictions"][0]["probability"] == pytest.approx(wanted["probability"], abs=1e-5)
    _, metrics = classifier.ask("GET", "/metrics")
    count, total = (
        float(re.search(rf"^albert_tf_batch_rows_{name} (\S+)$", metrics, re.MULTILINE)[1]) for name in ("count", "sum")
    )
    assert total > count  # some requests were joined
    assert re.search(r'^albert_tf_requests_total\{kind="predict",status="200"\} ', metrics, re.MULTILINE)
    assert re.search(r"^albert_tf_queued_rows 0.0$", metrics, re.MULTILINE)


@pytest.mark.parametrize(
    "body, status, message",
    [
        (b"{", 400, "JSON Parse error"),
        (b"", 400, "JSON Parse error"),
        (b"[" * 90_000, 400, "JSON Parse error"),
        (b'{"instances": [' + b"[" * 900 + b"]" * 900 + b"]}", 400, ""),
        (b'{"instances": ["\xff"]}', 400, "is not UTF-8"),
        (b'{"instances": [' + b"9" * 5000 + b"]}", 400, "" if sys.version_info < (3, 11) else "has 5000 digits"),
        (["text"], 400, "must be a JSON object"),
        ({}, 400, "either 'instances' or 'inputs'"),
        ({"instances": ["a"], "inputs": ["a"]}, 400, "either 'instances' or 'inputs'"),
        ({"instances": []}, 400, "at least one instance"),
        ({"instances": "text"}, 400, "must be a list"),
        ({"instances": ["a"], "more": 1}, 400, 'the key "more"'),
        ({"instances": ["a"], "signature_name": 3}, 400, "must be a string"),
        ({"instances": ["a", 3]}, 400, "instance 1: text is 3, but must be a text"),
        ({"instances": [{"txt": "a"}]}, 400, "instance 0: it has txt, but must have text"),
        ({"instances": [{"text": "a", "b": "c"}]}, 400, "but must have text"),
        ({"instances": [{"b64": "?"}]}, 400, "base64"),
        ({"instances": ["\ud800"]}, 400, "surrogate"),
        ({"inputs": {"text": "a"}}, 400, "must be a list"),
        ({"inputs": {}}, 400, "as many values of each"),
        ({"inputs": []}, 400, "no rows"),
        ({"instances": ["a"] * (MOST_ROWS + 1)}, 413, "at most 50"),
        (b" " * (MOST_BODY + 1), 413, "larger than"),
    ],
)
def test_bad_requests_are_told_so(classifier, body, status, message):
    found, answer = classifier.predict(body)
    assert found == status and list(answer) == ["error"] and message in answer["error"]
    assert classifier.predict({"instances": ["a"]})[0] == 200


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("POST", "/v1/models/other:predict", 404),
        ("POST", "/v1/models/classifier/versions/7:predict", 404),
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/models/classifier/versions/x", 404),
        ("GET", "/v1/models/classifier:predict", 405),
        ("POST", "/v1/models/classifier:classify", 501),
        ("POST", "/v1/models/classifier/versions/1:regress", 501),
        ("GET", "/nowhere", 404),
        ("PUT", "/", 405),
    ],
)
def test_wrong_addresses(classifier, method, path, status):
    found, answer = classifier.ask(method, path, b"{}")
    assert found == status and list(answer) == ["error"]


def test_a_body_without_a_length_has_the_same_limit(classifier):
    blocks = iter([b" " * 10_000] * 20)
    connection = http.client.HTTPConnection("127.0.0.1", classifier.port, timeout=30)
    with contextlib.closing(connection), contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.request("POST", "/v1/models/classifier:predict", blocks, encode_chunked=True)
        assert connection.getresponse().status == 413


def test_slow_clients_do_not_stay(classifier):
    """One that never sends its body, one that never ends its head, and one that says nothing at all."""
    head = b"POST /v1/models/classifier:predict HTTP/1.1\r\nHost: x\r\n"
    begun = [head + b"Content-Length: 50\r\n\r\n{", head + b"X-Slow: ", b""]
    start = time.monotonic()
    sockets = [socket.create_connection(("127.0.0.1", classifier.port), timeout=30) for _ in begun]
    for one, data in zip(sockets, begun):
        one.sendall(data)
    assert classifier.predict({"instances": ["a"]})[0] == 200
    received = [one.recv(1000) for one in sockets]
    assert received[0].startswith(b"HTTP/1.1 408 ") and received[1:] == [b"", b""]
    assert time.monotonic() - start < 10 * IDLE_SECONDS
    for one in sockets:
        one.close()


@pytest.mark.parametrize(
    "path, headers, status",
    [
        (":predict", {"Content-Encoding": "gzip"}, 400),
        (":predict", {"Content-Encoding": "br"}, 400),
        (":predict", {"Content-Length": "abc"}, 400),
        ("x" * 20_000, {}, 400),
    ],
)
def test_what_is_no_http_leaves_no_trace_in_the_log(classifier, path, headers, status):
    """That nothing is there is seen when the server has ended."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it was refused before all of it was sent
        assert classifier.ask("POST", f"/v1/models/classifier{path}", b"no gzip", headers)[0] == status
    assert classifier.predict({"instances": ["a"]})[0] == 200


def test_clients_that_leave_are_no_trouble(classifier):
    body = json.dumps({"instances": TEXTS}).encode()
    head = f"POST /v1/models/classifier:predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", classifier.port), timeout=30) as one:
            one.sendall(head + body)
    assert classifier.predict({"instances": ["a"]})[0] == 200


def test_the_page_and_health(classifier):
    assert classifier.ask("GET", "/healthz") == (200, "ok\n")
    status, page = classifier.ask("GET", "/")
    assert status == 200 and '<textarea id="text" name="text"' in page
    assert not re.findall(r"""(?:src|href|action)=["'](?:https?:)?//""", page)
    assert classifier.ask("GET", "/metrics")[0] == classifier.ask("GET", "/monitoring/prometheus/metrics")[0] == 200


def test_sigterm_lets_requests_end(servers):
    """The last test: what was asked before the signal is answered, then nothing listens any more."""
    server = servers[0]
    answers = []
    body = {"instances": ["g " * 300] * MOST_ROWS}
    threads = [threading.Thread(target=lambda: answers.append(server.predict(body)[0])) for _ in range(6)]
    for thread in threads:
        thread.start()
    at_work = 0.0
    while at_work < len(threads) and any(thread.is_alive() for thread in threads):
        _, metrics = server.ask("GET", "/metrics")
        at_work = float(re.search(r"^albert_tf_requests_at_work (\S+)$", metrics, re.MULTILINE)[1]) - 1
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert answers == [200] * len(threads)
    _, errors = server.process.communicate(timeout=60)
    assert server.process.returncode == 0 and "stopped" in errors and "Traceback" not in errors
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


@pytest.mark.parametrize(
    "path, message", [("nowhere", "nowhere holds no weights"), ("empty", "empty holds no weights")]
)
def test_what_cannot_be_served_is_one_sentence(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty" / "1").mkdir(parents=True)
    with pytest.raises(InputError, match=message):
        load_backend(path, SETTINGS)


@pytest.mark.parametrize("error", [KeyError("a variable"), AssertionError()])
def test_a_saved_model_that_does_not_load_is_one_sentence(tmp_path, monkeypatch, error):
    def fails(path):
        raise error

    (tmp_path / "saved_model.pb").touch()
    monkeypatch.setattr(tf.saved_model, "load", fails)
    with pytest.raises(InputError, match=f"cannot load the SavedModel .*: .*{str(error) or 'AssertionError'}"):
        load_backend(str(tmp_path), SETTINGS)


def rows_of(backend, instances) -> list[dict]:
    columns = backend.run([backend.from_rows("serving_default", instances)])[0]
    return rest.answer(columns, True, len(instances))["predictions"]


INSTANCES = {
    "classifier": [{"text": text} for text in TEXTS],
    "multi_label": [{"text": text} for text in TEXTS],
    "regression": [{"text_a": text, "text_b": "a b"} for text in TEXTS],
    "span": [{"question": text, "context": "a b c. d e f é"} for text in TEXTS],
    "answerable_span": [{"question": text, "context": "a b c. d e f é"} for text in TEXTS],
    "multiple_choice": [{"passage": text, "question": "a b _", "options": ["c", "d e"]} for text in TEXTS],
    "tagger": [{"text": text} for text in ["a b  c é", "", "中文 é 😀 \x00", "g" * 300, " x y "]],
    "pretrained": [{"text": text} for text in ["a [MASK] b", "[MASK][MASK]x", "", "a b", "[MASK] " + "g " * 300]],
    "encoder": [{"text": text} for text in TEXTS],
}


def written(directory, name: str) -> str:
    if name in answering_models.HEADS:
        return answering_models.write_task_model(directory, name)
    path = answering_models.write_pretrained(directory)
    if name == "encoder":
        model = AlbertModel.from_pretrained(path)
        model.save_pretrained(path, model.vocabulary.tokenizer())
    return path


@pytest.mark.parametrize("name", INSTANCES)
def test_a_model_and_its_signature_answer_the_same_requests_alike(tmp_path, name):
    """What the model's directory answers, the signature of its SavedModel answers too, under the same names."""
    pytest.importorskip("tensorflow_text", reason="needs TensorFlow Text, which has no wheel here")
    path = written(tmp_path, name)
    ours, loaded = load_backend(path, SETTINGS), source.load(path)
    pairs = loaded.about.get("pairs", False)
    parts = saved_model.make_parts(loaded.model, loaded.tokenizer, kind=loaded.kind, pairs=pairs)
    signature = saved_model.head_signatures(parts)
    of_texts = saved_model.text_function(signature)
    assert [text.name for text in signature.text_inputs] == list(INSTANCES[name][0])
    instances = INSTANCES[name]
    answers = rows_of(ours, instances)
    for instance, one in zip(instances, answers):
        values = of_texts(*(tf.constant([instance[text.name]]) for text in signature.text_inputs))
        other = {key: to_json(value.numpy(), key)[0] for key, value in values.items()}
        assert set(one) == set(other)
        for key, value in one.items():
            if np.asarray(value).dtype.kind == "f":
                np.testing.assert_allclose(value, other[key], atol=1e-4, err_msg=key)
            else:
                assert value == other[key], (key, instance)


@pytest.mark.parametrize("name", ["answerable_span"])
def test_a_saved_model_answers_as_the_directory_it_is_from(tmp_path, name):
    pytest.importorskip("tensorflow_text", reason="needs TensorFlow Text, which has no wheel here")
    model = answering_models.write_task_model(tmp_path, name)
    loaded = task_model.load(model)
    export_saved_model(tmp_path / "served" / "3", loaded.model, loaded.tokenizer, kind=loaded.kind)
    ours, exported = load_backend(model, SETTINGS), load_backend(str(tmp_path / "served"), SETTINGS)
    assert (ours.version, exported.version) == (1, 3)
    for one, other in zip(rows_of(ours, INSTANCES[name]), rows_of(exported, INSTANCES[name])):
        assert set(one) == set(other)
        for key, value in one.items():
            assert other[key] == (pytest.approx(value, abs=1e-4) if isinstance(value, float) else value), key


@pytest.mark.parametrize("is_rows", [True, False])
def test_an_answer_in_pieces_is_the_same(is_rows):
    columns = {"a b": [[[1.5, 2], [3, None]], [[], [4]]], "é": ['x"', "ü"], "n": [True, {"b64": "eA=="}]}
    answer = rest.answer(columns, is_rows, 2)
    assert rest.encoded(answer) == json.dumps(answer, ensure_ascii=False).encode()
    assert json.loads(rest.encoded(answer)) == answer
    assert rest.count(columns) == 8 + 2 + 2 and rest.count({"y": []}) == 0


@pytest.mark.parametrize("package", ["aiohttp", "prometheus_client"])
def test_a_package_that_is_missing_is_told_before_the_model_is_loaded(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    for name in ("application", "metrics", "server"):
        monkeypatch.delitem(sys.modules, f"albert_tf.serving.{name}", raising=False)
        monkeypatch.delattr(serving, name, raising=False)
    told = own_flags.refusal(serve, "--model=nowhere")
    assert told == f"{package} is not installed: pip install 'albert_tf[serve]'"


@pytest.mark.parametrize("has_versions", [False, True])
def test_what_loading_tells_is_seen_and_requests_are_quiet(monkeypatch, caplog, has_versions):
    def tell(*given):
        logging.info("loading")
        logging.warning("no warm-up")
        return types.SimpleNamespace(version=1)

    def request(*given) -> None:
        logging.warning("cut")
        raise InputError("the end")

    monkeypatch.setattr(loading, "load_backend", tell)
    monkeypatch.setattr(loading, "directory_of_versions", lambda *given: object() if has_versions else None)
    monkeypatch.setattr(server, "run_to_end", request)
    before = logging.get_verbosity()
    try:
        assert own_flags.refusal(serve, "--model=somewhere") == "the end"
    finally:
        logging.set_verbosity(before)
    assert caplog.messages == ["loading", "no warm-up", *["cut"] * has_versions]


def test_flags_and_readme_have_the_limits_of_the_settings(repository):
    settings = Settings()
    for name, value in own_flags.parsed(serve).flag_values_dict().items():
        if hasattr(settings, name):
            assert getattr(settings, name) == value, name
    text = " ".join((repository / "README.md").read_text().split())
    assert f"at most {settings.max_row_characters:,} characters" in text
    assert f"at most {settings.max_answer_values:,} values" in text


def test_addresses_are_urls():
    assert server.address("127.0.0.1", 80) == "http://127.0.0.1:80"
    assert server.address("::1", 8501) == "http://[::1]:8501"


def test_settings_and_names_are_checked():
    with pytest.raises(InputError, match="max_batch_rows is 0, but must be at least 1"):
        Settings(max_batch_rows=0)
    assert Settings(max_queued_rows=1024).max_rows == 1024
    with pytest.raises(InputError, match="max_queued_rows is 1023, but must be at least max_rows, which is 1024"):
        Settings(max_queued_rows=1023)
    assert [check_name(name) for name in ("a.b-c_1", "", "a b", "a/b", "é")] == [True, False, False, False, False]
