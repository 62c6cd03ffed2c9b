"""Files and directories that appear whole: several writers, killed ones, full disks, and paths that cannot be."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from albert_tf import files, storage
from albert_tf.errors import InputError
from albert_tf.file_lock import held
from tests.conftest import REPOSITORY

# Writes a directory again and again: three files, all with the same text, with a pause between them.
WRITER = """
import os, random, sys, time
from albert_tf import files
path, text, rounds, in_one_step = sys.argv[1], sys.argv[2] * 1000, int(sys.argv[3]), sys.argv[4]
if in_one_step == "no":
    files._exchange = lambda one, other: False
print("begun", flush=True)
for _ in range(rounds):
    with files.atomic_directory(path, replaces=["a", "b", "c"]) as directory:
        for name in random.sample("abc", 3):
            with files.atomic_write(os.path.join(directory, name), "w") as file:
                file.write(text)
            time.sleep(random.random() * 0.001)
    with files.atomic_write(path + ".json", "w") as file:
        file.write(text)
"""
LIMITED = """
import resource, sys
from albert_tf import files
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
with files.{what} as made:
    if isinstance(made, str):
        files.write_json(made + "/little.json", 1)
        with files.atomic_write(made + "/much") as file:
            file.write(bytes({size}))
    else:
        made.write(bytes({size}))
