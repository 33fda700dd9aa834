from __future__ import annotations

import math
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import fields, is_dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from oneway.errors import StoreError
from oneway.peer.store import schema
from oneway.peer.store.history import History, with_sample
from oneway.peer.store.snapshot import Contact, Journal, Snapshot
from oneway.peer.store.store import Owner, PeerStore, read_curve, read_snapshot
from oneway.protocol.audit import expected_holding
from oneway.protocol.incoming import mint
from oneway.protocol.messages import NO_PROGRESS, Ack, Life, State
from oneway.protocol.outgoing import answer, receipts, remind, report, say
from oneway.protocol.replies import receive_receipt, receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, KeptReceipt, PeerState, Settled, Told
from oneway.protocol.tags import NO_TAG, digest_of
from oneway.protocol.transitions import (
    descend,
    distrust,
    leave,
    presume_dead,
    push,
    receive_push,
    restart,
    stay,
    trust,
)
from oneway.tables.rows import Position
from oneway.testing.records import replace

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
TASK, OTHER_TASK = b"t" * 16, b"u" * 16
RULES = Rules(secret=b"s" * 32)
DIM = 3


def life(boot: int) -> Life:
    """A life of a receiver; its proof is for itself alone."""
    return Life(boot, 0, False, NO_TAG)


def receiver(number: int) -> bytes:
    return bytes([number + 1]) * 32


def peer_with_edges(dim: int = DIM, num_receivers: int = 2) -> Snapshot:
    """A peer with one unit of mass and open edges, on which nothing was sent yet."""
    state = mint(PeerState.new(dim, ledger=2**61, boot=1), np.linspace(-1.0, 1.0, dim))
    for number in range(num_receivers):
        state = with_open_edge(state, number)
    return Snapshot(state, contacts={receiver(0): Contact("bob", "localhost:7701")})


def with_open_edge(state: PeerState, number: int) -> PeerState:
    epoch, takes = 2**62 - 1 - number, ()
    state = trust(state, receiver(number), epoch)
    nothing = np.zeros(state.dim + 1, dtype=np.int64)
    opening = State(epoch, life(5), 9, state.boot, 5, 0, nothing, NO_TAG, NO_PROGRESS, takes)
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


FORGOTTEN = ("former_lives",)
"""What a state has, and may be forgotten with a restart."""


