"""Whether the server stands a crowd and bad manners, and how fast it answers meanwhile.

    python benchmarks/serving_load.py --minutes=10
    python benchmarks/serving_load.py --model=OUTPUT_DIR --connections=500 --minutes=10

Starts `albert_tf.serve` with a model (by default a tiny one with random weights, so that the server is what is
measured) and asks it over so many connections at once, each one request after the other, for so many minutes. At the
same time there are clients that send their body a byte at a time, bad JSON, bodies that are too large, too many rows,
addresses that are not there, and clients that leave before the answer. Each bad request must get its own 4xx and each
good one 200, or 503 or 504 where the machine cannot keep up with so many; the server must live, end by itself after
SIGTERM, and not grow: the resident memory in the last quarter of the time is held against that in the second quarter.
Exits with 1 if one of this does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import itertools
import json
import os
import pathlib
import random
import re
import signal
import statistics
import sys
import tempfile
import time

import aiohttp

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

MAX_BODY_MB = 1
MAX_ROWS = 256
READ_SECONDS = 5
MOST_GROWTH = 0.05
SECONDS_BETWEEN_LOOKS = 1.0
WORDS = "the list of all items is empty and it returns a new one with the value set to none".split()


class Load:
    """What all clients share: the server's address, when to end, and what was seen."""

    def __init__(self, address: str, end: float):
        self.address = address
        self.end = end
        self.predict = f"{address}:predict"
        self.seconds: list[float] = []
        self.statuses: collections.Counter[tuple[str, str]] = collections.Counter()
        self.unexpected: list[str] = []

    def saw(self, kind: str, status: int | str, wanted: set[int]) -> None:
        """Counts an answer, and keeps it if it is not the one that is wanted."""
        self.statuses[kind, str(status)] += 1
        if status not in wanted:
            self.unexpected.append(f"{kind}: {status}")

    @property
    def goes_on(self) -> bool:
        """Whether there is time left."""
        return time.monotonic() < self.end


async def good_client(load: Load, session: aiohttp.ClientSession, seed: int) -> None:
    """One request after the other, of one to four texts."""
    rng = random.Random(seed)
    while load.goes_on:
        texts = [" ".join(rng.choices(WORDS, k=rng.randrange(1, 20))) for _ in range(rng.randrange(1, 5))]
        start = time.monotonic()
        try:
            async with session.post(load.predict, json={"instances": texts}) as response:
                answer = await response.json()
                status: int | str = response.status
                if status == 200 and len(answer["predictions"]) != len(texts):
                    status = f"{len(answer['predictions'])} predictions for {len(texts)} texts"
        except aiohttp.ClientError as error:
            status = type(error).__name__
        load.seconds.append(time.monotonic() - start)
        load.saw("good", status, {200, 503, 504})


async def bad_client(load: Load, session: aiohttp.ClientSession, seed: int) -> None:
    """Wrong requests of all kinds in turn, a few a second."""
    huge = b'{"instances": ["' + b"a" * ((MAX_BODY_MB << 20) + 1) + b'"]}'
    requests = [
        ("bad JSON", load.predict, b'{"instances": [', {400}),
        ("no UTF-8", load.predict, b'{"instances": ["\xff\xfe"]}', {400}),
        ("deep JSON", load.predict, b"[" * 200_000, {400}),
        ("wrong type", load.predict, b'{"instances": [3]}', {400}),
        ("no instances", load.predict, b"{}", {400}),
        ("too many rows", load.predict, json.dumps({"instances": ["a"] * (MAX_ROWS + 1)}).encode(), {413}),
        ("huge body", load.predict, huge, {413}),
        ("other model", load.address.rsplit("/", 1)[0] + "/other:predict", b"{}", {404}),
    ]
    for kind, address, body, wanted in itertools.cycle(requests[seed % 8 :] + requests[: seed % 8]):
        if not load.goes_on:
            return
        try:
            async with session.post(address, data=body) as response:
                status: int | str = response.status
                content = await response.json()
                if list(content) != ["error"]:
                    status = "an answer without error"
        except aiohttp.ClientError as error:
            # The refusal may come, and the connection be closed, while the client still sends.
            status = 413 if kind == "huge body" else type(error).__name__
        load.saw(kind, status, wanted)
        await asyncio.sleep(0.2)


async def slow_client(load: Load, host: str, port: int, path: str) -> None:
    """Sends its body a byte every half second and must be turned away with 408."""
    while load.goes_on:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"POST {path}:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode())
        answer = asyncio.ensure_future(reader.readline())
        start = time.monotonic()
        while not answer.done() and time.monotonic() - start < 6 * READ_SECONDS:
            writer.write(b" ")
            await asyncio.sleep(0.5)
        if not answer.done():
            answer.cancel()
        line = answer.result().decode() if answer.done() and not answer.cancelled() else "none"
        load.saw("slow body", int(line.split()[1]) if line.startswith("HTTP/") else line, {408})
        writer.close()


