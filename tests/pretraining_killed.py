"""Runs the pre-training script and kills it with SIGKILL inside of a checkpoint: `… COUNT --flag=value …`.

The COUNT-th checkpoint is killed after its variables are written and before its manifest is.
"""

from __future__ import annotations

import os
import signal
import sys

from albert_tf import run_pretraining, storage


def main() -> None:
    count = int(sys.argv.pop(1))
    write_json, seen = storage.write_json, []

    def write_json_or_die(path: str, value: object) -> None:
        if path.endswith("checkpoint.json"):
            seen.append(path)
            if len(seen) == count:
                os.kill(os.getpid(), signal.SIGKILL)
        write_json(path, value)

    storage.write_json = write_json_or_die  # type: ignore[assignment]
    run_pretraining.script()


if __name__ == "__main__":
    main()