"""
WAYS = pytest.mark.parametrize("in_one_step", ["yes", "no"])


def start(program: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=REPOSITORY, **pipes, **options)  # type: ignore[call-overload, no-any-return]


def texts(directory: pathlib.Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(directory.iterdir())}


def names(directory: pathlib.Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def is_whole(directory: pathlib.Path, letters: str) -> bool:
    return texts(directory) in [dict.fromkeys("abc", letter * 1000) for letter in letters]


def write(path: pathlib.Path, letter: str) -> None:
    with files.atomic_directory(path) as directory:
        for name in "abc":
            (pathlib.Path(directory) / name).write_text(letter * 1000)


def names_of_one(path: pathlib.Path) -> list[str]:
    """The names in a directory that was not exchanged for another while they were read."""
    while True:
        before, found, after = os.stat(path), names(path), os.stat(path)
        if (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns):
            return found


@WAYS
def test_of_many_writers_at_once_each_leaves_a_whole_one(tmp_path, in_one_step):
    write(tmp_path / "model", "z")
    writers = [start(WRITER, str(tmp_path / "model"), letter, "60", in_one_step) for letter in "xyz"]
    while any(writer.poll() is None for writer in writers):
        if in_one_step == "yes" and sys.platform.startswith("linux"):
            assert names_of_one(tmp_path / "model") == ["a", "b", "c"]  # there and complete at any moment
        time.sleep(0.002)
    assert [writer.communicate()[1] for writer in writers] == ["", "", ""]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert is_whole(tmp_path / "model", "xyz")
    assert names(tmp_path) == ["model", "model.json"]


@WAYS
def test_a_killed_writer_leaves_a_whole_one_and_the_next_clears_up(tmp_path, in_one_step):
    path, seed = tmp_path / "model", random.Random(5)
    write(path, "z")
    for _ in range(8):
        writer = start(WRITER, str(path), "x", "1000000", in_one_step)
        assert writer.stdout is not None and writer.stdout.readline() == "begun\n"
        time.sleep(seed.random() * 0.05)
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        files.recover_directory(path)
        assert is_whole(path, "xz")
    write(path, "y")
    files.write_json(f"{path}.json", {})
    assert is_whole(path, "y")
    assert names(tmp_path) == ["model", "model.json"]


def test_the_old_directory_is_put_back_where_a_writer_was_killed_between_two_renames(tmp_path):
    path, aside = tmp_path / "model", tmp_path / "model.0123abcd.partial"
    write(aside / "old", "x")
    with held(str(aside)) as is_free:  # its writer lives
        assert is_free
        files.recover_directory(path)
        assert not path.exists()
    files.recover_directory(path)
    assert is_whole(path, "x")
    write(aside / "old", "y")
    files.recover_directory(path)
    assert is_whole(path, "x")


def test_the_old_directory_is_put_back_before_a_block_that_fails(tmp_path):
    write(tmp_path / "model.0123abcd.partial" / "old", "x")
    with pytest.raises(KeyError), files.atomic_directory(tmp_path / "model"):
        raise KeyError
    assert is_whole(tmp_path / "model", "x") and names(tmp_path) == ["model"]


def test_what_a_living_writer_or_somebody_else_has_aside_stays(tmp_path):
    others = ["model.b.0123abcd.partial", "model.bak", "model.partial"]
    for name in others:
        (tmp_path / name).mkdir()
    with files.atomic_directory(tmp_path / "model") as first:
        pathlib.Path(first, "a").write_text("first")
        with files.atomic_directory(tmp_path / "model") as second:
            pathlib.Path(second, "a").write_text("second")
        assert texts(tmp_path / "model") == {"a": "second"}
    assert texts(tmp_path / "model") == {"a": "first"}
    assert names(tmp_path) == ["model", *others]


def test_a_directory_may_be_written_inside_of_the_one_being_written(tmp_path):
    with storage.complete_directory(str(tmp_path / "model")) as outer:
        write(pathlib.Path(outer), "x")
        write(tmp_path / "model", "y")  # clears up what nobody holds
        pathlib.Path(outer, "more").write_text("more")
    assert names(tmp_path / "model") == ["a", "b", "c", "more"] and names(tmp_path) == ["model"]
    assert (tmp_path / "model" / "a").read_text() == "x" * 1000


def test_foreign_files_are_refused_and_nothing_is_lost(tmp_path):
    path = tmp_path / "model"
    write(path, "x")
    (path / "thesis.txt").write_text("years of work")
    before = texts(path)
    with pytest.raises(InputError, match=r"holds thesis\.txt, which would be lost"):
        write(path, "y")
    assert texts(path) == before and names(tmp_path) == ["model"]
    with files.atomic_directory(path, replaces=["a", "b", "c", "thesis.txt"]):
        pass
    assert names(path) == []


@pytest.mark.parametrize("size", [5_000, 1_000_000])  # in the buffer to the end, and not
@pytest.mark.parametrize("what", ["atomic_directory(sys.argv[1])", "atomic_write(sys.argv[1])"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, what, size):
    path = tmp_path / "model"
    error = start(LIMITED.format(what=what, size=size), str(path)).communicate()[1].splitlines()[-1]
    named = path / "much" if "directory" in what else path
    assert error == f"albert_tf.errors.InputError: cannot write {named}: File too large"
    assert names(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_no_space_left_is_one_sentence(tmp_path):
    sentence = "cannot write .*model: No space left on device$"
    with pytest.raises(InputError, match=sentence), files.atomic_directory(tmp_path / "model"):
        pathlib.Path("/dev/full").write_bytes(b"x")
    assert names(tmp_path) == []


def test_an_error_of_reading_in_the_block_is_not_one_of_writing(tmp_path):
    with pytest.raises(FileNotFoundError), files.atomic_directory(tmp_path / "model"):
        (tmp_path / "model.txt").read_text()
    with pytest.raises(FileNotFoundError), files.atomic_write(tmp_path / "model"):
        (tmp_path / "model.txt").read_text()
    assert names(tmp_path) == []


def test_paths_that_cannot_be_written_are_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for path, sentence in {
        "": "the directory to write is empty: give a path, such as ./model",
        tmp_path / "file": "cannot write .*file: it is a file, and a directory is to be written",
        tmp_path / "file/model": "cannot write .*file/model: (Not a directory|File exists)",
        tmp_path / "link": "cannot write .*link: it is a link to .*nowhere, which does not exist",
        f"{tmp_path}/link/": "cannot write .*link/: it is a link to .*nowhere, which does not exist",
        tmp_path / "loop": "cannot write .*loop: it is a link to",
    }.items():
        with pytest.raises(InputError, match=sentence), files.atomic_directory(path):
            pytest.fail("the block was entered")
    with pytest.raises(InputError, match="cannot write .*tmp.*: Is a directory"), files.atomic_write(tmp_path):
        pass
    sentence = "cannot create the directory .*file/logs: Not a directory"
    with pytest.raises(InputError, match=sentence), storage.files_to_add(str(tmp_path / "file/logs")):
        pass
    assert names(tmp_path) == ["file", "link", "loop"]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="becomes another user, which root alone may")
def test_a_place_of_somebody_else_is_one_sentence(tmp_path):
    write(tmp_path / "model", "x")
    tmp_path.chmod(0o755)
    program = "import os, sys; from albert_tf import files; os.setuid(65534)\nfor path in sys.argv[1:]:\n"
    program += "    try:\n        with files.atomic_directory(path): pass\n"
    program += "    except files.InputError as error: print(error)"
    paths = [str(tmp_path / "model"), str(tmp_path / "other"), str(tmp_path / "further" / "model")]
    text, trace = start(program, *paths).communicate()
    assert trace == "" and text.splitlines() == [f"cannot write {path}: Permission denied" for path in paths]
    assert names(tmp_path) == ["model"] and is_whole(tmp_path / "model", "x")


def test_a_link_to_a_directory_stays_a_link(tmp_path):
    write(tmp_path / "disk", "x")
    (tmp_path / "model").symlink_to("disk")
    write(tmp_path / "model", "y")
    assert (tmp_path / "model").is_symlink() and is_whole(tmp_path / "disk", "y")
    assert names(tmp_path) == ["disk", "model"]


def test_what_is_written_has_the_usual_permissions(tmp_path):
    write(tmp_path / "model", "x")
    files.write_json(tmp_path / "file", {})
    (tmp_path / "usual").mkdir()
    (tmp_path / "usual file").touch()
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual file").stat().st_mode


@pytest.mark.parametrize("read", [files.read_json, storage.read_json])
def test_a_file_that_cannot_be_read_is_not_said_to_be_no_json(tmp_path, read):
    with pytest.raises(InputError, match="^cannot read .*: Is a directory$"):
        read(str(tmp_path))


class ResourceExhaustedError(Exception):
    """As of TensorFlow, which tells a full disk with it."""


@pytest.mark.parametrize("write", [files.atomic_write, files.atomic_directory])
def test_a_full_disk_is_one_sentence_whoever_tells_it(tmp_path, write):
    path = tmp_path / "model"
    with pytest.raises(InputError, match=f"^cannot write {path}: No space left on device$"), write(path):
        raise ResourceExhaustedError("part.data; No space left on device")
    with pytest.raises(ResourceExhaustedError), write(path):
        raise ResourceExhaustedError("OOM when allocating tensor")
    assert not list(tmp_path.iterdir())
