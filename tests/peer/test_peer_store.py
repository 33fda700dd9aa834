from __future__ import annotations

import math
import os
import random
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from builders import replace
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from stored_states import DIM, LittleNetwork, facts, receiver, steps

from oneway.errors import StoreError
from oneway.peer.store import file, schema
from oneway.peer.store.history import History, with_sample
from oneway.peer.store.snapshot import Contact, Journal, Snapshot
from oneway.peer.store.store import Owner, PeerStore, read_curve, read_snapshot
from oneway.protocol.audit import expected_holding
from oneway.protocol.incoming import mint
from oneway.protocol.messages import NO_PROGRESS, Ack, Life, State
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, PeerState
from oneway.protocol.tags import NO_TAG, digest_of
from oneway.protocol.transitions import (
    descend,
    push,
    trust,
)
from oneway.tables.rows import Position

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
TASK, OTHER_TASK = b"t" * 16, b"u" * 16
RULES = Rules(secret=b"s" * 32)


def life(boot: int) -> Life:
    """A life of a receiver; its proof is for itself alone."""
    return Life(boot, 0, False, NO_TAG)


def peer_with_edges(dim: int = DIM, num_receivers: int = 2) -> Snapshot:
    """A peer with one unit of mass and open edges, on which nothing was sent yet."""
    state = mint(PeerState.new(dim, ledger=2**61, boot=1), np.linspace(-1.0, 1.0, dim))
    for number in range(num_receivers):
        state = with_open_edge(state, number)
    return Snapshot(state, contacts={receiver(0): Contact("bob", "localhost:7701")})


def with_open_edge(state: PeerState, number: int) -> PeerState:
    epoch = 2**62 - 1 - number
    state = trust(state, receiver(number), epoch)
    nothing = np.zeros(state.dim + 1, dtype=np.int64)
    opening = State(epoch, life(5), 9, state.boot, 5, 0, nothing, NO_TAG, NO_PROGRESS)
    return receive_reply(state, receiver(number), opening, RULES).state


def after_a_push(snapshot: Snapshot) -> Snapshot:
    state = descend(snapshot.state, np.full(snapshot.state.dim, 0.001))
    # More than is under way already, or there would be no room for it.
    shares = {edge.receiver: 0.01 * (edge.in_flight + 1) for edge in state.out.values()}
    state = push(state, shares, RULES)
    return replace(after_a_sample(snapshot), state=state)


def after_acknowledgements(snapshot: Snapshot) -> Snapshot:
    state = snapshot.state
    for edge in list(state.out.values()):
        ack = Ack(edge.epoch, life(edge.their_boot), edge.seq, digest_of(edge.sent), NO_TAG)
        state = receive_reply(state, edge.receiver, ack, RULES).state
    return replace(snapshot, state=state)


def with_an_edge_in(snapshot: Snapshot) -> Snapshot:
    edge = InEdge(receiver(8), 1, heard=np.arange(1, DIM + 2), seq=4)
    state = snapshot.state
    state = replace(
        state, holding=state.holding + edge.heard, in_={(edge.sender, edge.epoch): edge}
    )
    return replace(snapshot, state=state)


def after_a_sample(snapshot: Snapshot, loss: float = 0.25) -> Snapshot:
    journal = snapshot.journal
    journal = replace(journal, samples=journal.samples + 1, loss_sum=journal.loss_sum + loss)
    history = with_sample(snapshot.history, loss, False, 1.7e9 + journal.samples)
    return replace(snapshot, journal=journal, history=history)


def create(path: Path, snapshot: Snapshot, dim: int = DIM) -> PeerStore:
    return PeerStore.create(path, Owner(KEY, TASK, dim), snapshot)


def reopen(path: Path, dim: int = DIM) -> PeerStore:
    return PeerStore.open(path, Owner(KEY, TASK, dim))


