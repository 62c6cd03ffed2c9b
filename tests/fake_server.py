"""The server with a stand-in for the model, as a process that needs no TensorFlow.

    python -m tests.fake_server --stop_seconds=1

Flags are the settings; `--answers=0` lets the model never answer.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import subprocess
import sys

from albert_tf.serving.settings import Settings
from tests.serving_fakes import Fake

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def command(*flags: str) -> list[str]:
    """What starts it."""
    return [sys.executable, "-m", "tests.fake_server", "--port=0", *flags]


def started(*flags: str) -> tuple[subprocess.Popen, int]:
    """The process, and the port that it listens at."""
    process = subprocess.Popen(
        command(*flags), cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    return process, int(process.stdout.readline().rpartition(":")[2].partition("/")[0])


def main() -> None:
    from albert_tf.serving import server
    from albert_tf.serving.application import Server

    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", type=int, default=1)
    for field in dataclasses.fields(Settings):
        parser.add_argument(f"--{field.name}", type=type(field.default), default=field.default)
    given = vars(parser.parse_args())
    backend = Fake(1)
    if given.pop("answers"):
        backend.may_answer.set()
    settings = Settings(**given)
    server.run_to_end(
        Server(backend, "m", settings),
        settings,
        lambda address: print(f"serving m, version 1, at {address}/v1/models/m", flush=True),
    )


if __name__ == "__main__":
    main()