def facts(value: object) -> object:
    """A frozen value as plain ones, arrays included, so that == means all of it."""
    if isinstance(value, np.ndarray):
        assert value.dtype == np.int64
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: facts(item) for name, item in value.items()}
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if name not in FORGOTTEN]
        return type(value), [facts(getattr(value, name)) for name in names]
    if is_dataclass(value):
        return type(value), [facts(getattr(value, field.name)) for field in fields(value)]
    return value


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def log_bytes(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


def in_a_process(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a peer's folder #1?" / "peer.sqlite"


@pytest.fixture(autouse=True)
def _folder(path: Path) -> None:
    path.parent.mkdir()


# What is committed comes back.


def test_a_new_store_holds_what_it_was_made_with(path):
    first = peer_with_edges()
    with closing(create(path, first)) as store:
        assert store.load() is first
    assert facts(stored(path)) == facts(first)


def test_everything_in_a_snapshot_comes_back(path):
    journal = Journal(7, math.inf, 5, 2, Position(2**40, 3, 7, 8, 2**32 - 1))
    snapshot = replace(after_a_push(peer_with_edges()), journal=journal, history=History(before=7))
    snapshot = replace(snapshot, contacts={receiver(1): Contact("Zoë", "[::1]:7702")})
    with closing(create(path, peer_with_edges())) as store:
        store.commit(snapshot)
    assert facts(stored(path)) == facts(snapshot)


def test_what_a_later_snapshot_lacks_is_gone(path):
    first = peer_with_edges()
    end = Settled(receiver(9), 3, ledger=4, seq=0, total=np.zeros(DIM + 1, np.int64))
    second = with_an_edge_in(after_a_push(first))
    second = replace(second, state=replace(second.state, settled={(receiver(9), 3): end}))
    with closing(create(path, first)) as store:
        store.commit(second)
        assert facts(read_snapshot(path)) == facts(second)
        store.commit(first)
    assert facts(stored(path)) == facts(first)


def test_a_sum_of_losses_that_is_not_a_number_comes_back_as_such(path):
    with closing(create(path, Snapshot(PeerState.new(DIM, 1, 1), Journal(1, math.nan)))):
        pass
    assert math.isnan(stored(path).journal.loss_sum)


def test_arrays_that_are_views_of_others_are_stored_as_they_look(path):
    every_other = np.arange(2 * (DIM + 1), dtype=np.int64)[::2]
    state = replace(PeerState.new(DIM, 1, 1), holding=every_other, minted=every_other)
    with closing(create(path, Snapshot(state))):
        pass
    assert stored(path).state.holding.tolist() == every_other.tolist()


def test_edges_come_back_in_the_order_in_which_they_were_opened(path):
    first = peer_with_edges(num_receivers=5)
    with closing(create(path, first)) as store:
        second = replace(first, state=with_open_edge(distrust(first.state, receiver(0)), 7))
        store.commit(second)
        store.commit(after_a_push(second))
    assert list(stored(path).state.out) == list(second.state.out)


def test_a_commit_may_come_from_any_thread(path):
    first = peer_with_edges()
    second = after_a_push(first)
    with closing(create(path, first)) as store:
        thread = threading.Thread(target=store.commit, args=(second,))
        thread.start()
        thread.join()
    assert facts(stored(path)) == facts(second)


class LittleNetwork:
    """Three peers to which anything can happen; numbers say what."""

    def __init__(self) -> None:
        self.rules = [Rules(bytes([i]) * 32, window=3, clip=0.5) for i in range(3)]
        self.keys = [receiver(i) for i in range(3)]
        self.states = [PeerState.new(DIM, ledger=i + 1, boot=1 << 20) for i in range(3)]
        self.epoch = 0
        self.saved = list(self.states)

    def step(self, event: str, one: int, other: int, amount: float) -> None:
        state = self.states[one]
        match event:
            case "learn" if state.mass > 0:
                state = descend(state, np.array([amount, 0.0, -amount]) * state.mass)
            case "mint" if not state.has_minted:
                state = mint(state, np.array([amount, 1.0, 2.0]))
            case "push":
                state = push(state, dict.fromkeys(self.keys, 0.3), self.rules[one])
            case "trust" if one != other:
                self.epoch += 1
                state = trust(state, self.keys[other], self.epoch)
            case "distrust":
                state = distrust(state, self.keys[other])
            case "presume dead" if state.out:
                state = presume_dead(state, list(state.out)[other % len(state.out)])
            case "leave" if amount > 0.3:
                state = leave(state)
            case "leave":
                state = stay(state)
            case "restart":
                state = restart(state, 0)
            case "save":
                self.saved[one] = state
            case "old backup":
                state = restart(self.saved[one], 0)
        self.states[one] = state
        if event == "talk":
            self.talk(one, amount)

    def talk(self, one: int, amount: float) -> None:
        """Say all there is to say; some answers, and some questions, get lost."""
        state = self.states[one]
        told = [(edge.receiver, say(state, edge, self.rules[one])) for edge in state.out.values()]
        told += [
            (end.receiver, remind(state, end, self.rules[one])) for end in state.settled.values()
        ]
        for key, message in told:
            other = self.keys.index(key)
            heard = receive_push(self.states[other], self.keys[one], message, self.rules[other])
            self.states[other] = heard.state
            if amount > -0.3:
                replies = answer(heard.state, self.keys[one], message, self.rules[other])
                self.reply(other, one, list(replies))
        for edge in state.in_.values():
            self.reply(one, self.keys.index(edge.sender), [report(state, edge, self.rules[one])])
        for receipt in list(receipts(state, self.keys[one], self.rules[one])):
            for other in {0, 1, 2} - {one}:
                self.states[other] = receive_receipt(
                    self.states[other], self.keys[other], self.keys[one], receipt, self.rules[other]
                )

    def reply(self, one: int, other: int, replies: list) -> None:
        for reply in replies:
            done = receive_reply(self.states[other], self.keys[one], reply, self.rules[other])
            self.states[other] = done.state


EVENTS = ["learn", "mint", "push", "push", "talk", "talk", "talk", "trust", "distrust"]
EVENTS += ["presume dead", "leave", "restart", "save", "old backup", "commit", "commit"]

steps = st.tuples(
    st.sampled_from(EVENTS), st.integers(0, 2), st.integers(0, 2), st.floats(-0.5, 0.5)
)


@given(st.lists(steps, min_size=20, max_size=80))
@settings(deadline=None, max_examples=40)
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
                    history = History(before=number)
                    last = Snapshot(network.states[0], Journal(number), history=history)
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


def test_an_acknowledgement_writes_no_total_and_drops_those_that_are_history():
    first = after_a_push(after_a_push(peer_with_edges(num_receivers=4)))
    done = statements(first, after_acknowledgements(first))
    assert [item for item in done if item[0] != "INSERT amount"] == [
        ("INSERT out_edge", 4),
        ("DELETE total", 12),
    ]


def test_the_same_snapshot_again_writes_nothing():
    first = after_a_push(peer_with_edges())
    assert statements(first, replace(first)) == []


def test_a_million_parameters_can_be_stored_and_unchanged_arrays_stay_where_they_are(path):
    dim = 1_000_000
    first = peer_with_edges(dim, num_receivers=1)
    with closing(create(path, first, dim)) as store:
        second = after_a_push(first)
        store.commit(second)
    array_bytes = 8 * dim
    with closing(reopen(path, dim)) as store:
        third = after_acknowledgements(store.load())
        store.commit(third)
        # Not even `holding`, which is a new array with the old numbers: its pages are the same.
        assert log_bytes(path) < array_bytes / 8
    reread = stored(path, dim).state
    assert np.array_equal(reread.holding, second.state.holding)
    assert [list(edge.totals) for edge in reread.out.values()] == [[2]]
    # Five arrays of the peer, two or three totals, and the pages around them.
    assert path.stat().st_size < 9 * array_bytes


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
        smaller = replace(first, journal=Journal(samples=9), history=History(before=9))
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

A_LIMIT_ON_FILES = """
def limit(most):
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

limit(path.stat().st_size + 100_000)
failures = []
for _ in range(50):
    go_on()
    try:
        store.commit(snapshot)
    except StoreError as error:
        failures.append(str(error))
assert read_snapshot(path).journal.samples < snapshot.journal.samples
limit(resource.RLIM_INFINITY)
go_on()
store.commit(snapshot)
store.close()
print(len(failures), snapshot.journal.samples, failures[0])
"""


def test_writes_that_the_system_refuses_are_made_up_for_later(path):
    dim = 2_000
    create(path, peer_with_edges(dim), dim).close()
    failures, samples, sentence = in_a_process(HELPERS + A_LIMIT_ON_FILES, path, dim).split(" ", 2)
    assert int(failures) > 10
    assert "room" in sentence
    assert stored(path, dim).journal.samples == int(samples) == 51


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
    for _ in range(10):
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


def test_readers_see_whole_snapshots_while_commits_go_on(path):
    snapshot = peer_with_edges()
    seen = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.append(read_snapshot(path).journal.samples)  # checks that the books balance

    with closing(create(path, snapshot)) as store:
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for _ in range(100):
                snapshot = after_acknowledgements(after_a_push(snapshot))
                store.commit(snapshot)
        finally:
            done.set()
            watcher.join()
    assert seen == sorted(seen)
    assert facts(stored(path)) == facts(snapshot)


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


def test_a_copy_of_a_closed_store_is_a_backup(path, tmp_path):
    first = after_a_push(peer_with_edges())
    create(path, first).close()
    backup = shutil.copy(path, tmp_path / "backup.sqlite")
    with closing(reopen(path)) as store:
        store.commit(after_a_push(store.load()))
    shutil.copy(backup, path)
    with closing(reopen(path)) as store:
        assert facts(store.load()) == facts(first)
        store.commit(after_acknowledgements(store.load()))


def test_sqlites_own_backup_of_a_store_in_use_is_a_backup(path, tmp_path):
    backup = tmp_path / "backup.sqlite"
    with closing(create(path, peer_with_edges())) as store:
        first = after_a_push(store.load())
        store.commit(first)
        with (
            closing(sqlite3.connect(path)) as source,
            closing(sqlite3.connect(backup)) as target,
        ):
            source.backup(target)
        store.commit(after_a_push(first))
    assert facts(stored(backup)) == facts(first)


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


def test_an_unfinished_store_is_no_obstacle(path):
    path.with_name("peer.sqlite-draft").write_bytes(b"killed while this was written")
    create(path, peer_with_edges()).close()
    assert list(contents(path.parent)) == ["peer.sqlite"]


def test_only_its_owner_may_read_a_store(path):
    with closing(create(path, peer_with_edges())) as store:
        store.commit(after_a_push(store.load()))
        modes = [stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()]
    assert set(modes) == {0o600}


def test_a_missing_store_is_said_to_be_missing(path):
    with pytest.raises(StoreError, match=r"there is no .*restore a backup, or start"):
        reopen(path)
    with pytest.raises(StoreError, match=r"there is no .*restore a backup, or start"):
        read_snapshot(path)
    assert contents(path.parent) == {}


def refused(path: Path, match: str, key: bytes = KEY, task: bytes = TASK, dim: int = DIM) -> None:
    before = contents(path.parent)
    with pytest.raises(StoreError, match=match) as caught:
        PeerStore.open(path, Owner(key, task, dim))
    assert "left untouched" in str(caught.value)
    assert contents(path.parent) == before


def test_a_store_of_another_key_is_refused(path):
    create(path, peer_with_edges()).close()
    refused(path, "belongs to the peer .*, and this is .*; .*key file", key=OTHER_KEY)


def test_a_store_of_another_task_is_refused(path):
    create(path, peer_with_edges()).close()
    refused(
        path, r"belongs to another task \(7474.*, this one is 7575.*task\.toml", task=OTHER_TASK
    )


def test_a_store_of_another_dimension_is_refused(path):
    create(path, peer_with_edges()).close()
    refused(path, "holds a model of 3 parameters, and the task has 4", dim=4)


@pytest.mark.parametrize("content", [b"", b"x", b"not a database at all " * 100])
def test_a_file_that_is_no_database_is_refused(path, content):
    path.write_bytes(content)
    refused(path, "move it away.*restore a backup or start anew.*lost to the network")
    with pytest.raises(StoreError, match="left untouched"):
        read_snapshot(path)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_of_another_program_is_refused(path, mode):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE owner (key, task, dim)")
    refused(path, "is not the store of a peer")


def test_a_store_of_another_version_is_refused(path):
    create(path, peer_with_edges()).close()
    change(path, "PRAGMA user_version = 99")
    refused(path, "has version 99 and this oneway reads version 1.*release")


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
    ],
)
def test_a_store_whose_rows_make_no_sense_is_refused(path, damage):
    create(path, with_an_edge_in(after_a_push(peer_with_edges()))).close()
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


