from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oneway import store
from oneway.dashboard.runs import shelf as shelves
from oneway.dashboard.runs.shelf import FRESH_SECONDS, Shelf
from oneway.errors import StoreError
from oneway.records import RunRecord

RECORD = RunRecord(
    algorithm="ops",
    loss_sums=np.array([2.0, 1.0]),
    sample_counts=np.array([2, 2]),
    correct_counts=None,
    disagreement=np.zeros(2),
    numerators=np.zeros((2, 1)),
    masses=np.ones(2),
    complete=True,
    seconds=0.5,
    config={"num_rounds": 9},
)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self.step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shelf(tmp_path: Path, clock: Clock) -> Shelf:
    return Shelf(tmp_path, clock)


def look_later(shelf: Shelf, clock: Clock) -> None:
    clock.now += 2 * FRESH_SECONDS
    shelf.refresh()


def test_a_look_brings_average_losses_and_the_rounds_that_were_done(shelf, tmp_path):
    store.save(RECORD, tmp_path / "first")
    shelf.refresh()
    (entry,) = shelf.catalogue.entries
    assert (entry.average_loss, entry.num_rounds, entry.rounds_done) == (0.75, 9, 2)


def test_new_changed_and_deleted_runs_are_seen_and_nothing_else_is_a_change(shelf, tmp_path, clock):
    store.save(RECORD, tmp_path / "first")
    shelf.refresh()
    seen = shelf.version
    look_later(shelf, clock)
    assert shelf.version == seen
    store.save(RECORD, tmp_path / "second")
    store.save(replace(RECORD, loss_sums=RECORD.loss_sums * 2), tmp_path / "first")
    look_later(shelf, clock)
    assert shelf.version > seen
    assert [entry.average_loss for entry in shelf.catalogue.entries] == [1.5, 0.75]
    shutil.rmtree(tmp_path / "second")
    look_later(shelf, clock)
    assert [entry.name for entry in shelf.catalogue.entries] == ["first"]


def test_nobody_looks_twice_within_a_short_time(shelf, tmp_path, clock):
    shelf.refresh()
    store.save(RECORD, tmp_path / "first")
    shelf.refresh()
    assert shelf.catalogue.entries == ()
    look_later(shelf, clock)
    assert len(shelf.catalogue.entries) == 1


def test_losses_that_take_long_are_read_bit_by_bit(shelf, tmp_path, clock):
    for number in range(5):
        store.save(RECORD, tmp_path / f"run{number}")
    clock.step = 0.3
    shelf.refresh()
    known = [entry.average_loss is not None for entry in shelf.catalogue.entries]
    assert 0 < sum(known) < 5
    for _ in range(5):
        look_later(shelf, clock)
    assert all(entry.average_loss == 0.75 for entry in shelf.catalogue.entries)


def test_damaged_arrays_are_told_and_others_are_read(shelf, tmp_path):
    for name in ("cut", "good", "short"):
        store.save(RECORD, tmp_path / name)
    whole = (tmp_path / "cut" / "arrays.npz").read_bytes()
    (tmp_path / "cut" / "arrays.npz").write_bytes(whole[: len(whole) // 2])
    np.savez(tmp_path / "short" / "arrays.npz", loss_sums=np.ones(2), sample_counts=np.ones(3))
    shelf.refresh()
    problems = {entry.name: entry.problem for entry in shelf.catalogue.entries}
    assert problems["good"] == ""
    assert "not a zip file; run it again" in problems["cut"]
    assert "do not fit together" in problems["short"]
    with pytest.raises(StoreError):
        shelf.record("cut")
    assert shelf.record("good").algorithm == "ops"


def test_a_folder_that_vanishes_is_told_and_comes_back(tmp_path, clock):
    folder = tmp_path / "runs"
    store.save(RECORD, folder / "first")
    shelf = Shelf(folder, clock)
    shelf.refresh()
    folder.rename(tmp_path / "away")
    look_later(shelf, clock)
    assert "there is no folder" in shelf.problem
    assert shelf.catalogue.entries == ()
    (tmp_path / "away").rename(folder)
    look_later(shelf, clock)
    assert (shelf.problem, len(shelf.catalogue.entries)) == ("", 1)


def test_records_are_remembered_until_they_change_and_only_a_few(
    shelf, tmp_path, clock, monkeypatch
):
    monkeypatch.setattr(shelves, "_RECORDS_KEPT", 2)
    for name in "abc":
        store.save(RECORD, tmp_path / name)
    shelf.refresh()
    first = shelf.record("a")
    assert shelf.record("a") is first
    shelf.record("b")
    shelf.record("c")
    assert shelf.record("a") is not first
    again = shelf.record("a")
    store.save(replace(RECORD, algorithm="local"), tmp_path / "a")
    look_later(shelf, clock)
    assert shelf.record("a") is not again
    assert shelf.record("a").algorithm == "local"


def test_only_what_is_in_the_catalogue_is_read(shelf, tmp_path):
    store.save(RECORD, tmp_path.parent / f"{tmp_path.name}-outside")
    shelf.refresh()
    with pytest.raises(StoreError, match="there is no stored run"):
        shelf.record(f"../{tmp_path.name}-outside")
