"""What is kept of a stopped run, and what is refused."""

from __future__ import annotations

import pytest

from albert_tf.errors import InputError
from data_prep.run_state import RunState

PLAN = {"settings": {"max_seq_length": 64}, "tokenizer": {"vocab_size": 9}, "input_content": [[100, 7]]}

METADATA = {
    **PLAN,
    "format": 1,
    "shards": [{"file": "train-00000-of-00003.tfrecord", "split": "train", "records": 1, "bytes": 7}],
}


def _state(directory, plan=PLAN, overwrite=False):
    return RunState(str(directory), plan, ("train", "eval"), overwrite=overwrite)


def _finish(state, directory, index, content=b"records"):
    name = f"train-{index:05d}-of-00003.tfrecord"
    (directory / name).write_bytes(content)
    state.finish(index, {"files": [{"file": name, "bytes": 7}]})
    return directory / name


def test_finished_shards_are_known_to_the_next_run(tmp_path):
    state = _state(tmp_path)
    _finish(state, tmp_path, 1)
    (tmp_path / "train-00002-of-00003.tfrecord.partial").write_bytes(b"half")
    state.close()
    state = _state(tmp_path)
    assert [state.finished(i) is not None for i in range(3)] == [False, True, False]
    assert not (tmp_path / "train-00002-of-00003.tfrecord.partial").exists()
    state.close()


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"rec")])
def test_shards_that_are_gone_or_cut_are_not_finished(tmp_path, damage):
    state = _state(tmp_path)
    damage(_finish(state, tmp_path, 0))
    assert state.finished(0) is None
    state.close()


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"settings": {"max_seq_length": 32}}, "settings .max_seq_length 64 there and 32 now"),
        ({"tokenizer": {"vocab_size": 8}}, "tokenizer .vocab_size 9 there and 8 now"),
        ({"input_content": [[100, 8]]}, "input files"),
    ],
)
def test_another_plan_is_refused_or_starts_afresh(tmp_path, complete, changed, message):
    state = _state(tmp_path)
    path = _finish(state, tmp_path, 0)
    if complete:
        state.complete(METADATA)
    state.close()
    with pytest.raises(InputError, match=message):
        _state(tmp_path, {**PLAN, **changed})
    assert path.exists()
    state = _state(tmp_path, {**PLAN, **changed}, overwrite=True)
    assert not path.exists() and state.finished(0) is None and not state.is_complete
    state.close()


def test_complete_leaves_the_records_and_metadata_alone(tmp_path):
    state = _state(tmp_path)
    path = _finish(state, tmp_path, 0)
    state.complete(METADATA)
    state.close()
    assert sorted(tmp_path.iterdir()) == sorted([path, tmp_path / "metadata.json"])
    state = _state(tmp_path)
    assert state.is_complete
    state.close()


def test_other_files_survive_overwriting(tmp_path):
    mine = tmp_path / "train-notes.txt"
    mine.write_text("mine")
    state = _state(tmp_path, overwrite=True)
    state.discard()
    state.close()
    assert mine.exists()


def test_output_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--output_dir: cannot make"):
        _state(tmp_path / "file")