def test_a_store_that_lost_its_end_is_refused(path):
    create(path, peer_with_edges()).close()
    good = path.read_bytes()
    for length in range(4096, len(good), 4096):
        path.write_bytes(good[:length])
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


def test_only_the_arrays_of_a_method_that_are_new_objects_are_written():
    first = replace(peer_with_edges(), memory=MEMORY)
    second = replace(first, memory=MEMORY | {"count": np.array(8.0)})
    assert statements(first, second) == [("INSERT memory", 1)]
    assert statements(first, replace(first, memory=dict(MEMORY))) == []


def test_a_store_that_knew_of_no_private_state_gets_room_for_it(path):
    first = peer_with_edges()
    create(path, first).close()
    change(path, "DROP TABLE memory")
    assert read_snapshot(path).memory == {}
    with closing(reopen(path)) as store:
        store.commit(replace(store.load(), memory=MEMORY))
    assert remembered(path) == as_stored(MEMORY)


def test_private_state_of_another_shape_than_its_numbers_is_damage(path):
    create(path, replace(peer_with_edges(), memory=MEMORY)).close()
    change(path, "UPDATE memory SET numbers = zeroblob(8) WHERE name = 'squares'")
    refused(path, "is damaged")


def test_a_column_that_an_older_release_did_not_have_gets_its_default(path):
    first = with_an_edge_in(after_a_push(peer_with_edges()))
    create(path, first).close()
    change(path, "ALTER TABLE in_edge DROP COLUMN closed")
    assert facts(read_snapshot(path)) == facts(first)
    with closing(reopen(path)) as store:
        assert facts(store.load()) == facts(first)
        store.commit(after_a_push(store.load()))
    assert [edge.closed for edge in stored(path).state.in_.values()] == [False]


