"""Real peers in processes of their own, for tests: a town of them, and what their stores say."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hostile import HostilePeer, Inbox
from plain import PLAIN

import oneway as ow
from oneway.lab.peer_folders import make_peer, write_task
from oneway.lab.peer_process import PeerProcess, peer_command
from oneway.lab.ports import Ports
from oneway.peer.home.home import Home
from oneway.protocol.audit import books_of, discrepancy
from oneway.protocol.fixed_point import Fixed
from oneway.protocol.state import PeerState
from oneway.task.task import Task

PATIENCE = 240.0
"""Of every wait: only reached when something is broken, however busy the machine is."""

POLL_SECONDS = 0.05
RATE = 40.0
"""Samples per second."""


def until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it never came to this: {what}"
        time.sleep(POLL_SECONDS)


class Town(ExitStack):
    """Peers in processes of their own, which end with the test; without privacy unless told.

    With `defaults`, they learn by a task as a user gets it.
    """

    def __init__(self, folder: Path, *, defaults: bool = False, **learning: Any) -> None:
        super().__init__()
        self.folder = folder
        made = ow.streams.synthetic(num_samples=40_000, num_features=4, seed=3)
        self.table, self.truth = made.table, made.params
        chosen = {} if defaults else {"learning_rate": 0.2, **PLAIN} | learning
        self.task: Task = Task.of(self.table, **chosen)
        self._ports = self.enter_context(Ports())
        write_task(folder, self.task)

    def peer(self, name: str, first_row: int = 0) -> PeerProcess:
        rows = np.arange(first_row, first_row + 10_000)
        made = make_peer(self.folder / name, self.address(), self.table, rows)
        return self.process_of(made.home)

    def address(self) -> str:
        return self._ports.reserve()

    def process_of(self, home: Home) -> PeerProcess:
        process = PeerProcess(home, RATE, peer_command(), niceness=0)
        self.callback(process.kill)
        return process

    def hostile(self, task: Task | None = None) -> HostilePeer:
        return self.enter_context(HostilePeer(task or self.task))


def admit(receiver: PeerProcess, sender: PeerProcess | HostilePeer) -> None:
    known = sender.card if isinstance(sender, PeerProcess) else sender.key
    receiver.change(lambda config: config.with_sender(known, own_key=receiver.key))


def trust(sender: PeerProcess, receiver: PeerProcess | Inbox) -> None:
    sender.change(lambda config: config.with_receiver(receiver.card, own_key=sender.key))


def befriend(one: PeerProcess, other: PeerProcess) -> None:
    for sender, receiver in ((one, other), (other, one)):
        admit(receiver, sender)
        trust(sender, receiver)


def mass(peer: PeerProcess) -> float:
    """What it holds by its store, whose books must balance at every moment."""
    snapshot = peer.snapshot()
    if snapshot is None:
        return 0.0
    assert books_of(snapshot.state).balances, f"the books of {peer.name} do not balance"
    return snapshot.state.mass


def learned(peer: PeerProcess) -> tuple[int, float]:
    """Samples so far, and the sum of their losses."""
    snapshot = peer.snapshot()
    return (snapshot.journal.samples, snapshot.journal.loss_sum) if snapshot else (0, 0.0)


def until_learned(peer: PeerProcess, more: int) -> float:
    """Wait for so many more samples; their mean loss."""
    samples, losses = learned(peer)
    until(lambda: learned(peer)[0] >= samples + more, f"{peer.name} learns from {more} more")
    samples_now, losses_now = learned(peer)
    return (losses_now - losses) / (samples_now - samples)


def is_well(peer: PeerProcess) -> bool:
    assert peer.is_running, peer.failure
    assert "Traceback" not in peer.log_path.read_text()
    return True


def types(peer: PeerProcess, *words: str, code: int | None = 0) -> str:
    """Run `oneway peer ...` about a peer to its end; what it printed, in one line."""
    done = subprocess.run(
        [sys.executable, "-m", "oneway", "peer", *words, "--home", str(peer.home.folder)],
        env=os.environ | {"COLUMNS": "200", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def states(*peers: PeerProcess) -> list[PeerState]:
    """What is in their stores."""
    found = [peer.snapshot() for peer in peers]
    return [snapshot.state for snapshot in found if snapshot is not None]


def until_quiet(*peers: PeerProcess) -> Fixed:
    """Let peers pause, and everything arrive; then what was lost or invented, numbers and mass."""
    for peer in peers:
        peer.change(lambda config: replace(config, paused=True))

    def stands() -> list[tuple[object, ...]]:
        return [
            (key, edge.phase, edge.seq, edge.acked)
            for state in states(*peers)
            for key, edge in state.out.items()
        ]

    def is_quiet() -> bool:
        statuses = [peer.status() for peer in peers]
        is_paused = all(status is not None and status.paused for status in statuses)
        edges = [edge for state in states(*peers) for edge in state.out.values()]
        before = stands()
        time.sleep(1.0)  # a push that was under way when the last one paused has come by then
        return is_paused and all(edge.is_at_rest for edge in edges) and stands() == before

    until(is_quiet, "nothing is under way any more")
    return discrepancy(states(*peers))
