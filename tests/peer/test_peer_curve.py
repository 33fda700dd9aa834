from __future__ import annotations

import math
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import PLAIN_TOML

from oneway.errors import StoreError
from oneway.peer.home.home import Home
from oneway.peer.peer import Peer
from oneway.peer.store import schema
from oneway.peer.store.history import UNKNOWN, History, with_sample
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.store.store import Owner, PeerStore, read_curve, read_snapshot
from oneway.protocol.state import PeerState
from oneway.records.curve import MOST_GROUPS, Curve
from oneway.testing.records import replace

OWNER = Owner(key=b"k" * 32, task=b"t" * 16, dim=2)
TASK = f"""
{PLAIN_TOML}model = "logistic"
label = "y"
classes = ["no", "yes"]
[features]
x = {{}}
"""


def learned(snapshot: Snapshot, losses: list[float]) -> Snapshot:
    """The snapshot after samples with these losses; every other one was foreseen."""
    journal, history = snapshot.journal, snapshot.history
    for loss in losses:
        correct = journal.samples % 2 == 0
        history = with_sample(history, loss, correct, 1.7e9 + journal.samples)
        journal = replace(
            journal,
            samples=journal.samples + 1,
            loss_sum=journal.loss_sum + loss,
            correct=journal.correct + correct,
        )
    return replace(snapshot, journal=journal, history=history)


def new_peer() -> Snapshot:
    return Snapshot(PeerState.new(dim=2, ledger=1, boot=1))


def losses_of(count: int) -> list[float]:
    return (1.0 / np.arange(1, count + 1)).tolist()


def agrees(snapshot: Snapshot, curve: Curve) -> bool:
    """Whether a curve tells of exactly the samples that the journal counts."""
    journal = snapshot.journal
    return (
        curve.before + curve.samples == journal.samples
        and math.isclose(sum(curve.loss_sums), journal.loss_sum, abs_tol=1e-12)
        and sum(curve.correct) == journal.correct
    )


