"""What one peer costs: CPU, bytes, messages and disk of a sample, of a push, and of doing nothing.

Real processes on loopback with real stores: a sender with the default method and a push after every
sample, and a receiver. The sender first rests, then learns without anybody to send to, then with
the receiver; what a push adds is the difference. `docs/internet-scale.md` multiplies these numbers.

    python benchmarks/one_peer.py [PARAMETERS ...]
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path

from oneway.peer.home.home import Home
from oneway.peer.peer import Peer
from oneway.tables.rows import START, Row
from pushes import FEATURES, cpu_seconds, make_peers, processes, resident_megabytes

SECONDS = 10.0
RATES = {20: 20.0, 10_000: 10.0, 100_000: 5.0}
"""Samples a second, by the number of parameters: what a busy machine takes easily."""
PRIVACY = 'samples_per_push = 1\nprivacy = "none"'
"""A push for every sample: its cost is not to be lost in that of the samples of a batch. Noise adds
2 % to a push (`benchmarks/private_pushes.py`)."""


@dataclass(frozen=True)
class Cost:
    """What a process used in some seconds.

    Attributes:
        cpu: Seconds of all threads.
        disk: Bytes that were written to the disk.
        sent, received: Bytes over the wire.
        messages: That were sent.
        samples: That were learned from.
        pushes: That were handed over.
    """

    cpu: float
    disk: float
    sent: float
    received: float
    messages: float
    samples: float
    pushes: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(self.all, other.all, strict=True)))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(a - b for a, b in zip(self.all, other.all, strict=True)))

    def __truediv__(self, number: float) -> Cost:
        return Cost(*(each / number for each in self.all))

    def __mul__(self, number: float) -> Cost:
        return Cost(*(each * number for each in self.all))

    @property
    def all(self) -> tuple[float, ...]:
        """Every number, in order."""
        return tuple(vars(self).values())


def used(peer: Peer) -> Cost:
    """What this process has used so far."""
    status = peer.status()
    written = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    pushes = sum(edge.seq for edge in peer.node.snapshot.state.out.values())
    return Cost(
        cpu_seconds(),
        float(written["write_bytes"]),
        status.bytes_out,
        status.bytes_in,
        status.frames_out,
        status.samples,
        pushes,
    )


async def paced(dim: int, rate: float) -> AsyncGenerator[Row, None]:
    """Samples at equal distances for ever, their labels in turns."""
    number, began = 0, time.monotonic()
    while True:
        number += 1
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        values = {f"x{index}": ((index + number) % 7) / 7 for index in range(FEATURES[dim])}
        yield Row(values | {"y": str(number % 2)}, number, START)


def live(
    folder: Path, dim: int, rate: float, result: multiprocessing.Queue[tuple[Cost, float]]
) -> None:
    """Run a peer and measure it after it has come to its pace; without samples at rate 0."""

    async def measure(peer: Peer) -> tuple[Cost, float]:
        running = asyncio.create_task(peer.run(paced(dim, rate) if rate else None))
        await asyncio.sleep(SECONDS / 2)
        before, began = used(peer), time.monotonic()
        await asyncio.sleep(SECONDS)
        cost, seconds = used(peer) - before, time.monotonic() - began
        result.put((cost / seconds, resident_megabytes()))
        await asyncio.sleep(SECONDS)  # whoever it sends to is still measuring
        peer.stop()
        await running
        return cost / seconds, resident_megabytes()

    asyncio.run(measure(Peer(folder)))


def measured(homes: list[tuple[Home, float]], dim: int) -> list[tuple[Cost, float]]:
    """Run peers at their rates together; what each used a second, and its memory."""
    queues: list[multiprocessing.Queue[tuple[Cost, float]]] = [processes.Queue() for _ in homes]
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


def shown(name: str, cost: Cost) -> str:
    """A row of the table."""
    return (
        f"  {name:<34} {1e3 * cost.cpu:>9.2f} ms CPU {cost.disk / 1e3:>10,.1f} kB to disk "
        f"{cost.sent / 1e3:>9.2f} kB sent {cost.received / 1e3:>9.2f} kB received "
        f"{cost.messages:>6.2f} messages"
    )


def main(sizes: list[int]) -> None:
    """Measure every size: idle, alone, and with a receiver."""
    for dim in sizes or RATES:
        rate = RATES[dim]
        with tempfile.TemporaryDirectory() as folder:
            sender, receiver = make_peers(Path(folder), dim, privacy=PRIVACY, method="relay")
            trusting = sender.config()
            sender.change(lambda mine: replace(mine, receivers=()))
            [(idle, _)] = measured([(sender, 0.0)], dim)
            [(alone, _)] = measured([(sender, rate)], dim)
            keep = trusting
            sender.change(lambda mine, keep=keep: replace(mine, receivers=keep.receivers))
            (with_receiver, memory), (at_receiver, _) = measured(
                [(sender, rate), (receiver, 0.0)], dim
            )
        per_sample = (alone - idle) / alone.samples
        per_push = (with_receiver - idle - per_sample * with_receiver.samples) / max(
            with_receiver.pushes, 1e-9
        )
        per_arrival = (at_receiver - idle) / max(with_receiver.pushes, 1e-9)
        print(f"{dim:,} parameters, {memory:.0f} MB resident")
        print(shown("a second of doing nothing", idle))
        print(shown("a sample", per_sample))
        print(shown("a push, acknowledged", per_push))
        print(shown("a push taken in, acknowledged", per_arrival), flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]])