def stored(path: Path, dim: int = DIM) -> Snapshot:
    with closing(reopen(path, dim)) as store:
        return store.load()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def log_bytes(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


def in_a_process(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a peer's folder #1?" / "peer.sqlite"


@pytest.fixture(autouse=True)
def _folder(path: Path) -> None:
    path.parent.mkdir()


# What is committed comes back.


def test_everything_in_a_snapshot_comes_back(path):
    journal = Journal(7, math.inf, 5, 2, Position(2**40, 3, 7, 8, 2**32 - 1))
    snapshot = replace(after_a_push(peer_with_edges()), journal=journal, history=History())
    snapshot = replace(snapshot, contacts={receiver(1): Contact("Zoë", "[::1]:7702")})
    with closing(create(path, peer_with_edges())) as store:
        store.commit(snapshot)
    assert facts(stored(path)) == facts(snapshot)


@given(st.lists(steps, min_size=20, max_size=80))
def test_whatever_happened_between_commits_the_store_holds_the_last_one(history):
    network = LittleNetwork()
    for one in range(3):
        network.step("mint", one, 0, 0.0)
        network.step("trust", one, (one + 1) % 3, 0.0)
        network.step("talk", one, 0, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "peer.sqlite"
        first = last = Snapshot(network.states[0])
        with closing(create(path, first)) as store:
            for number, (event, one, other, amount) in enumerate(history):
                network.step(event, one, other, amount)
                if event == "commit":
                    last = Snapshot(network.states[0], Journal(number))
                    store.commit(last)
                    assert facts(read_snapshot(path)) == facts(last)
        assert facts(stored(path)) == facts(last)


# What does not change is not written.


def statements(before: Snapshot, after: Snapshot) -> list[tuple[str, int]]:
    """What is done to which table, to how many rows."""
    words = [
        (statement.split(), len(parameters))
        for statement, parameters in schema.changes(before, after)
    ]
    return [(f"{statement[0]} {statement[2]}", count) for statement, count in words]


def test_a_push_writes_what_moved_and_one_total_for_each_edge():
    first = after_a_push(peer_with_edges(num_receivers=4))
    assert statements(first, after_a_push(first)) == [
        ("INSERT peer", 1),
        ("INSERT amount", 2),  # holding and gradient_steps; not minted, clipped, owed
        ("INSERT out_edge", 4),
        ("INSERT total", 4),
        ("INSERT curve", 1),
    ]


def test_the_log_beside_the_file_does_not_grow_without_bound(path):
    dim = 2_000
    snapshot = peer_with_edges(dim)
    with closing(create(path, snapshot, dim)) as store:
        sizes = []
        for _ in range(300):
            snapshot = after_acknowledgements(after_a_push(snapshot))
            store.commit(snapshot)
            sizes.append(log_bytes(path))
            read_snapshot(path)
    assert max(sizes) < 6 * 2**20 < 300 * 4 * 8 * dim


# Failing disks.


def limit_pages(store: PeerStore, count: int | None) -> None:
    """Let SQLite find the disk full, as it does when the file system has no room."""
    connection = store._connection
    [(used,)] = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {2**30 if count is None else used + count}")


def test_a_full_disk_changes_nothing_and_the_next_commit_brings_everything(path):
    dim = 2_000
    first = peer_with_edges(dim)
    with closing(create(path, first, dim)) as store:
        limit_pages(store, 5)
        second = after_a_push(first)
        with pytest.raises(StoreError, match=r"peer\.sqlite is full; free some room"):
            store.commit(second)
        assert store.load() is first
        assert facts(read_snapshot(path)) == facts(first)
        limit_pages(store, None)
        third = after_a_push(second)
        store.commit(third)
    assert facts(stored(path, dim)) == facts(third)


def test_rows_that_only_a_failed_commit_had_do_not_come_back(path):
    dim = 2_000
    first = peer_with_edges(dim)
    with closing(create(path, first, dim)) as store:
        opened = replace(first, state=with_open_edge(first.state, 5))
        limit_pages(store, 5)
        for failing in (after_a_push(opened), after_a_push(after_a_push(opened))):
            with pytest.raises(StoreError, match="full"):
                store.commit(failing)
        # What fits, fits: the disk is still full, and this adds no row.
        smaller = replace(first, journal=Journal(samples=9), history=History())
        store.commit(smaller)
        assert facts(read_snapshot(path)) == facts(smaller)
        limit_pages(store, None)
        last = after_acknowledgements(after_a_push(first))
        store.commit(last)
    assert facts(stored(path, dim)) == facts(last)


HELPERS = """
import dataclasses, resource, sys
from msgspec.structs import replace
from pathlib import Path
import numpy as np
from oneway.errors import StoreError
from oneway.peer.store.history import with_sample
from oneway.peer.store.store import Owner, PeerStore, read_snapshot
from oneway.protocol.messages import Ack, Life
from oneway.protocol.rules import Rules
from oneway.protocol.tags import NO_TAG, digest_of
from oneway.protocol.replies import receive_reply
from oneway.protocol.transitions import descend, push
rules = Rules(b"s" * 32)
path, dim = Path(sys.argv[1]), int(sys.argv[2])
store = PeerStore.open(path, Owner(b"k" * 32, b"t" * 16, dim))
snapshot = store.load()

def go_on():
    global snapshot
    state = descend(snapshot.state, np.full(dim, 1e-4))
    shares = {edge.receiver: 0.01 * (edge.in_flight + 1) for edge in state.out.values()}
    state = push(state, shares, rules)
    for edge in list(state.out.values()):
        if edge.in_flight == 3:
            seq = edge.acked + 2
            life = Life(edge.their_boot, 0, False, NO_TAG)
            ack = Ack(edge.epoch, life, seq, digest_of(edge.totals[seq]), NO_TAG)
            state = receive_reply(state, edge.receiver, ack, rules).state
    samples = snapshot.journal.samples + 1
    loss_sum = snapshot.journal.loss_sum + 1 / samples
    journal = dataclasses.replace(snapshot.journal, samples=samples, loss_sum=loss_sum)
    history = with_sample(snapshot.history, 1 / samples, False, 1.7e9 + samples)
    snapshot = replace(snapshot, state=state, journal=journal, history=history)
"""


COMMITS_FOR_EVER = """
while True:
    go_on()
    store.commit(snapshot)
    print(snapshot.journal.samples, flush=True)
"""


def test_a_store_killed_at_any_instant_holds_all_that_was_committed(path):
    dim = 200
    create(path, peer_with_edges(dim), dim).close()
    rng = random.Random(7)
    for _ in range(4):
        command = [sys.executable, "-c", HELPERS + COMMITS_FOR_EVER, str(path), str(dim)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(rng.randint(1, 60)):
                said = process.stdout.readline()
            os.kill(process.pid, signal.SIGKILL)
            # A number that was cut off in the middle was not said.
            said = [line for line in [said, *process.stdout] if line.endswith("\n")][-1]
        found = read_snapshot(path)
        assert int(said) <= found.journal.samples <= int(said) + 1
        assert facts(stored(path, dim)) == facts(found)
        assert np.array_equal(found.state.holding, expected_holding(found.state))
        curve = read_curve(path)
        assert curve.samples == found.journal.samples
        assert math.isclose(sum(curve.loss_sums), found.journal.loss_sum)


# Others look, and backups.


READ_IT = """
import sys
from pathlib import Path
from oneway.peer.store.store import read_snapshot
print(read_snapshot(Path(sys.argv[1])).journal.samples)
"""


def test_another_process_can_read_a_store_in_use(path):
    snapshot = peer_with_edges()
    with closing(create(path, snapshot)) as store:
        for expected in ("1", "2"):
            snapshot = after_a_push(snapshot)
            store.commit(snapshot)
            assert in_a_process(READ_IT, path).strip() == expected


OPEN_AND_CLOSE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT * FROM peer").fetchall()
connection.close()
"""


def test_to_read_a_store_in_the_process_that_has_it_open_does_not_release_its_locks(path):
    with closing(create(path, peer_with_edges())) as store:
        store.commit(after_a_push(store.load()))
        read_snapshot(path)
        # The last program to close a store removes the log: this one must find that it is not.
        in_a_process(OPEN_AND_CLOSE, path)
        assert log_bytes(path) > 0


# What is refused, and left as it is.


def test_a_store_is_never_overwritten(path):
    create(path, peer_with_edges()).close()
    before = contents(path.parent)
    with pytest.raises(StoreError, match="exists already, and a store is never overwritten"):
        create(path, peer_with_edges())
    assert contents(path.parent) == before


def test_the_log_of_a_store_that_was_moved_away_is_not_played_into_a_new_one(path):
    log = path.with_name("peer.sqlite-wal")
    log.write_bytes(b"half of a store")
    with pytest.raises(StoreError, match=r"peer\.sqlite-wal without its peer\.sqlite"):
        create(path, peer_with_edges())
    assert contents(path.parent) == {log.name: b"half of a store"}


def test_a_store_that_cannot_be_made_leaves_nothing_behind(path):
    with pytest.raises(StoreError, match=r"cannot read or write .*No such file or directory"):
        create(path.parent / "missing" / "peer.sqlite", peer_with_edges())
    broken = replace(peer_with_edges(), contacts={receiver(0): Contact("\ud800", "")})
    with pytest.raises(UnicodeEncodeError):
        create(path, broken)
    assert contents(path.parent) == {}


def test_only_its_owner_may_read_a_store(path):
    with closing(create(path, peer_with_edges())) as store:
        store.commit(after_a_push(store.load()))
        modes = [stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()]
    assert set(modes) == {0o600}


def refused(path: Path, match: str, key: bytes = KEY, task: bytes = TASK, dim: int = DIM) -> None:
    before = contents(path.parent)
    with pytest.raises(StoreError, match=match) as caught:
        PeerStore.open(path, Owner(key, task, dim))
    assert "left untouched" in str(caught.value)
    assert contents(path.parent) == before


@pytest.mark.parametrize(
    ("other", "culprit"),
    [
        (Owner(OTHER_KEY, TASK, DIM), "key file"),
        (Owner(KEY, OTHER_TASK, DIM), "task.toml"),
        (Owner(KEY, TASK, 4), "3 parameters"),
    ],
)
def test_a_store_of_another_peer_task_or_dimension_is_refused(path, other, culprit):
    create(path, peer_with_edges()).close()
    refused(path, re.escape(culprit), *other)


@pytest.mark.parametrize("content", [b"", b"x", b"not a database at all " * 100])
def test_a_file_that_is_no_database_is_refused(path, content):
    path.write_bytes(content)
    refused(path, "move it away.*restore a backup or start anew.*lost to the network")
    with pytest.raises(StoreError, match="left untouched"):
        read_snapshot(path)


def test_a_store_of_another_version_is_refused(path):
    create(path, peer_with_edges()).close()
    change(path, "PRAGMA user_version = 99")
    refused(path, "has version 99 and this oneway reads version .*release")


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE amount SET units = zeroblob(32) WHERE name = 'holding'",
        "UPDATE amount SET units = zeroblob(24)",
        "UPDATE amount SET units = NULL",
        "UPDATE amount SET name = 'mass' WHERE name = 'clipped'",
        "DELETE FROM amount WHERE name = 'clipped'",
        "DELETE FROM peer",
        "DELETE FROM owner",
        "UPDATE peer SET journal = x'c1'",
        "UPDATE out_edge SET phase = 'sleeping'",
        "UPDATE out_edge SET acked = 77",
        "DELETE FROM out_edge",
        "DELETE FROM total WHERE seq = 2",
        "DROP TABLE settled",
        "UPDATE contact SET name = CAST(x'ff' AS TEXT)",
        "UPDATE in_edge SET heard = zeroblob(32)",
        "UPDATE memory SET numbers = zeroblob(8) WHERE name = 'squares'",
    ],
)
def test_a_store_whose_rows_make_no_sense_is_refused(path, damage):
    snapshot = with_an_edge_in(after_a_push(peer_with_edges()))
    create(path, replace(snapshot, memory=MEMORY)).close()
    change(path, damage)
    refused(path, "is damaged .*restore a backup")


def test_a_page_of_noise_is_found_wherever_it_is(path):
    snapshot = with_an_edge_in(after_a_push(peer_with_edges()))
    create(path, snapshot).close()
    good = path.read_bytes()
    noise = random.Random(7).randbytes(4096)
    for start in range(0, len(good), 4096):
        path.write_bytes(good[:start] + noise + good[start + 4096 :])
        refused(path, "restore a backup")


def test_a_store_left_by_a_killed_process_is_refused_without_touching_it_or_its_log(path):
    left = path.with_name("left.sqlite")
    with closing(create(path, peer_with_edges())) as store:
        store.commit(after_a_push(store.load()))
        shutil.copy(path, left)
        shutil.copy(f"{path}-wal", f"{left}-wal")
    before = contents(path.parent)
    with pytest.raises(StoreError, match="belongs to another task"):
        PeerStore.open(left, Owner(KEY, OTHER_TASK, DIM))
    after = contents(path.parent)
    assert {name: after[name] for name in before} == before
    assert stored(left).journal.samples == 1


def test_a_store_that_another_program_has_locked_says_so(path):
    with closing(create(path, peer_with_edges())) as store:
        store._connection.execute("PRAGMA busy_timeout = 0")
        second = after_a_push(store.load())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match=r"is locked; .*no other program has it locked"):
                store.commit(second)
        store.commit(second)
    assert facts(stored(path)) == facts(second)


# What a method keeps to itself.

MEMORY = {
    "squares": np.array([[1.0, -0.0, np.inf], [np.nan, 5e-324, -2.5]]),
    "count": np.array(7.0),
    "none yet": np.empty((0, 3)),
}


def remembered(path: Path) -> dict[str, tuple[tuple[int, ...], bytes]]:
    memory = read_snapshot(path).memory
    return {name: (array.shape, array.tobytes()) for name, array in memory.items()}


def as_stored(memory: Mapping[str, NDArray[np.float64]]) -> dict[str, object]:
    return {name: (array.shape, array.tobytes()) for name, array in memory.items()}


def test_the_private_state_of_a_method_comes_back_bit_by_bit_with_its_shape(path):
    first = replace(peer_with_edges(), memory=MEMORY)
    with closing(create(path, first)) as store:
        assert remembered(path) == as_stored(MEMORY)
        changed = {"squares": MEMORY["squares"][:, ::-1], "new": np.ones(4)}
        store.commit(replace(first, memory=changed))
    assert remembered(path) == as_stored(changed)


@pytest.mark.parametrize(("free", "says"), [(0, "is full"), (2**20, "disk I/O error")])
def test_an_index_that_cannot_grow_on_a_full_disk_is_called_that(free, says, tmp_path, monkeypatch):
    """SQLite calls it an input or output error, with which it would be a broken disk."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert says in str(file.failure(tmp_path / "peer.sqlite", error))