async def leaving_client(load: Load, host: str, port: int, path: str) -> None:
    """Asks and leaves before the answer."""
    body = json.dumps({"instances": ["a " * 50] * 4})
    while load.goes_on:
        _, writer = await asyncio.open_connection(host, port)
        head = f"POST {path}:predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        await asyncio.sleep(0.05)
        writer.close()
        load.statuses["leaving", "-"] += 1


async def watch_memory(load: Load, process_id: int) -> list[float]:
    """The resident memory in MiB, once a second."""
    found = []
    while load.goes_on:
        status = pathlib.Path(f"/proc/{process_id}/status").read_text()
        found.append(int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024)
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
    return found


def write_tiny_model(directory: str) -> str:
    """A classifier with random weights and the alphabet as vocabulary."""
    from tests import answering_models

    return answering_models.write_task_model(directory, "classifier")


async def start(model: str) -> tuple[asyncio.subprocess.Process, str]:
    """The server's process, and its model's address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "albert_tf.serve", f"--model={model}", "--model_name=model", "--port=0"),
        *(f"--max_body_mb={MAX_BODY_MB}", f"--max_rows={MAX_ROWS}", f"--read_seconds={READ_SECONDS}"),
        stdout=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    match = re.search(r"at (http://\S+)", line)
    if not match:
        raise SystemExit(f"the server did not start: {line}")
    return process, match[1]


async def measure(model: str, connections: int, minutes: float) -> bool:
    """Prints what was seen; whether all was as it must be."""
    process, address = await start(model)
    load = Load(address, time.monotonic() + 60 * minutes)
    host, port, path = re.fullmatch(r"http://([^:]+):(\d+)(/.*)", address).groups()
    connector = aiohttp.TCPConnector(limit=0)
    begin = time.monotonic()
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=300)) as session:
        clients = [good_client(load, session, seed) for seed in range(connections)]
        clients += [bad_client(load, session, seed) for seed in range(8)]
        clients += [slow_client(load, host, int(port), path) for _ in range(4)]
        clients += [leaving_client(load, host, int(port), path) for _ in range(4)]
        memory, *_ = await asyncio.gather(watch_memory(load, process.pid), *clients)
        async with session.get(address) as response:
            is_alive = response.status == 200
    seconds = time.monotonic() - begin
    process.send_signal(signal.SIGTERM)
    code = await asyncio.wait_for(process.wait(), 60)

    latencies = sorted(load.seconds)
    print(
        f"{connections} connections, {seconds:.0f} s, {len(latencies):,} requests, {len(latencies) / seconds:.0f} a "
        "second"
    )
    shares = {
        name: latencies[min(len(latencies) - 1, int(share * len(latencies)))]
        for name, share in (("median", 0.5), ("95 %", 0.95), ("99 %", 0.99), ("longest", 1.0))
    }
    print("seconds to the answer: " + ", ".join(f"{name} {value:.3f}" for name, value in shares.items()))
    for (kind, status), count in sorted(load.statuses.items()):
        print(f"  {kind:14} {status:4} {count:8,}")
    quarter = max(1, len(memory) // 4)
    early, late = statistics.median(memory[quarter : 2 * quarter] or memory), statistics.median(memory[-quarter:])
    print(f"memory: {memory[0]:.0f} MiB at first, {early:.0f} in the second quarter, {late:.0f} in the last one")
    has_grown = late > early * (1 + MOST_GROWTH)
    problems = [
        text
        for text, holds in (
            (
                f"{len(load.unexpected)} unexpected answers: {collections.Counter(load.unexpected).most_common(5)}",
                load.unexpected,
            ),
            ("the server did not answer any more", not is_alive),
            (f"it ended with {code} after SIGTERM", code != 0),
            (f"its memory grew by more than {MOST_GROWTH:.0%}", has_grown),
        )
        if holds
    ]
    print("\n".join(problems) or "all as it must be")
    return not problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="by default a tiny one with random weights")
    parser.add_argument("--connections", type=int, default=500, help="with good requests")
    parser.add_argument("--minutes", type=float, default=10.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        model = arguments.model or write_tiny_model(directory)
        is_right = asyncio.run(measure(model, arguments.connections, arguments.minutes))
    raise SystemExit(0 if is_right else 1)


if __name__ == "__main__":
    main()