def all_rows(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM curve ORDER BY first").fetchall()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "peer.sqlite"


# Grouping.


def test_up_to_1024_samples_every_loss_is_exact():
    losses = losses_of(MOST_GROUPS)
    curve = learned(new_peer(), losses).history.curve()
    assert curve.width == 1
    assert curve.loss_sums == tuple(losses)
    assert curve.correct == (1, 0) * (MOST_GROUPS // 2)
    assert curve.times == tuple(1.7e9 + index for index in range(MOST_GROUPS))


def test_one_sample_more_merges_groups_in_pairs_and_begins_a_new_one():
    losses = losses_of(MOST_GROUPS + 1)
    curve = learned(new_peer(), losses).history.curve()
    pairs = [one + other for one, other in zip(losses[:-1:2], losses[1::2], strict=True)]
    assert curve.width == 2
    assert curve.loss_sums == (*pairs, losses[-1])
    assert curve.correct == (1,) * (MOST_GROUPS // 2 + 1)
    assert curve.times[:2] == (1.7e9 + 1, 1.7e9 + 3)
    assert curve.times[-1] == 1.7e9 + MOST_GROUPS


@pytest.mark.parametrize("count", [3_000, 4_096, 4_097, 20_001])
def test_each_group_holds_the_sums_of_its_samples_however_often_groups_were_merged(count):
    losses = losses_of(count)
    curve = learned(new_peer(), losses).history.curve()
    width = curve.width
    assert MOST_GROUPS // 2 < len(curve.loss_sums) <= MOST_GROUPS
    for index, loss_sum in enumerate(curve.loss_sums):
        group = losses[index * width : (index + 1) * width]
        assert math.isclose(loss_sum, math.fsum(group), rel_tol=1e-12)
        assert curve.times[index] == 1.7e9 + index * width + len(group) - 1


@given(
    st.integers(0, 5_000),
    st.lists(st.tuples(st.floats(0, 1e6), st.booleans(), st.floats(0, 2e9)), max_size=300),
)
@settings(deadline=None)
def test_a_curve_always_agrees_with_what_was_learned(already, samples):
    history = learned(new_peer(), [0.5] * already).history
    for loss, correct, time in samples:
        history = with_sample(history, loss, correct, time)
    curve = history.curve()
    assert curve.samples == history.samples == already + len(samples)
    expected = math.fsum([0.5 * already, *(loss for loss, _, _ in samples)])
    assert math.isclose(sum(curve.loss_sums), expected, rel_tol=1e-9)
    assert sum(curve.correct) == (already + 1) // 2 + sum(correct for _, correct, _ in samples)
    assert len(curve.loss_sums) == len(curve.correct) == len(curve.times) <= MOST_GROUPS
    assert (len(curve.times) - 1) * curve.width < max(curve.samples, 1)
    assert msgspec.json.decode(msgspec.json.encode(curve), type=Curve) == curve


def test_losses_too_large_to_add_up_stay_numbers_that_json_has():
    history = learned(new_peer(), [sys.float_info.max] * (MOST_GROUPS + 2)).history
    curve = history.curve()
    assert msgspec.json.decode(msgspec.json.encode(curve), type=Curve) == curve


# On disk.


@given(st.lists(st.integers(0, 700), min_size=1, max_size=12))
@settings(deadline=None, max_examples=40)
def test_whatever_was_learned_between_commits_the_store_has_the_curve_of_the_last(counts):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "peer.sqlite"
        snapshot = new_peer()
        with closing(PeerStore.create(path, OWNER, snapshot)) as store:
            for count in counts:
                snapshot = learned(snapshot, losses_of(count))
                store.commit(snapshot)
                assert read_curve(path) == snapshot.history.curve()
        with closing(PeerStore.open(path, OWNER)) as store:
            assert store.load().history.curve() == snapshot.history.curve()
            assert agrees(store.load(), read_curve(path))


@given(*[st.tuples(st.integers(0, 3), st.integers(0, 1_100), st.booleans())] * 2)
@settings(deadline=None, max_examples=60)
def test_any_curve_can_follow_any_other(one, other):
    """Also where the second does not go on from the first."""
    histories = []
    for before, count, rising in (one, other):
        losses = losses_of(count)[:: -1 if rising else 1]
        first = replace(new_peer(), journal=Journal(before), history=History(before=before))
        histories.append(learned(first, losses))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "peer.sqlite"
        with closing(PeerStore.create(path, OWNER, histories[0])) as store:
            store.commit(histories[1])
        assert read_curve(path) == histories[1].history.curve()


def num_rows_written(before: Snapshot, after: Snapshot) -> int:
    changes = schema.changes(before, after)
    return sum(len(values) for statement, values in changes if "curve" in statement)


def test_a_commit_writes_only_the_groups_that_changed():
    first = learned(new_peer(), [0.5] * 3_000)  # groups of 4, all of them full
    assert num_rows_written(first, first) == 0
    begun = learned(first, [0.5])
    assert num_rows_written(first, begun) == 1
    assert num_rows_written(begun, learned(begun, [0.5] * 3)) == 1
    assert num_rows_written(begun, learned(begun, [0.5] * 7)) == 2


def test_a_commit_that_fails_leaves_the_curve_of_the_one_before(path):
    first = learned(new_peer(), losses_of(1_000))
    with closing(PeerStore.create(path, OWNER, first)) as store:
        merged = learned(first, losses_of(500))
        # The rows are deleted and written, and then there is no room for the transaction.
        store._connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON curve WHEN NEW.first > 1200"
            " BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
        with pytest.raises(StoreError, match="no room"):
            store.commit(merged)
        assert read_curve(path) == first.history.curve()
        assert agrees(read_snapshot(path), read_curve(path))
        store._connection.execute("DROP TRIGGER full")
        store.commit(learned(merged, [0.5]))
    assert read_curve(path) == learned(merged, [0.5]).history.curve()


def test_the_curve_is_read_while_commits_go_on_without_reading_the_model(path):
    snapshot = new_peer()
    with closing(PeerStore.create(path, OWNER, snapshot)) as store:
        store._connection.execute("UPDATE amount SET units = zeroblob(3)")
        for count in range(1, 4):
            snapshot = learned(snapshot, [0.5])
            store.commit(snapshot)
            assert read_curve(path).samples == count


def test_without_a_store_there_is_no_curve(path):
    with pytest.raises(StoreError, match="there is no"):
        read_curve(path)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM curve WHERE first = 3",
        "UPDATE curve SET samples = 2 WHERE first = 3",
        "UPDATE curve SET samples = 0",
        "UPDATE curve SET samples = -1",
        "UPDATE curve SET samples = 1.5",
        "UPDATE curve SET loss_sum = NULL WHERE first = 3",
        "UPDATE curve SET correct = 'many'",
        "UPDATE curve SET time = x'00'",
        "UPDATE curve SET first = first - 1",
    ],
)
def test_rows_that_are_no_curve_are_damage(path, damage):
    snapshot = learned(new_peer(), losses_of(9))
    PeerStore.create(path, OWNER, snapshot).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    with pytest.raises(StoreError, match=r"is damaged \(.*left untouched"):
        read_curve(path)
    with pytest.raises(StoreError, match="is damaged"):
        PeerStore.open(path, OWNER)


# Stores of releases that kept no curve.


def without_the_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE curve")


def test_a_store_that_never_kept_a_curve_opens_and_begins_one(path):
    old = replace(learned(new_peer(), losses_of(20)), history=History())
    PeerStore.create(path, OWNER, old).close()
    without_the_table(path)
    assert read_curve(path) == Curve(before=20)
    assert read_snapshot(path).journal == old.journal
    with closing(PeerStore.open(path, OWNER)) as store:
        store.commit(learned(store.load(), [0.25]))
        assert read_curve(path).loss_sums == (0.25,)
        assert all_rows(path) == [(20, 1, 0.25, 1, 1.7e9 + 20, UNKNOWN, UNKNOWN)]
    assert read_curve(path).before == 20


def test_a_curve_with_a_gap_begins_anew_and_its_old_groups_are_gone(path):
    first = learned(new_peer(), losses_of(5))
    with closing(PeerStore.create(path, OWNER, first)) as store:
        # As a release does that knows nothing of curves.
        store.commit(replace(first, journal=Journal(samples=8)))
    with closing(PeerStore.open(path, OWNER)) as store:
        saved = store.load()
        assert saved.history.samples == 5
        again = replace(saved, history=saved.history.up_to(saved.journal.samples))
        store.commit(again)
        store.commit(learned(again, [0.5]))
    assert [row[0] for row in all_rows(path)] == [8]


def test_a_curve_without_a_gap_goes_on():
    history = learned(new_peer(), losses_of(5)).history
    assert history.up_to(5) is history


# A peer.


@pytest.fixture
def home(tmp_path: Path) -> Home:
    task = tmp_path / "task.toml"
    task.write_text(TASK)
    return Home.create(tmp_path / "alice", "alice", task, "127.0.0.1:7700")


def teach(peer: Peer, count: int) -> list[float]:
    return [peer.learn_one({"x": index % 3 - 1.0}, "yes") for index in range(count)]


def test_a_peer_goes_on_with_its_curve_after_a_restart(home):
    with closing(Peer(home.folder)) as peer:
        losses = teach(peer, 5)
        assert peer.curve().loss_sums == tuple(losses)
    with closing(Peer(home.folder)) as peer:
        losses += teach(peer, 4)
        curve = peer.curve()
        assert curve.loss_sums == tuple(losses)
        assert curve.times == tuple(sorted(curve.times))
        assert agrees(peer.node.snapshot, curve)
    assert read_curve(home.store_path) == curve


def test_a_peer_whose_store_never_kept_a_curve_tells_how_many_samples_came_before(home):
    with closing(Peer(home.folder)) as peer:
        teach(peer, 5)
    without_the_table(home.store_path)
    with closing(Peer(home.folder)) as peer:
        assert peer.curve() == Curve(before=5)
        losses = teach(peer, 2)
    curve = read_curve(home.store_path)
    assert (curve.before, curve.samples, curve.loss_sums) == (5, 2, tuple(losses))


def test_samples_that_another_release_learned_from_are_a_gap_that_the_peer_notices(home):
    with closing(Peer(home.folder)) as peer:
        teach(peer, 5)
    task, key = home.task(), home.keys().public
    owner = Owner(key, task.fingerprint, task.dim)
    with closing(PeerStore.open(home.store_path, owner)) as store:
        store.commit(replace(store.load(), journal=Journal(samples=8)))
    with closing(Peer(home.folder)) as peer:
        assert peer.curve() == Curve(before=8)
    assert read_curve(home.store_path) == Curve(before=8)
