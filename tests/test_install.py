"""What is installed with which TensorFlow, what a wrong pair is told, and what a wheel carries."""

from __future__ import annotations

import email
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import zipfile

import pytest

import albert_tf
from albert_tf import config_files, versions
from albert_tf.errors import InputError
from tests import source_files

REPOSITORY = source_files.REPOSITORY


def fake_distribution(directory: pathlib.Path, name: str, version: str) -> None:
    """Makes a distribution look installed in a directory."""
    info = directory / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def run(*arguments: str, cwd: pathlib.Path = REPOSITORY, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )


# ---- the import guard


@pytest.mark.parametrize(
    "installed",
    [
        {},
        {"tensorflow": "2.15.1", "tensorflow-text": "2.15.0", "keras": "2.15.0"},
        {"tensorflow": "2.15.1", "keras": "2.15.0"},
        {"tensorflow": "2.18.1", "tensorflow-text": "2.18.0", "keras": "3.15.1"},
        {"tensorflow": "2.21.0rc1", "tensorflow-text": "2.21.1", "keras": "3.15.1"},
        {"tensorflow-cpu": "2.19.0", "tensorflow-text": "2.19.0", "keras": "3.5.0"},
    ],
)
def test_versions_that_fit(installed):
    assert versions.find_problem(installed.get, {}) is None


@pytest.mark.parametrize(
    ("installed", "environment", "words"),
    [
        ({"tensorflow": "2.21.0", "tensorflow-text": "2.20.1"}, {}, ["2.21.0", "2.20.1", "'tensorflow-text==2.21.*'"]),
        ({"tensorflow-cpu": "2.19.1", "tensorflow-text": "2.21.1"}, {}, ["tensorflow-cpu 2.19.1", "2.21.1"]),
        ({"tensorflow": "2.15.1", "tensorflow-text": "2.16.1"}, {}, ["2.15.1", "2.16.1", "'tensorflow-text==2.15.*'"]),
        ({"tensorflow": "2.16.2"}, {}, ["tensorflow 2.16.2", "2.15, 2.18, 2.19, 2.20, 2.21"]),
        ({"tensorflow": "1.15.0"}, {}, ["tensorflow 1.15.0"]),
        ({"tensorflow": "2.15.1", "keras": "3.5.0"}, {}, ["keras 3.5.0", "'keras==2.15.*'"]),
        ({"tensorflow": "2.20.0", "keras": "2.15.0"}, {}, ["keras 2.15.0", "'keras>=3"]),
        ({"tensorflow": "2.20.0", "keras": "3.5.0"}, {"TF_USE_LEGACY_KERAS": "1"}, ["TF_USE_LEGACY_KERAS"]),
    ],
)
def test_versions_that_do_not_fit(installed, environment, words):
    problem = versions.find_problem(installed.get, environment)
    assert problem and "\n" not in problem and "to fix it: " in problem
    for word in words:
        assert word in problem


@pytest.mark.parametrize("arguments", [["-c", "import albert_tf"], ["-m", "data_prep.create_pretraining_data"]])
def test_a_wrong_pair_is_told_in_one_line(tmp_path, arguments):
    fake_distribution(tmp_path, "tensorflow", "2.20.0")
    fake_distribution(tmp_path, "tensorflow-text", "2.19.0")
    result = run(*arguments, PYTHONPATH=os.pathsep.join([str(tmp_path), str(REPOSITORY)]))
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("ImportError: tensorflow 2.20.0 and tensorflow-text 2.19.0 do not match")


def test_import_is_light():
    code = "import albert_tf, sys; print(albert_tf.__version__, 'tensorflow' in sys.modules, 'numpy' in sys.modules)"
    result = run("-W", "error::DeprecationWarning", "-c", code)
    assert (result.stdout, result.stderr) == (f"{albert_tf.__version__} False False\n", "")