# A store of the release before.

FIRST_EDITION = """
CREATE TABLE owner (key BLOB, task BLOB, dim);
CREATE TABLE peer (id INTEGER PRIMARY KEY, ledger, boot, leaving, journal);
CREATE TABLE amount (name TEXT, units BLOB, UNIQUE (name));
CREATE TABLE contact (key BLOB, name TEXT, address TEXT, UNIQUE (key));
CREATE TABLE out_edge (receiver BLOB, epoch, session, phase TEXT, seq, acked, ledger, granted,
                       their_boot, UNIQUE (receiver, epoch));
CREATE TABLE total (receiver BLOB, epoch, seq, units BLOB, UNIQUE (receiver, epoch, seq));
CREATE TABLE in_edge (sender BLOB, epoch, heard BLOB, seq, tag BLOB, session, granted, closed,
                      UNIQUE (sender, epoch));
CREATE TABLE settled (receiver BLOB, epoch, ledger, seq, total BLOB, their_boot,
                      UNIQUE (receiver, epoch));
CREATE TABLE curve (first INTEGER PRIMARY KEY, samples, loss_sum, correct, time);
CREATE TABLE memory (name TEXT, shape, numbers BLOB, UNIQUE (name));
CREATE TABLE segment (name TEXT, kind TEXT, start, stop, UNIQUE (name));
"""


