"""Whether the server stands a crowd and bad manners, and how fast it answers meanwhile.

    python benchmarks/serving_load.py --minutes=10
    python benchmarks/serving_load.py --model=OUTPUT_DIR --connections=500 --minutes=10

Starts `albert_tf.serve` with a model (by default a tiny one with random weights, so that the server is what is
measured) and asks it over so many connections at once, each one request after the other, for so many minutes. At the
same time there are clients that send their body a byte at a time, bad JSON, bodies that are too large, too many rows,
addresses that are not there, clients that leave before the answer, and one that never reads any. Each bad request must
get its own 4xx and each good one 200, or 503 or 504 where the machine cannot keep up with so many, which one in ten
may get; who does not read must be turned away. The server must live, end by itself after SIGTERM, and not grow: the
resident memory in the last quarter of the time is held against that in the second quarter. Exits with 1 if one of
this does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import itertools
import json
import math
import os
import pathlib
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

MAX_BODY_MB = 1
MAX_ROWS = 256
READ_SECONDS = 5.0
IDLE_SECONDS = 20.0
UNREAD_ANSWERS = 4000  # of the page, which together are more than the system keeps for a connection
CLIENT_SECONDS = 300.0
PATIENCE_SECONDS = 60.0  # for what the server does by itself
LEAST_ANSWERED = 0.9  # of the good requests
MOST_GROWTH = 0.05
SECONDS_BETWEEN_LOOKS = 1.0
WORDS = "the list of all items is empty and it returns a new one with the value set to none".split()


# A time-out of aiohttp is no error of it, and a server that is gone is one of the system.
FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError)


class Load:
    """What all clients share: the server's address, when to end, and what was seen."""

    def __init__(self, address: str, end: float):
        self.address = address
        self.end = end
        self.predict = f"{address}:predict"
        self.seconds: list[float] = []
        self.statuses: collections.Counter[tuple[str, str]] = collections.Counter()
        self.unexpected: collections.Counter[str] = collections.Counter()

    def saw(self, kind: str, status: int | str, wanted: set[int]) -> None:
        """Counts an answer, and keeps it if it is not the one that is wanted."""
        self.statuses[kind, str(status)] += 1
        if status not in wanted:
            self.unexpected[f"{kind}: {status}"] += 1

    @property
    def goes_on(self) -> bool:
        """Whether there is time left."""
        return time.monotonic() < self.end

    @property
    def answered(self) -> float:
        """The share of the good requests that had their answer."""
        good = {status: count for (kind, status), count in self.statuses.items() if kind == "good"}
        return good.get("200", 0) / max(1, sum(good.values()))


async def good_client(load: Load, session: aiohttp.ClientSession, seed: int) -> None:
    """One request after the other, of one to four texts."""
    rng = random.Random(seed)
    while True:
        texts = [" ".join(rng.choices(WORDS, k=rng.randrange(1, 20))) for _ in range(rng.randrange(1, 5))]
        start = time.monotonic()
        try:
            async with session.post(load.predict, json={"instances": texts}) as response:
                answer = await response.json()
                status: int | str = response.status
                if status == 200 and len(answer["predictions"]) != len(texts):
                    status = f"{len(answer['predictions'])} predictions for {len(texts)} texts"
        except FAILURES as error:
            status = type(error).__name__
        load.seconds.append(time.monotonic() - start)
        load.saw("good", status, {200, 503, 504})
        if not load.goes_on:
            return


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
        try:
            async with session.post(address, data=body) as response:
                status: int | str = response.status
                content = await response.json()
                if list(content) != ["error"]:
                    status = "an answer without error"
        except FAILURES as error:
            # The refusal may come, and the connection be closed, while the client still sends.
            is_refused = kind == "huge body" and not isinstance(error, aiohttp.ClientConnectorError)
            status = 413 if is_refused else type(error).__name__
        load.saw(kind, status, wanted)
        if not load.goes_on:
            return
        await asyncio.sleep(0.2)