def test_public_names():
    assert set(albert_tf.__all__) <= set(dir(albert_tf))
    for name in albert_tf.__all__:
        assert getattr(albert_tf, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = albert_tf.no_such_name


@pytest.mark.parametrize("order", ["sentencepiece, tensorflow", "tensorflow, sentencepiece"])
def test_modules_import_without_tensorflow_text(order):
    """No wheel of it exists for some machines; and sentencepiece and TensorFlow load in either order."""
    names = [name for name in source_files.modules() if name != "albert_tf.tokenization_graph"]
    result = run("-c", f"import sys; sys.modules['tensorflow_text'] = None; import {order}, {', '.join(names)}")
    assert result.returncode == 0, result.stderr


def test_installed_packages_agree():
    result = run("-m", "pip", "--disable-pip-version-check", "check")
    assert result.returncode == 0, result.stdout


# ---- the configurations that come with the package


def test_configurations_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    packaged = config_files.config_directory() / "albert_tiny.json"
    assert config_files.config_path("albert_tiny") == str(packaged)
    assert config_files.config_path("configs/albert_tiny.json") == str(packaged)
    (tmp_path / "mine.json").write_text("{}")
    assert config_files.config_path("mine.json") == "mine.json"
    for wrong in ("albert_huge", "missing/albert_tiny.json", "albert_tiny.txt", ""):
        with pytest.raises(InputError, match="--config: .*albert_tiny"):
            config_files.config_path(wrong, flag="config")


# ---- setup.py


@pytest.fixture
def setup(monkeypatch):
    """The names of setup.py, and what it tells setuptools."""
    setuptools = pytest.importorskip("setuptools")
    told = {}
    monkeypatch.setattr(setuptools, "setup", told.update)
    return {**runpy.run_path(str(REPOSITORY / "setup.py")), "told": told}


def test_the_guard_and_setup_know_the_same_stacks(setup):
    minors = {minor for stack in setup["STACKS"] for minor in range(stack.low, stack.high + 1)}
    assert minors == set(versions.SUPPORTED_MINORS)
    assert ("tensorflow", *setup["OTHER_TENSORFLOWS"]) == versions.TENSORFLOWS
    assert setup["told"]["version"] == albert_tf.__version__


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("tensorflow", "2.19.0", ["tensorflow>=2.18,<2.22", "tensorflow-text>=2.19,<2.20"]),
        ("tensorflow", "2.16.1", ["tensorflow>=2.18,<2.22", "tensorflow-text>=2.18,<2.22"]),
        ("tensorflow-cpu", "2.20.0", []),
        ("tensorflow-cpu", "2.12.0", ["tensorflow>=2.18,<2.22", "tensorflow-text>=2.18,<2.22"]),
        ("numpy", "2.0.0", ["tensorflow>=2.18,<2.22", "tensorflow-text>=2.18,<2.22"]),
    ],
)
def test_a_tensorflow_that_fits_is_kept(setup, monkeypatch, tmp_path, name, version, expected):
    fake_distribution(tmp_path, name, version)
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path)])
    monkeypatch.setattr("site.getusersitepackages", lambda: str(tmp_path))
    stack = next(stack for stack in setup["STACKS"] if stack.low == 18)
    requirements = setup["tensorflow_requirements"]
    here = requirements(stack._replace(is_here=True), True)
    assert [requirement.split(";")[0] for requirement in here] == expected
    general = ["tensorflow>=2.18,<2.22", "tensorflow-text>=2.18,<2.22"]
    for elsewhere in (requirements(stack._replace(is_here=False), True), requirements(stack, False)):
        assert [requirement.split(";")[0] for requirement in elsewhere] == general


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> pathlib.Path:
    """A wheel for every machine, made as `make wheel` does, from a copy of the sources."""
    source, output = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("albert_tf", "data_prep", "configs", "tests"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    command = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(output), "."]
    result = run(*command, cwd=source, ALBERT_TF_ANY_TENSORFLOW="1")
    assert result.returncode == 0, result.stderr
    (path,) = output.glob("*.whl")
    return path


def test_wheel_contents(wheel):
    assert wheel.name == f"albert_tf-{albert_tf.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for config in (path for kind in ("*.json", "*.flags") for path in (REPOSITORY / "configs").rglob(kind)):
            packaged = f"albert_tf/configs/{config.relative_to(REPOSITORY / 'configs').as_posix()}"
            assert archive.read(packaged) == config.read_bytes()
        metadata = email.message_from_bytes(
            archive.read(next(name for name in names if name.endswith(".dist-info/METADATA")))
        )
    for module, tree in source_files.modules().items():
        del tree
        path = module.replace(".", "/")
        assert f"{path}.py" in names or f"{path}/__init__.py" in names
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "scripts"))]
    assert any(name.endswith("LICENSE") for name in names)
    required = [text.replace('"', "'") for text in metadata.get_all("Requires-Dist")]
    for wanted in (
        "tensorflow<2.16,>=2.15; python_version < '3.12'",
        "tensorflow<2.22,>=2.18; python_version == '3.12'",
        "tensorflow<2.22,>=2.20; python_version >= '3.13'",
    ):
        assert wanted in required
        text = wanted.replace("tensorflow", "tensorflow-text")
        assert any(requirement.startswith(text) for requirement in required)


def test_wheel_works_outside_the_repository(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    site = str(tmp_path / "site")
    code = "import albert_tf; print(albert_tf.__file__); print(albert_tf.config_path('albert_base_v2'))"
    result = run("-c", code, cwd=tmp_path, PYTHONPATH=site)
    assert result.stdout.splitlines() == [
        os.path.join(site, "albert_tf", "__init__.py"),
        os.path.join(site, "albert_tf", "configs", "albert_base_v2.json"),
    ], result.stderr
    result = run("-m", "albert_tf.describe", "--config=albert_base_v2", cwd=tmp_path, PYTHONPATH=site)
    recipe = os.path.join(site, "albert_tf", "configs", "recipes", "albert_base_v2.flags")
    assert "attention" in result.stdout and result.stdout.endswith(f"--flagfile={recipe}\n"), result.stderr
