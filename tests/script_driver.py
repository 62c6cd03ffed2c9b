"""Runs one script many times in one process, which imports TensorFlow once: a JSON object with its arguments a line.

`Driver` is the other end. What a run prints goes to a file of its own, and its exit code back.
"""

from __future__ import annotations

import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def arguments(flags: dict[str, Any]) -> list[str]:
    """--name=value of each flag that is not None."""
    return [f"--{name}={value}" for name, value in flags.items() if value is not None]


class Driver:
    """Runs a script, `albert_tf.convert` for one, as `python -m` does, in a process that is kept."""

    def __init__(self, script: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.script_driver", script],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *given: object, expect: int = 0, **flags: Any) -> str:
        """Runs to the end and returns stdout and stderr together; the exit code must be `expect`."""
        with tempfile.NamedTemporaryFile("r", suffix=".txt") as file:
            request = {"file": file.name, "arguments": [*map(str, given), *arguments(flags)]}
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            text = pathlib.Path(file.name).read_text()
        assert answer, text
        assert int(answer) == expect, text
        return text

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    from absl import app, flags

    script = sys.argv[1]
    app.define_help_flags()
    of_absl = set(flags.FLAGS)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        sys.argv = [script, *request["arguments"]]
        code: Any = 0
        with open(request["file"], "w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            try:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            except SystemExit as end:
                code = end.code or 0
            sys.stdout.flush()
            sys.stderr.flush()
        for name in set(flags.FLAGS) - of_absl:  # the script defines them anew
            delattr(flags.FLAGS, name)
        flags.FLAGS.unparse_flags()
        answers.write(f"{code}\n")
        answers.flush()


if __name__ == "__main__":
    main()
