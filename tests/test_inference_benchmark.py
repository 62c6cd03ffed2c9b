"""The benchmark of inference: its requests, its table, and that it runs on exports of a tiny model."""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np
import pytest

TINY = {
    "vocab_size": 100,
    "embedding_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}


@pytest.fixture(scope="module")
def inference(repository):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repository / "benchmarks"))
        return importlib.import_module("inference")


def test_sentences_are_of_mixed_length(inference):
    asked = inference.requests(["2x8"], 256, 512)
    assert asked["2x8"] == [[8, 8]]
    lengths = [length for rows in asked["as they come"] for length in rows]
    assert len(lengths) == 256 and len(asked["as they come"]) == 8
    assert 21 < np.median(lengths) < 27 and max(lengths) > 90
    assert [length for rows in asked["sorted"] for length in rows] == sorted(lengths)
    assert set(inference.requests(["2x8"], 0, 512)) == {"2x8"}


def test_the_table_has_medians(inference):
    asked = inference.requests(["1x8"], 64, 512)
    rounds = [[0.010, 0.030], [0.020, 0.040], [0.900, 0.950]]
    results = {"ours": {"seconds": dict.fromkeys(asked, rounds), "cold_start": 1.26, "memory": 512.4}}
    header, _, line = inference.table(results, asked, 0, 2).splitlines()
    assert header == "| | 1x8 | as they come | sorted | first answer, s | MiB |"
    assert line == "| ours | 20.0 | 3200.0/s | 3200.0/s | 1.3 | 512 |"
    assert inference.table(results, asked, 1, 2).splitlines()[2].startswith("| ours | 20.0 |")


def test_exports_of_a_tiny_model_are_timed(inference, tmp_path, monkeypatch, capsys):
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    arguments = [f"--config={tmp_path / 'config.json'}", f"--output={tmp_path / 'out'}", "--shapes=1x8,2x4"]
    arguments += ["--contenders=SavedModel bfloat16 classifier", "--rounds=2", "--sentences=33", "--threads=1"]
    monkeypatch.setattr(sys, "argv", ["inference", *arguments])
    inference.main()
    with pytest.raises(SystemExit, match="holds exports of a model of other sizes"):
        inference.prepare(tmp_path / "out", {**TINY, "hidden_size": 32})
    results = json.loads((tmp_path / "out" / "table.json").read_text())
    (name,) = results
    assert name.startswith("SavedModel bfloat16 classifier (tensorflow 2.")
    seconds = results[name]["seconds"]
    assert set(seconds) == {"1x8", "2x4", "as they come", "sorted"}
    assert all(len(values) == 2 and min(min(values)) > 0 for values in seconds.values())
    assert results[name]["cold_start"] > max(max(seconds["1x8"])) and results[name]["memory"] > 100
    assert (tmp_path / "out" / "table.md").read_text() in capsys.readouterr().out


def test_packed_contenders_have_no_fixed_shapes(inference):
    rows = [[3, 4], [5]]
    for name, wanted in (("OpenVINO bfloat16 packed", (None, rows, [[3, 4, 5]])), ("ONNX int8", (rows,) * 3)):
        columns = ("2x8", inference.ARRIVAL, inference.SORTED)
        assert tuple(inference.asked_of(name, column, rows) for column in columns) == wanted
    results = {"packed": {"seconds": {"as they come": [[0.5, 1.0]]}, "cold_start": 1.0, "memory": 5.0}}
    asked = {"2x8": [[8, 8]], "as they come": rows}
    assert inference.table(results, asked, 0, 2).splitlines()[2] == "| packed | – | 6.0/s | 1.0 | 5 |"


@pytest.mark.parametrize("name", ["OpenVINO int8", "ONNX int8"])
def test_a_packed_export_answers_each_sentence_as_the_padded_one_does(inference, tmp_path, monkeypatch, name):
    for package in ("onnx", "openvino" if name.startswith("OpenVINO") else "onnxruntime"):
        pytest.importorskip(package)
    contenders = importlib.import_module("inference_contenders")
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    chosen = {name: contenders.CONTENDERS[name], f"{name} packed": contenders.CONTENDERS[f"{name} packed"]}
    inference.make_files(tmp_path, str(tmp_path / "config.json"), sorted(c.file for c in chosen.values()))
    inputs = contenders._batch([7, 3, 40, 8, 5], TINY["vocab_size"])
    padded, packed = (contender.load(str(tmp_path), TINY, 1) for contender in chosen.values())
    packed = contenders._packing(packed, *chosen[f"{name} packed"].packed)
    (given,) = packed(inputs).values()
    *_, wanted = padded(inputs)
    assert given.shape == wanted.shape == (5, TINY["hidden_size"])
    np.testing.assert_allclose(given, wanted, atol=0.05)