async def slow_client(load: Load, host: str, port: int, path: str) -> None:
    """Sends its body a byte every half second and must be turned away with 408."""
    reader, writer = await asyncio.open_connection(host, port)
    with contextlib.closing(writer):
        writer.write(f"POST {path}:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode())
        answer = asyncio.ensure_future(reader.readline())
        start = time.monotonic()
        while not answer.done() and time.monotonic() - start < 6 * READ_SECONDS:
            writer.write(b" ")
            await asyncio.wait([answer], timeout=0.5)
        if not answer.done():
            answer.cancel()
            load.saw("slow body", "none", {408})
            return
        line = answer.result().decode()
    load.saw("slow body", int(line.split()[1]) if line.startswith("HTTP/") else line, {408})


async def leaving_client(load: Load, host: str, port: int, path: str) -> None:
    """Asks and leaves before the answer."""
    body = json.dumps({"instances": ["a " * 50] * 4})
    _, writer = await asyncio.open_connection(host, port)
    with contextlib.closing(writer):
        head = f"POST {path}:predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        await asyncio.sleep(0.05)
    load.saw("leaving", "-", {"-"})


async def unreading_client(load: Load, host: str, port: int, path: str) -> None:
    """Asks for the page many times, reads none of it, and must lose its connection."""
    _, writer = await asyncio.open_connection(host, port, limit=1)
    with contextlib.closing(writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * UNREAD_ANSWERS)
        start = time.monotonic()
        while not writer.is_closing() and time.monotonic() - start < IDLE_SECONDS + PATIENCE_SECONDS:
            await asyncio.sleep(min(0.5, IDLE_SECONDS))
            writer.write(b"G")  # a connection that is gone is only seen by using it
        load.saw("not reading", "closed" if writer.is_closing() else "stays", {"closed"})


async def again_and_again(load: Load, client: Callable[..., Awaitable[None]], *address: Any) -> None:
    """A client that is a single connection, one after the other."""
    while True:
        try:
            await client(load, *address)
        except FAILURES as error:
            load.saw(client.__name__, type(error).__name__, set())
            await asyncio.sleep(0.1)
        if not load.goes_on:
            return


async def watch_memory(load: Load, process_id: int) -> list[float]:
    """The resident memory in MiB, once a second; without a process there is no load any more."""
    found = []
    while load.goes_on:
        try:
            status = pathlib.Path(f"/proc/{process_id}/status").read_text()
        except OSError:
            status = ""
        match = re.search(r"VmRSS:\s+(\d+) kB", status)
        if match is None:
            load.end = time.monotonic()
            break
        found.append(int(match[1]) / 1024)
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
    return found


def write_tiny_model(directory: str) -> str:
    """A classifier with random weights and the alphabet as vocabulary."""
    from tests import answering_models

    return answering_models.write_task_model(directory, "classifier")


def command(model: str) -> list[str]:
    """What starts the server."""
    return [
        *(sys.executable, "-m", "albert_tf.serve", f"--model={model}", "--model_name=model", "--port=0"),
        *(f"--max_body_mb={MAX_BODY_MB}", f"--max_rows={MAX_ROWS}"),
        *(f"--read_seconds={READ_SECONDS}", f"--idle_seconds={IDLE_SECONDS}"),
    ]


async def address_of(process: asyncio.subprocess.Process) -> str:
    """Where the model is, once the server says it."""
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    match = re.search(r"at (http://\S+)", line)
    if not match:
        raise SystemExit(f"the server did not start: {line}")
    return match[1]


async def drive(load: Load, process: asyncio.subprocess.Process, connections: int) -> tuple[list[float], bool]:
    """Lets all clients loose until the end; the memory meanwhile, and whether the server still answers."""
    match = re.fullmatch(r"http://([^:]+):(\d+)(/.*)", load.address)
    assert match is not None
    address = match[1], int(match[2]), match[3]
    timeout = aiohttp.ClientTimeout(total=CLIENT_SECONDS)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        clients = [good_client(load, session, seed) for seed in range(connections)]
        clients += [bad_client(load, session, seed) for seed in range(8)]
        # A single one that does not read: until its connection is full the server makes a thousand pages for it.
        for client, count in ((slow_client, 4), (leaving_client, 4), (unreading_client, 1)):
            clients += [again_and_again(load, client, *address) for _ in range(count)]
        memory, *_ = await asyncio.gather(watch_memory(load, process.pid), *clients)
        try:
            async with session.get(load.address) as response:
                return memory, response.status == 200
        except FAILURES:
            return memory, False


async def end(process: asyncio.subprocess.Process) -> int | None:
    """Its exit code after SIGTERM; None if it did not end."""
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    try:
        return await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
    except asyncio.TimeoutError:
        return None


def quarters(memory: list[float]) -> tuple[float, float]:
    """The medians of the second quarter and of the last one."""
    quarter = max(1, len(memory) // 4)
    return statistics.median(memory[quarter : 2 * quarter] or memory), statistics.median(memory[-quarter:])


def problems(load: Load, memory: list[float], is_alive: bool, code: int | None) -> list[str]:
    """What is not as it must be."""
    found = []
    if load.unexpected:
        found.append(f"{sum(load.unexpected.values())} unexpected answers: {load.unexpected.most_common(5)}")
    if load.answered < LEAST_ANSWERED:
        found.append(f"only {load.answered:.1%} of the good requests were answered")
    if not is_alive:
        found.append("the server did not answer any more")
    if code != 0:
        found.append("it did not end after SIGTERM" if code is None else f"it ended with {code}")
    if memory:
        early, late = quarters(memory)
        if late > early * (1 + MOST_GROWTH):
            found.append(f"its memory grew by more than {MOST_GROWTH:.0%}")
    return found


async def measure(model: str, connections: int, minutes: float) -> bool:
    """Prints what was seen; whether all was as it must be."""
    process = await asyncio.create_subprocess_exec(*command(model), stdout=asyncio.subprocess.PIPE, cwd=REPOSITORY)
    try:
        load = Load(await address_of(process), time.monotonic() + 60 * minutes)
        begin = time.monotonic()
        memory, is_alive = await drive(load, process, connections)
        seconds = time.monotonic() - begin
        code = await end(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    report(load, connections, seconds, memory)
    found = problems(load, memory, is_alive, code)
    print("\n".join(found) or "all as it must be")
    return not found


def report(load: Load, connections: int, seconds: float, memory: list[float]) -> None:
    """Prints the numbers."""
    latencies = sorted(load.seconds) or [math.inf]
    rate = f"{len(load.seconds) / seconds:.0f} a second"
    print(f"{connections} connections, {seconds:.0f} s, {len(load.seconds):,} requests, {rate}")
    shares = {
        name: latencies[min(len(latencies) - 1, int(share * len(latencies)))]
        for name, share in (("median", 0.5), ("95 %", 0.95), ("99 %", 0.99), ("longest", 1.0))
    }
    print("seconds to the answer: " + ", ".join(f"{name} {value:.3f}" for name, value in shares.items()))
    for (kind, status), count in sorted(load.statuses.items()):
        print(f"  {kind:14} {status:4} {count:8,}")
    if memory:
        early, late = quarters(memory)
        print(f"memory: {memory[0]:.0f} MiB at first, {early:.0f} in the second quarter, {late:.0f} in the last one")


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
