from __future__ import annotations

import math
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest
from builders import replace
from hypothesis import given
from hypothesis import strategies as st

from oneway.peer.store import schema
from oneway.peer.store.history import with_sample
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, PeerStore, read_curve
from oneway.protocol.state import PeerState
from oneway.records.curve import MOST_GROUPS, Curve

OWNER = Owner(key=b"k" * 32, task=b"t" * 16, dim=2)


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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "peer.sqlite"


# Grouping.


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


def test_losses_too_large_to_add_up_stay_numbers_that_json_has():
    history = learned(new_peer(), [sys.float_info.max] * (MOST_GROUPS + 2)).history
    curve = history.curve()
    assert msgspec.json.decode(msgspec.json.encode(curve), type=Curve) == curve


# On disk.


@given(st.lists(st.integers(0, 1400), min_size=1, max_size=5))
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
