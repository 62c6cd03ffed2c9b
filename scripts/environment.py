"""Makes the virtual environment of the Python that runs this file, or reuses it, and prints its interpreter.

usage: python scripts/environment.py [EXTRA ...]

Each Python has its own environment, `.venv/py3.x`, so that both stacks stand side by side. A set-up that was
interrupted is made anew; one that is complete is left alone until setup.py or pyproject.toml change.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import pathlib
import subprocess
import sys
import venv
from collections.abc import Iterator

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
STAMP = "installed.json"


@contextlib.contextmanager
def only_one(lock_file: pathlib.Path) -> Iterator[None]:
    """Makes a second call wait for the first, where the system can lock files."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with open(lock_file, "w") as file:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fingerprint() -> str:
    """What an environment depends on: where the repository is, the Python, and the requirements."""
    parts = [str(REPOSITORY).encode(), sys.version.encode()]
    parts += [(REPOSITORY / name).read_bytes() for name in ("setup.py", "pyproject.toml")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def prepare(extras: list[str]) -> pathlib.Path:
    """Returns the interpreter of an environment that has albert_tf and its `extras` installed."""
    directory = REPOSITORY / ".venv" / "py{}.{}".format(*sys.version_info)
    python = directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = directory / STAMP
    with only_one(directory.with_name(directory.name + ".lock")):
        try:
            installed = json.loads(stamp.read_text())
            subprocess.run([python, "-c", ""], check=True, capture_output=True)
        except (OSError, ValueError, subprocess.CalledProcessError):
            installed = {}
        extras = sorted({*extras, *installed.get("extras", [])})
        wanted = {"fingerprint": fingerprint(), "extras": extras}
        if installed == wanted:
            return python
        if not installed:
            print(f"making {directory} for Python {'.'.join(map(str, sys.version_info[:3]))}", file=sys.stderr)
            venv.create(directory, clear=True, symlinks=sys.platform != "win32", with_pip=True)
        print("installing albert_tf and what it needs (a few minutes the first time)", file=sys.stderr)
        requirement = str(REPOSITORY) + (f"[{','.join(extras)}]" if extras else "")
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        stamp.unlink(missing_ok=True)
        subprocess.run([*command, "--editable", requirement], check=True, stdout=sys.stderr, stdin=subprocess.DEVNULL)
        stamp.write_text(json.dumps(wanted))
    return python


if __name__ == "__main__":
    try:
        print(prepare(sys.argv[1:]))
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: the set-up failed (exit code {error.returncode}); its messages are above")
