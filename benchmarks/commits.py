"""Durable pushes per second: a peer's commits against bare SQLite commits of one row.

A push takes a step, hands a share to five receivers and is committed; each receiver acknowledges
what is most of a window back, so that the history is always long. The ratio is what counts: how
fast a disk makes a commit durable differs from machine to machine, and from minute to minute.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from oneway.peer.store.file import log_of
from oneway.peer.store.history import with_sample
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.store.store import Owner, PeerStore
from oneway.protocol.incoming import mint
from oneway.protocol.messages import NO_PROGRESS, Ack, Life, State
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.tags import NO_TAG, digest_of
from oneway.protocol.transitions import descend, push, trust
from oneway.testing.records import replace

NUM_RECEIVERS = 5
CASES = ((20, 16), (10_000, 16), (10_000, 1), (1_000_000, 1))
"""Parameters, and the window."""

SECONDS = 3.0
KEY, TASK = bytes(32), bytes(16)
LIFE = Life(5, 0, False, NO_TAG)
"""Of every receiver."""


def started(dim: int, rules: Rules) -> PeerState:
    """A peer with a mass and five open edges."""
    state = mint(PeerState.new(dim, ledger=1, boot=1), np.zeros(dim))
    for number in range(NUM_RECEIVERS):
        receiver = bytes([number + 1]) * 32
        state = trust(state, receiver, epoch=number + 1)
        nothing = np.zeros(dim + 1, dtype=np.int64)
        opening = State(number + 1, LIFE, 9, state.boot, 5, 0, nothing, NO_TAG, NO_PROGRESS, ())
        state = receive_reply(state, receiver, opening, rules).state
        known = Ack(number + 1, LIFE, 1, digest_of(nothing), NO_TAG)
        state = receive_reply(state, receiver, known, rules).state
    return state


def pushed(snapshot: Snapshot, step: np.ndarray, rules: Rules) -> Snapshot:
    """Hear the acknowledgements that make room, learn, and hand over."""
    state = snapshot.state
    for edge in list(state.out.values()):
        if edge.in_flight > 0.75 * rules.window:
            seq = edge.acked + 1
            ack = Ack(edge.epoch, LIFE, seq, digest_of(edge.totals[seq]), NO_TAG)
            state = receive_reply(state, edge.receiver, ack, rules).state
    # More than is under way already, or there would be no room for it.
    shares = {edge.receiver: 1e-5 * (edge.in_flight + 1) for edge in state.out.values()}
    state = push(descend(state, step), shares, rules)
    samples = snapshot.journal.samples + 1
    journal = replace(snapshot.journal, samples=samples)
    history = with_sample(snapshot.history, 1 / samples, True, 1.7e9 + samples)
    return Snapshot(state, journal, snapshot.contacts, history)


def rate(act: Callable[[], object], seconds: float = SECONDS) -> float:
    """How often per second something can be done, after a while of doing it."""
    for _ in range(20):
        act()
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        act()
        count += 1
    return count / (time.perf_counter() - began)


def bare_rate(folder: Path) -> float:
    """One row, one commit, with the same promise."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE number (id INTEGER PRIMARY KEY, value)")
    put = "INSERT INTO number VALUES (0, 1) ON CONFLICT (id) DO UPDATE SET value = value + 1"
    result = rate(lambda: connection.execute(put))
    connection.close()
    return result


def push_rates(folder: Path, dim: int, window: int) -> tuple[float, float, int]:
    """Pushes per second without and with a store, and the bytes that its log grew to."""
    rules = Rules(secret=bytes(32), window=window)
    rng = np.random.default_rng(1)
    step = 1e-6 * rng.standard_normal(dim)
    snapshot = Snapshot(started(dim, rules), Journal())
    path = folder / f"peer-{dim}-{window}.sqlite"
    store = PeerStore.create(path, Owner(KEY, TASK, dim), snapshot)

    def forget() -> None:
        nonlocal snapshot
        snapshot = pushed(snapshot, step, rules)

    def remember() -> None:
        forget()
        store.commit(snapshot)

    volatile = rate(forget, SECONDS / 3)
    durable = rate(remember)
    log_bytes = log_of(path).stat().st_size
    store.close()
    path.unlink()
    return volatile, durable, log_bytes


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for dim, window in CASES:
            bare = bare_rate(folder)
            volatile, durable, log_bytes = push_rates(folder, dim, window)
            (folder / "bare.sqlite").unlink()
            print(
                f"{dim:>9,} parameters, window {window:>2}: {durable:8,.1f} durable pushes/s, "
                f"{durable / bare:.4f} of {bare:,.0f} bare commits/s; "
                f"in memory {volatile:,.1f}/s; log {log_bytes / 2**20:.1f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
