"""Runs the fine-tuning script many times in one process, which imports TensorFlow once: a JSON object of flags a line.

`Driver` is the other end. What a run prints goes to a file of its own, and its exit code back.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def arguments(flags: dict[str, Any]) -> list[str]:
    """--name=value of each flag that is not None."""
    return [f"--{name}={value}" for name, value in flags.items() if value is not None]


class Driver:
    """Runs the script in a process that is kept."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.finetuning_driver"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, expect: int = 0, **flags: Any) -> str:
        """Runs to the end and returns stdout and stderr together."""
        with tempfile.NamedTemporaryFile("r", suffix=".txt") as file:
            self.process.stdin.write(json.dumps({"file": file.name, "arguments": arguments(flags)}) + "\n")
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
    from absl import flags

    from albert_tf import finetuning_flags, run_finetuning
    from albert_tf.errors import run_main

    finetuning_flags.define_flags()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        flags.FLAGS.unparse_flags()
        for name in flags.FLAGS.get_key_flags_for_module(finetuning_flags):
            name.unparse()
        sys.argv = ["run_finetuning", *request["arguments"]]
        code: Any = 0
        with open(request["file"], "w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            try:
                run_main(run_finetuning.main)
            except SystemExit as end:
                code = end.code or 0
            sys.stdout.flush()
            sys.stderr.flush()
        answers.write(f"{code}\n")
        answers.flush()


if __name__ == "__main__":
    main()