def make_first_edition(path: Path, snapshot: Snapshot) -> None:
    """Put what a snapshot has in common with the release before into a store of that release."""
    second = path.with_name("second.sqlite")
    create(second, snapshot).close()
    with closing(sqlite3.connect(path)) as old:
        old.executescript("PRAGMA journal_mode = WAL;" + FIRST_EDITION)
        old.execute("ATTACH ? AS second", (str(second),))
        tables = [row[0] for row in old.execute("SELECT name FROM main.sqlite_master")]
        for table in [name for name in tables if not name.startswith("sqlite")]:
            had = [row[1] for row in old.execute(f"PRAGMA main.table_info({table})")]
            has = [row[1] for row in old.execute(f"PRAGMA second.table_info({table})")]
            both = ", ".join(name for name in had if name in has)
            old.execute(f"INSERT INTO main.{table} ({both}) SELECT {both} FROM second.{table}")
        old.execute("DELETE FROM main.amount WHERE name = 'owed'")
        old.execute("UPDATE main.settled SET their_boot = 5")
        for pragma in ("application_id", "user_version"):
            [(value,)] = old.execute(f"PRAGMA second.{pragma}").fetchall()
            old.execute(f"PRAGMA main.{pragma} = {value}")
        old.commit()
    second.unlink()


def test_a_store_of_the_release_before_is_read_and_gets_what_it_lacks(path):
    end = Settled(receiver(9), 3, ledger=4, seq=2, total=np.arange(DIM + 1))
    first = with_an_edge_in(after_a_push(peer_with_edges()))
    held = first.state.holding - end.total
    first = replace(
        first, state=replace(first.state, holding=held, settled={(receiver(9), 3): end}, lives={})
    )
    make_first_edition(path, first)
    assert facts(read_snapshot(path)) == facts(first)  # without a change to the file
    with closing(reopen(path)) as store:
        assert facts(store.load()) == facts(first)
        state = first.state
        told = {name: replace(edge, told=Told.WITNESS) for name, edge in state.in_.items()}
        owed = np.arange(DIM + 1)
        receipt = KeptReceipt(3, b"d" * 16, b"t" * 16, receiver(1))
        later = replace(
            state,
            boot=7,
            over=6,
            in_=told,
            owed=state.owed + owed,
            holding=state.holding + owed,
            lives={receiver(0): Life(5, 4, True, b"p" * 16)},
            receipts={(receiver(2), receiver(3), 9): receipt},
        )
        second = replace(first, state=later)
        store.commit(second)
    assert facts(stored(path)) == facts(second)
