"""The public names: which there are, what wins over them, and that each leads to its archive."""

from __future__ import annotations

import os
import pathlib

import pytest

from albert_tf import config_files, public_models
from albert_tf.errors import InputError
from tests import loopback
from tests.loopback import Reply


def archive(name: str) -> bytes:
    return loopback.archive("albert_config.json", name.encode())


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror and an empty cache, both set as a person would; the current directory is an empty one."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with loopback.running() as site:
        monkeypatch.setenv("ALBERT_TF_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("ALBERT_TF_MODELS_URL", f"{site.url}/albert/")
        yield site


def test_the_names_are_the_released_ones():
    """From the README of google-research/albert: https://storage.googleapis.com/albert_models/<name>.tar.gz."""
    names = """albert_base_v1 albert_large_v1 albert_xlarge_v1 albert_xxlarge_v1
        albert_base_v2 albert_large_v2 albert_xlarge_v2 albert_xxlarge_v2
        albert_base_zh albert_large_zh albert_xlarge_zh albert_xxlarge_zh""".split()
    assert public_models.public_names() == names
    assert public_models.BASE_URL == "https://storage.googleapis.com/albert_models"
    configurations = {name for name in config_files.config_names() if name.endswith(("_v1", "_v2"))}
    assert configurations == {name for name in names if not name.endswith("_zh")}


@pytest.mark.parametrize("name", public_models.public_names())
def test_every_name_leads_to_its_archive(mirror, tmp_path, name):
    mirror.serve(f"/albert/{name}.tar.gz", Reply(archive(name)))
    path = public_models.resolve(name)
    assert path == str(tmp_path / "cache" / f"{name}.tar.gz")
    assert pathlib.Path(path).read_bytes() == archive(name)


@pytest.mark.parametrize("name", ["ALBERT-base-v2", "albert-base-v2", "Albert_Base-V2"])
def test_names_are_read_kindly(mirror, tmp_path, name):
    mirror.serve("/albert/albert_base_v2.tar.gz", Reply(archive("base")))
    assert public_models.resolve(name) == str(tmp_path / "cache" / "albert_base_v2.tar.gz")


def test_the_cache_serves_off_line(mirror, monkeypatch):
    mirror.serve("/albert/albert_base_v2.tar.gz", Reply(archive("base")))
    path = public_models.resolve("albert_base_v2")
    monkeypatch.setenv("ALBERT_TF_MODELS_URL", f"http://localhost:{loopback.closed_port()}")
    assert public_models.resolve("albert-base-v2") == path
    with pytest.raises(InputError, match="albert_large_v2.tar.gz.*no connection"):
        public_models.resolve("albert_large_v2")


def test_a_path_that_exists_wins(mirror):
    os.mkdir("albert_base_v1")
    pathlib.Path("albert_base_v2").write_bytes(b"")
    pathlib.Path("albert_large_v2.index").write_bytes(b"")  # a TF1 checkpoint of that prefix
    for given in ("albert_base_v1", pathlib.Path("albert_base_v2"), "albert_large_v2", os.getcwd()):
        assert public_models.resolve(given) == os.fspath(given)
    assert mirror.asked == []


@pytest.mark.parametrize("given", ["albert_base", "albert_base_v3", "bert_base", "runs/albert_base_v2", "gs://b/x", ""])
def test_what_is_neither_is_left_to_its_reader(mirror, given):
    assert public_models.resolve(given) == given
    assert mirror.asked == []


def test_arguments_win_over_the_environment(mirror, tmp_path):
    mirror.serve("/other/albert_base_zh.tar.gz", Reply(archive("zh")))
    path = public_models.resolve("albert_base_zh", cache=tmp_path / "mine", base_url=f"{mirror.url}/other")
    assert path == str(tmp_path / "mine" / "albert_base_zh.tar.gz")


def test_the_cache_is_in_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("ALBERT_TF_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert public_models.cache_directory() == str(tmp_path / ".cache" / "albert_tf")
    monkeypatch.setenv("ALBERT_TF_CACHE", "~/models")
    assert public_models.cache_directory() == str(tmp_path / "models")
