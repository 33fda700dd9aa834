"""Durable pushes per second of one peer, against raw CURVE messages of the same size in one run.

Two processes on loopback: a sender that learns from a sample, commits and pushes, again and again,
and a receiver that commits and acknowledges. Prints pushes per second, their ratio to what bare
pyzmq with CURVE moves between two processes, CPU time per push and resident memory of the sender.

    python benchmarks/pushes.py [PARAMETERS ...]
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from itertools import product
from pathlib import Path

import zmq

from oneway.peer.home.config import PeerConfig
from oneway.peer.home.home import Home
from oneway.peer.peer import Peer
from oneway.tables.rows import START, Row

SECONDS = 6.0
RAW_SECONDS = 2.0
SIZES = {
    20: 'model = "logistic"\nclasses = ["0", "1"]',
    10_000: f'model = "softmax"\nclasses = {[str(k) for k in range(100)]}',
    100_000: f'model = "softmax"\nclasses = {[str(k) for k in range(100)]}',
    1_000_000: f'model = "softmax"\nclasses = {[str(k) for k in range(1000)]}',
}
FEATURES = {20: 19, 10_000: 99, 100_000: 999, 1_000_000: 999}

processes = multiprocessing.get_context("spawn")


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_peers(
    folder: Path,
    dim: int,
    privacy: str = 'samples_per_push = 1\nprivacy = "none"',
    method: str = "ops",
) -> tuple[Home, Home]:
    """A sender that keeps nearly all its mass, so that it never runs out, and a receiver."""
    names = "\n".join(f"x{index} = {{}}" for index in range(FEATURES[dim]))
    task = folder / "task.toml"
    task.write_text(
        f'label = "y"\n{SIZES[dim]}\nmethod = "{method}"\nlearning_rate = 0.01\n{privacy}\n'
        f"[features]\n{names}\n"
    )
    sender, receiver = (
        Home.create(folder / name, name, task, f"127.0.0.1:{free_port()}")
        for name in ("sender", "receiver")
    )
    sender_key, receiver_key = sender.keys().public, receiver.keys().public
    config: PeerConfig = sender.config()
    limits = replace(config.limits, pushes_per_second=1e6)
    card = receiver.config().card(receiver_key)
    sender.change(
        lambda mine: replace(mine, keep=0.9999, limits=limits).with_receiver(
            card, own_key=sender_key
        )
    )
    card = sender.config().card(sender_key)
    receiver.change(lambda mine: mine.with_sender(card, own_key=receiver_key))
    return sender, receiver


async def endless(dim: int, until: float) -> AsyncGenerator[Row, None]:
    """The same sample again and again, for some time."""
    values = {f"x{index}": 0.01 * index for index in range(FEATURES[dim])} | {"y": "1"}
    while time.monotonic() < until:
        yield Row(values, 1, START)


def receive(folder: Path, seconds: float) -> None:
    """Run the receiver for some time."""

    async def live(peer: Peer) -> None:
        asyncio.get_running_loop().call_later(seconds, peer.stop)
        await peer.run()

    asyncio.run(live(Peer(folder)))


def send(folder: Path, dim: int, result: multiprocessing.Queue[dict[str, float]]) -> None:
    """Run the sender, and measure it once its first push has arrived."""

    async def measure(peer: Peer) -> dict[str, float]:
        running = asyncio.create_task(peer.run(endless(dim, time.monotonic() + 2 * SECONDS)))
        while acked(peer) < 2:
            await asyncio.sleep(0.05)
        before, said, cpu, began = acked(peer), peer.status(), cpu_seconds(), time.monotonic()
        await asyncio.sleep(SECONDS)
        pushes, seconds = acked(peer) - before, time.monotonic() - began
        spent, now = cpu_seconds() - cpu, peer.status()
        peer.stop()
        await running
        return {
            "per_second": pushes / seconds,
            "cpu": spent / max(pushes, 1),
            "memory": resident_megabytes(),
            "samples": (now.samples - said.samples) / max(pushes, 1),
            "bytes": (now.bytes_out - said.bytes_out) / max(now.frames_out - said.frames_out, 1),
        }

    result.put(asyncio.run(measure(Peer(folder))))


def acked(peer: Peer) -> int:
    """How many pushes of a peer were acknowledged."""
    return sum(edge.acked for edge in peer.node.snapshot.state.out.values())


def cpu_seconds() -> float:
    """What this process has used so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_megabytes() -> float:
    """What this process holds in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def raw_receive(
    address: str, keys: tuple[bytes, bytes], result: multiprocessing.Queue[int]
) -> None:
    """Count what arrives at a bare ROUTER."""
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.curve_publickey, router.curve_secretkey = keys
    router.curve_server = True
    router.bind(address)
    router.recv_multipart()
    count, until = 0, time.monotonic() + RAW_SECONDS
    while time.monotonic() < until:
        if router.poll(100):
            router.recv_multipart()
            count += 1
    context.destroy(linger=0)
    result.put(count)


def raw_messages_per_second(size: int) -> float:
    """What bare pyzmq moves: one DEALER, one ROUTER, CURVE, nothing else."""
    keys = zmq.curve_keypair()
    address = f"tcp://127.0.0.1:{free_port()}"
    result: multiprocessing.Queue[int] = processes.Queue()
    receiver = processes.Process(target=raw_receive, args=(address, keys, result))
    receiver.start()
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.curve_publickey, dealer.curve_secretkey = zmq.curve_keypair()
    dealer.curve_serverkey = keys[0]
    dealer.sndtimeo = 500
    dealer.connect(address)
    content = bytes(size)
    while receiver.is_alive():
        try:
            dealer.send(content)
        except zmq.Again:
            continue
    count = result.get(timeout=10)
    receiver.join()
    context.destroy(linger=0)
    return count / RAW_SECONDS


def main(sizes: list[int]) -> None:
    """Measure all sizes, with one vector and with two in a push."""
    print(
        "parameters  method  pushes/s   bytes each   raw CURVE/s   raw per push   "
        "samples per push   CPU per push   resident"
    )
    for dim, method in product(sizes or SIZES, ("ops", "relay")):
        with tempfile.TemporaryDirectory() as folder:
            sender, receiver = make_peers(Path(folder), dim, method=method)
            result: multiprocessing.Queue[dict[str, float]] = processes.Queue()
            there = processes.Process(target=receive, args=(receiver.folder, 3 * SECONDS + 5))
            here = processes.Process(target=send, args=(sender.folder, dim, result))
            there.start()
            here.start()
            measured = result.get(timeout=10 * SECONDS)
            here.join()
            there.terminate()
            there.join()
        raw = raw_messages_per_second(round(measured["bytes"]))
        print(
            f"{dim:>10,}  {method:<6}  {measured['per_second']:>8,.1f}   "
            f"{measured['bytes']:>10,.0f}   {raw:>11,.0f}   "
            f"{raw / measured['per_second']:>11.1f}x   {measured['samples']:>16.1f}   "
            f"{1e3 * measured['cpu']:>9.2f} ms   {measured['memory']:>5.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]])
