"""What a push costs a real peer: its CPU time by parts, two processes, and a peer that rests.

    python benchmarks/peer.py [parts] [noise] [personal] [processes] [idle] [--sizes 20 10000]

`parts`: CPU time of learning, committing, taking in and hearing the answer, with real stores in one
process and without sockets. `noise`: a push of 16 samples without noise and with it. `personal`: a
sample, learned and committed, with its loss only, with all measures, and with the experts as well.
`processes`: acknowledged pushes a second between two processes on loopback, beside durable commits
of one row by bare SQLite. `idle`: what a second of rest, a sample, a push and an arrival cost in
CPU, disk and bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import socket
import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from oneway.peer.home.home import Home
from oneway.peer.node import Frame
from oneway.peer.peer import Peer
from oneway.tables.rows import START, Row
from oneway.transport.base import Arrival

SECONDS = 6.0
PLAIN = 'samples_per_push = 1\nprivacy = "none"'
NOISE = {
    "batches without noise": 'privacy = "none"',
    "epsilon 8, independent noise": "privacy = { epsilon = 8, band = 1 }",
    "epsilon 8, the default": "privacy = { epsilon = 8 }",
}
BATCH = 16
SAMPLES = 3000
PARTS = ("learn and push", "commit and say", "take in", "hear the answer")
CLASSES = {20: 2, 21: 2, 10_000: 100, 100_000: 100, 1_000_000: 1000}
FEATURES = {20: 19, 21: 20, 10_000: 99, 100_000: 999, 1_000_000: 999}
"""By the number of parameters."""
processes = multiprocessing.get_context("spawn")


def make_peers(folder: Path, dim: int, method: str = "ops", privacy: str = PLAIN) -> list[Home]:
    """A sender that keeps nearly all its mass, so that it never runs out, and a receiver."""
    task = write_task(folder, dim, f'method = "{method}"\nlearning_rate = 0.01\n{privacy}')
    sender, receiver = (
        Home.create(folder / name, name, task, f"127.0.0.1:{free_port()}")
        for name in ("sender", "receiver")
    )
    keys = sender.keys().public, receiver.keys().public
    limits = replace(sender.config().limits, pushes_per_second=1e6)
    card = receiver.config().card(keys[1])
    sender.change(
        lambda mine: replace(mine, keep=0.9999, limits=limits).with_receiver(card, own_key=keys[0])
    )
    back = sender.config().card(keys[0])
    receiver.change(lambda mine: mine.with_sender(back, own_key=keys[1]))
    return [sender, receiver]


def write_task(folder: Path, dim: int, settings: str = "") -> Path:
    """Write a task.toml with so many parameters; without settings it has the defaults."""
    names = "\n".join(f"x{index} = {{}}" for index in range(FEATURES[dim]))
    classes = [str(k) for k in range(CLASSES[dim])]
    model = "logistic" if len(classes) == 2 else "softmax"
    task = folder / "task.toml"
    task.write_text(
        f'label = "y"\nmodel = "{model}"\nclasses = {classes}\n{settings}\n[features]\n{names}\n'
    )
    return task


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def row_of(dim: int, number: int = 0) -> dict[str, float]:
    """The features of a sample."""
    return {f"x{index}": ((index + number) % 7) / 7 for index in range(FEATURES[dim])}


# One process, without sockets ---------------------------------------------------------------------


def committed(peer: Peer) -> list[Frame]:
    """Make durable what a peer has done; what it then says."""
    batch = peer.node.begin()
    if batch is None:
        return []
    if not peer.node.is_durable(batch):
        peer._store.commit(batch.snapshot)
    return peer.node.committed(batch)


def carried(source: Peer, target: Peer, frames: Iterable[Frame]) -> list[Frame]:
    """Deliver frames; what the target then says."""
    for frame in frames:
        via = "push" if frame.via == "push" else "reply"
        target.node.take(Arrival(source.node.key, frame.content, via))
    return committed(target)


class Pair:
    """A sender and a receiver with stores of their own, and the CPU time of every part."""

    def __init__(self, folder: Path, dim: int, stack: ExitStack, **task: str) -> None:
        folder.mkdir()
        homes = make_peers(folder, dim, **task)
        self.sender, self.receiver = (
            stack.enter_context(closing(Peer(home.folder))) for home in homes
        )
        self.x = row_of(dim)
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def push(self, samples: int = 1) -> None:
        """Learn, commit, encode, and take in the answer."""
        self._timed(PARTS[0], self._learn, samples)
        said = self._timed(PARTS[1], committed, self.sender)
        while said:
            answers = self._timed(PARTS[2], carried, self.sender, self.receiver, said)
            said = self._timed(PARTS[3], carried, self.receiver, self.sender, answers)

    def _learn(self, samples: int) -> None:
        for _ in range(samples):
            self.sender.node.learn(self.x, "1")

    def _timed(self, part: str, work: Callable[..., Any], *arguments: Any) -> Any:
        began = time.process_time()
        result = work(*arguments)
        self.seconds[part].append(time.process_time() - began)
        return result


def measure_parts(sizes: list[int]) -> None:
    """Print the median CPU time of every part of a push, with one vector and with two."""
    print("parameters  method" + "".join(f"  {part:>15}" for part in (*PARTS, "both ends")))
    for dim, method in product(sizes, ("ops", "relay")):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            pair = Pair(folder / "pair", dim, stack, method=method)
            for _ in range(3):
                pair.push()
            pair.seconds.clear()
            for _ in range(24):
                pair.push()
        times = [1e3 * statistics.median(pair.seconds[part]) for part in PARTS]
        shown = "".join(f"  {milliseconds:>12.2f} ms" for milliseconds in (*times, sum(times)))
        print(f"{dim:>10,}  {method:<6}{shown}", flush=True)


def measure_noise(sizes: list[int]) -> None:
    """Print the CPU time of a push of 16 samples, and what noise adds."""
    for dim in sizes:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            pairs = {
                name: Pair(folder / str(place), dim, stack, privacy=text)
                for place, (name, text) in enumerate(NOISE.items())
            }
            for turn in range(25):  # in turns, the first to warm up
                for pair in pairs.values():
                    pair.push(BATCH)
                    if turn == 0:
                        pair.seconds.clear()
        costs = {
            name: sum(statistics.median(pair.seconds[part]) for part in (PARTS[0], PARTS[1]))
            for name, pair in pairs.items()
        }
        plain = next(iter(costs.values()))
        for name, cost in costs.items():
            print(f"{dim:>10,}  {name:<30} {1e3 * cost:8.3f} ms CPU a push  {cost / plain:.2f}x")


def measure_personal(sizes: list[int]) -> None:
    """Print the CPU time of a sample of the default task, and what personal predictions add."""
    for dim in sizes:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            task = write_task(folder, dim)
            peers = {
                name: stack.enter_context(closing(Peer.create(folder / name, task)))
                for name in ("losses", "measures", "experts")
            }
            peers["losses"].node.learner._measuring = None
            peers["measures"].node.learner._measuring.personal = None  # type: ignore[union-attr]
            seconds = defaultdict(list)
            for turn in range(SAMPLES):
                row, label = row_of(dim, turn), str(turn % 2)
                for name, peer in peers.items():
                    began = time.process_time()
                    peer.node.learn(row, label)
                    learned = time.process_time()
                    committed(peer)
                    seconds[name].append((learned - began, time.process_time() - began))
        # The first samples warm up.
        costs = {name: np.median(them[SAMPLES // 10 :], 0) for name, them in seconds.items()}
        for name, (learning, sample) in costs.items():
            ratios = [
                f"{sample / costs[other][1]:.2f}x {other}" for other in ("losses", "measures")
            ]
            print(
                f"{dim:>10,}  {name:<8} {1e6 * learning:6.0f} us CPU to learn, "
                f"{1e6 * sample:6.0f} us with the commit: {', '.join(ratios)}"
            )


# Real processes -----------------------------------------------------------------------------------


def used(peer: Peer) -> np.ndarray:
    """CPU seconds, bytes to disk, bytes sent, samples, pushes and acknowledgements so far."""
    status, usage = peer.status(), resource.getrusage(resource.RUSAGE_SELF)
    disk = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    edges = peer.node.snapshot.state.out.values()
    return np.array(
        [
            usage.ru_utime + usage.ru_stime,
            float(disk["write_bytes"]),
            status.bytes_out,
            status.samples,
            sum(edge.seq for edge in edges),
            sum(edge.acked for edge in edges),
        ]
    )


async def paced(dim: int, rate: float) -> AsyncGenerator[Row, None]:
    """Samples at equal distances; at an infinite rate one after the other."""
    number, began = 0, time.monotonic()
    while True:
        number += 1
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        yield Row(row_of(dim, number) | {"y": str(number % 2)}, number, START)


def live(
    folder: Path, dim: int, rate: float, result: multiprocessing.Queue[tuple[np.ndarray, float]]
) -> None:
    """Run a peer, and report what it used a second once it has come to its pace."""

    async def measure(peer: Peer) -> None:
        running = asyncio.create_task(peer.run(paced(dim, rate) if rate else None))
        await asyncio.sleep(SECONDS / 2)
        before, began = used(peer), time.monotonic()
        await asyncio.sleep(SECONDS)
        cost = (used(peer) - before) / (time.monotonic() - began)
        result.put((cost, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
        await asyncio.sleep(SECONDS)  # the other peer is still measuring
        peer.stop()
        await running

    asyncio.run(measure(Peer(folder)))


def measured(homes: list[tuple[Home, float]], dim: int) -> list[tuple[np.ndarray, float]]:
    """Run peers at their rates together; what each used a second, and its peak memory in MB."""
    queues = [processes.Queue() for _ in homes]
    workers = [
        processes.Process(target=live, args=(home.folder, dim, rate, queue))
        for (home, rate), queue in zip(homes, queues, strict=True)
    ]
    for worker in workers:
        worker.start()
    found = [queue.get(timeout=20 * SECONDS) for queue in queues]
    for worker in workers:
        worker.join()
    return found


def commits_per_second(folder: Path) -> float:
    """Durable commits of one row by bare SQLite."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE number (id INTEGER PRIMARY KEY, value)")
    put = "INSERT INTO number VALUES (0, 1) ON CONFLICT (id) DO UPDATE SET value = value + 1"
    count, began = 0, time.monotonic()
    while time.monotonic() < began + SECONDS / 3:
        connection.execute(put)
        count += 1
    connection.close()
    return 3 * count / SECONDS


