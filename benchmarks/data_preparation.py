"""How fast the preparation is: MB of text per CPU second of the whole command, wall time and peak memory.

    python benchmarks/data_preparation.py --text='corpus/*.txt.gz' --model=30k-clean.model --length=512

Everything behind `--` goes to data_prep.create_pretraining_data as it is. CPU time is user and system time of the
command and its processes, start-up included; one pass unless --dupe_factor says otherwise.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def measure(command: list[str]) -> tuple[float, float, float]:
    """Runs a command: wall seconds, CPU seconds, peak memory of its largest process in MiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", required=True, help="a file or a pattern")
    parser.add_argument("--model", required=True, help="a SentencePiece model")
    parser.add_argument("--length", type=int, default=512, help="max_seq_length")
    parser.add_argument("--workers", type=int, default=1, help="num_workers")
    parser.add_argument("others", nargs="*", help="further flags of the script, behind --")
    arguments = parser.parse_args()
    if not glob.glob(arguments.text):
        parser.error(f"no file matches {arguments.text}")
    with tempfile.TemporaryDirectory() as output:
        wall, cpu, memory = measure(
            [
                sys.executable,
                "-m",
                "data_prep.create_pretraining_data",
                f"--input_file={arguments.text}",
                f"--output_dir={output}",
                f"--spm_model_file={arguments.model}",
                f"--max_seq_length={arguments.length}",
                f"--num_workers={arguments.workers}",
                *arguments.others,
            ]
        )
        metadata = json.loads((pathlib.Path(output) / "metadata.json").read_text())
    text = sum(file["bytes"] for file in metadata["input"]) / 1e6
    records = sum(shard["records"] for shard in metadata["shards"])
    print(f"text {text:.1f} MB, {records:,} records of {arguments.length}")
    print(f"CPU {cpu:.2f} s: {text / cpu:.2f} MB per CPU second")
    print(f"wall {wall:.2f} s: {text / wall:.2f} MB per second with {arguments.workers} processes at a time")
    print(f"peak memory of the largest process {memory:.0f} MiB")


if __name__ == "__main__":
    main()
