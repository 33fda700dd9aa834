"""Stores of large models: what a commit leaves out comes back, after a crash at any moment."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from stored_states import LittleNetwork, Pair, counted, facts, steps

from oneway.errors import StoreError
from oneway.peer.store import large
from oneway.peer.store.average import with_estimate
from oneway.peer.store.large import LARGE, PUT_OFF
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, PeerStore, read_snapshot
from oneway.peer.store.totals import CHAIN
from oneway.protocol.rules import Rules


def plain(snapshot: Snapshot) -> object:
    """What must come back: all but how totals followed, which may be forgotten."""
    state = snapshot.state
    out = {name: replace(edge, packed=None) for name, edge in state.out.items()}
    in_ = {name: replace(edge, packed=None) for name, edge in state.in_.items()}
    return facts(replace(snapshot, state=replace(state, out=out, in_=in_)))


def create(path: Path, snapshot: Snapshot) -> PeerStore:
    return PeerStore.create(path, owner(snapshot), snapshot)


def reopen(path: Path, snapshot: Snapshot) -> PeerStore:
    return PeerStore.open(path, owner(snapshot))


def owner(snapshot: Snapshot) -> Owner:
    return Owner(b"k" * 32, b"t" * 16, snapshot.state.dim)


def rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def page_count(path: Path) -> int:
    """How large the file is, or will be when its log is written back."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA page_count").fetchone()[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "peer.sqlite"


@given(st.lists(steps, min_size=20, max_size=60), st.booleans())
def test_whatever_happened_between_commits_a_large_store_holds_the_last_one(history, compact):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "LARGE", 1)
        network = LittleNetwork()
        network.rules = [
            Rules(rules.secret, window=3, clip=0.5, compact=compact) for rules in network.rules
        ]
        for one in range(3):
            network.step("mint", one, 0, 0.0)
            network.step("trust", one, (one + 1) % 3, 0.0)
            network.step("talk", one, 0, 0.0)
        path = Path(folder) / "peer.sqlite"
        last = Snapshot(network.states[0])
        with closing(create(path, last)) as store:
            for number, (event, one, other, amount) in enumerate(history):
                network.step(event, one, other, amount)
                if event in ("commit", "talk"):
                    last = counted(network.states[0], number)
                    store.commit(last)
                    assert plain(read_snapshot(path)) == plain(last)
        with closing(reopen(path, last)) as store:
            assert plain(store.load()) == plain(last)


def test_both_ends_of_many_compact_pushes_come_back_and_the_files_do_not_grow(tmp_path):
    pair = Pair(LARGE)
    paths = [tmp_path / name for name in ("sender.sqlite", "receiver.sqlite")]
    stores = [create(path, Snapshot(state)) for path, state in zip(paths, pair.states, strict=True)]
    sizes = []
    for number in range(3 * CHAIN + 3):
        pair.learn_and_push()
        stores[0].commit(Snapshot(pair.states[0]))
        pair.talk()
        for store, state in zip(stores, pair.states, strict=True):
            store.commit(Snapshot(state))
        if number % 5 == 0:
            for path, state in zip(paths, pair.states, strict=True):
                assert plain(read_snapshot(path)) == plain(Snapshot(state))
        sizes.append([page_count(path) for path in paths])
    [edge] = pair.states[0].out.values()
    assert edge.acked == edge.seq >= 3 * CHAIN
    assert np.max(sizes, axis=0).tolist() == np.max(sizes[: 2 * CHAIN], axis=0).tolist()
    for path, store, table in zip(paths, stores, ("total", "heard"), strict=True):
        assert rows(path, table) <= 2
        assert 0 < rows(path, "link") <= CHAIN
        store.close()
        # Four arrays of the peer, one or two totals in full, a chain, and the pages around them.
        assert path.stat().st_size < 9 * 8 * LARGE + CHAIN * 1.1 * LARGE + 40 * 65536


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM link",
        "DELETE FROM link WHERE seq % 2",
        "UPDATE link SET seq = seq + 1 WHERE seq = (SELECT max(seq) FROM link)",
        "DELETE FROM heard",
        "UPDATE amount SET units = zeroblob(length(units)) WHERE name = 'minted'",
        "UPDATE peer SET checksum = x'0000000000000001'",
    ],
)
def test_a_large_store_whose_rows_make_no_sense_is_refused(path, damage):
    pair = Pair(LARGE)
    with closing(create(path, Snapshot(pair.states[1]))) as store:
        for _ in range(4):
            pair.learn_and_push()
            pair.talk()
            store.commit(Snapshot(pair.states[1]))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    with pytest.raises(StoreError, match="damaged"):
        read_snapshot(path)


def test_what_predictions_are_made_with_is_put_off_until_a_store_is_closed(path):
    pair = Pair(LARGE)
    average = with_estimate(None, np.zeros(LARGE))
    measures = {"tally.losses": np.zeros(3), "alone.model": np.zeros((1, LARGE))}
    snapshot = Snapshot(pair.states[0], average=average, measures=measures)
    store = create(path, snapshot)
    counts = []
    for number in range(PUT_OFF + 6):
        average = with_estimate(average, np.full(LARGE, float(number)))
        told = {"tally.losses": np.full(3, number), "alone.model": np.full((1, LARGE), number)}
        snapshot = replace(snapshot, average=average, measures=told)
        store.commit(snapshot)
        if number in (5, PUT_OFF + 5):
            found = read_snapshot(path)  # as after a crash
            counts.append(found.average.count)
            assert found.measures["tally.losses"].tolist() == [number] * 3
            assert found.measures["alone.model"][0, 0] + 2 == found.average.count or number == 5
    assert counts == [1, PUT_OFF + 2]
    store.close()
    assert read_snapshot(path).average.count == average.count