def measure_processes(sizes: list[int]) -> None:
    """Print acknowledged pushes a second of a sender that learns as fast as it can."""
    print("parameters  method  pushes/s  bare commits per push  samples per push  CPU per push  MB")
    for dim, method in product(sizes, ("ops", "relay")):
        with tempfile.TemporaryDirectory() as name:
            sender, receiver = make_peers(Path(name), dim, method)
            (cost, memory), _ = measured([(sender, float("inf")), (receiver, 0.0)], dim)
            bare = commits_per_second(Path(name))
        cpu, _, _, samples, _, acked = cost
        print(
            f"{dim:>10,}  {method:<6}  {acked:>8,.1f}  {bare / acked:>20.1f}x  "
            f"{samples / acked:>16.1f}  {1e3 * cpu / acked:>9.2f} ms  {memory:>4.0f}",
            flush=True,
        )


def measure_idle(sizes: list[int]) -> None:
    """Print what a second of rest, a sample, a push and an arrival cost."""
    for dim in sizes:
        rate = 20.0 if dim == 20 else 5.0
        with tempfile.TemporaryDirectory() as folder:
            sender, receiver = make_peers(Path(folder), dim, "relay")
            receivers = sender.config().receivers
            sender.change(lambda mine: replace(mine, receivers=()))
            [(idle, _)] = measured([(sender, 0.0)], dim)
            [(alone, _)] = measured([(sender, rate)], dim)
            sender.change(lambda mine, all_=receivers: replace(mine, receivers=all_))
            (sending, _), (receiving, _) = measured([(sender, rate), (receiver, 0.0)], dim)
        sample = (alone - idle) / alone[3]
        push = (sending - idle - sample * sending[3]) / sending[4]
        arrival = (receiving - idle) / sending[4]
        for name, (cpu, disk, sent, *_) in (
            ("second of rest", idle), ("sample", sample), ("push", push), ("arrival", arrival),
        ):  # fmt: skip
            print(
                f"{dim:>10,}  a {name:<14} {1e3 * cpu:7.2f} ms CPU, {disk / 1e3:8.1f} kB to disk, "
                f"{sent:8,.0f} bytes sent",
                flush=True,
            )


KINDS: dict[str, Callable[[list[int]], None]] = {
    "parts": measure_parts,
    "noise": measure_noise,
    "personal": measure_personal,
    "processes": measure_processes,
    "idle": measure_idle,
}


def main() -> None:
    """Measure what is asked for; everything without arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--sizes", nargs="*", type=int, default=[20, 10_000])
    chosen = parser.parse_args()
    for kind in chosen.kinds:
        KINDS[kind](chosen.sizes)


if __name__ == "__main__":
    main()
