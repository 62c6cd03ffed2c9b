"""albert_tf.pretraining_output: which evaluation's weights are kept apart."""

from __future__ import annotations

import json

import pytest

from albert_tf import pretraining_output, run_log


@pytest.fixture
def evaluate(tmp_path, monkeypatch):
    """Logs an evaluation, lets it be kept if it is the best, and says which one is kept."""
    kept = tmp_path / "best" / "evaluation.json"

    def save(output_dir, name, config, weights, tokenizer, *, evaluation):
        assert (output_dir, name) == (str(tmp_path), "best")
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(evaluation))

    monkeypatch.setattr(pretraining_output, "save_portable", save)

    def evaluate(step: int, loss: float) -> int:
        line = {"step": step, "loss": loss}
        run_log.append(str(tmp_path / "evaluation_log.jsonl"), line)
        pretraining_output.keep_if_best(str(tmp_path), line, None, {}, None)
        return json.loads(kept.read_text())["step"]

    return evaluate


def test_the_lowest_loss_is_kept(evaluate):
    assert [evaluate(*line) for line in ((10, 3.0), (20, 2.5), (30, 2.75), (40, 2.25))] == [10, 20, 20, 40]


def test_what_another_run_left_does_not_count(tmp_path, evaluate):
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "evaluation.json").write_text('{"step": 900, "loss": 0.5}')
    assert [evaluate(*line) for line in ((10, 3.0), (20, 3.5), (30, 2.5))] == [10, 10, 30]
