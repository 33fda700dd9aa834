from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oneway import store
from oneway.dashboard.runs import catalogue_cache
from oneway.dashboard.runs.catalogue_cache import FRESH_SECONDS, CatalogueCache
from oneway.errors import StoreError
from oneway.testing.records import make_record

RECORD = make_record(config={"num_rounds": 9})


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
def runs(tmp_path: Path, clock: Clock) -> CatalogueCache:
    return CatalogueCache(tmp_path, clock)


def look_later(runs: CatalogueCache, clock: Clock) -> None:
    clock.now += 2 * FRESH_SECONDS
    runs.refresh()


def test_a_look_brings_average_losses_and_the_rounds_that_were_done(runs, tmp_path):
    store.save(RECORD, tmp_path / "first")
    runs.refresh()
    (entry,) = runs.catalogue.entries
    assert (entry.average_loss, entry.num_rounds, entry.rounds_done) == (0.75, 9, 2)


def test_new_changed_and_deleted_runs_are_seen_and_nothing_else_is_a_change(runs, tmp_path, clock):
    store.save(RECORD, tmp_path / "first")
    runs.refresh()
    seen = runs.version
    look_later(runs, clock)
    assert runs.version == seen
    store.save(RECORD, tmp_path / "second")
    store.save(replace(RECORD, loss_sums=RECORD.loss_sums * 2), tmp_path / "first")
    look_later(runs, clock)
    assert runs.version > seen
    assert [entry.average_loss for entry in runs.catalogue.entries] == [1.5, 0.75]
    shutil.rmtree(tmp_path / "second")
    look_later(runs, clock)
    assert [entry.name for entry in runs.catalogue.entries] == ["first"]


def test_nobody_looks_twice_within_a_short_time(runs, tmp_path, clock):
    runs.refresh()
    store.save(RECORD, tmp_path / "first")
    runs.refresh()
    assert runs.catalogue.entries == ()
    look_later(runs, clock)
    assert len(runs.catalogue.entries) == 1


def test_losses_that_take_long_are_read_bit_by_bit(runs, tmp_path, clock):
    for number in range(5):
        store.save(RECORD, tmp_path / f"run{number}")
    clock.step = 0.3
    runs.refresh()
    known = [entry.average_loss is not None for entry in runs.catalogue.entries]
    assert 0 < sum(known) < 5
    for _ in range(5):
        look_later(runs, clock)
    assert all(entry.average_loss == 0.75 for entry in runs.catalogue.entries)


def test_damaged_arrays_are_told_and_others_are_read(runs, tmp_path):
    for name in ("cut", "good", "short"):
        store.save(RECORD, tmp_path / name)
    whole = (tmp_path / "cut" / "arrays.npz").read_bytes()
    (tmp_path / "cut" / "arrays.npz").write_bytes(whole[: len(whole) // 2])
    np.savez(tmp_path / "short" / "arrays.npz", loss_sums=np.ones(2), sample_counts=np.ones(3))
    runs.refresh()
    problems = {entry.name: entry.problem for entry in runs.catalogue.entries}
    assert problems["good"] == ""
    assert "zip" in problems["cut"]
    assert "sample_counts" in problems["short"]
    with pytest.raises(StoreError):
        runs.record("cut")
    assert runs.record("good").algorithm == "ops"


def test_a_folder_that_vanishes_is_told_and_comes_back(tmp_path, clock):
    folder = tmp_path / "runs"
    store.save(RECORD, folder / "first")
    runs = CatalogueCache(folder, clock)
    runs.refresh()
    folder.rename(tmp_path / "away")
    look_later(runs, clock)
    assert "there is no folder" in runs.problem
    assert runs.catalogue.entries == ()
    (tmp_path / "away").rename(folder)
    look_later(runs, clock)
    assert (runs.problem, len(runs.catalogue.entries)) == ("", 1)


def test_records_are_remembered_until_they_change_and_only_a_few(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(catalogue_cache, "RECORDS_KEPT", 2)
    runs = CatalogueCache(tmp_path, clock)
    for name in "abc":
        store.save(RECORD, tmp_path / name)
    runs.refresh()
    first = runs.record("a")
    assert runs.record("a") is first
    runs.record("b")
    runs.record("c")
    assert runs.record("a") is not first
    again = runs.record("a")
    store.save(replace(RECORD, algorithm="local"), tmp_path / "a")
    look_later(runs, clock)
    assert runs.record("a") is not again
    assert runs.record("a").algorithm == "local"


def test_only_what_is_in_the_catalogue_is_read(runs, tmp_path):
    store.save(RECORD, tmp_path.parent / f"{tmp_path.name}-outside")
    runs.refresh()
    with pytest.raises(StoreError, match="there is no stored run"):
        runs.record(f"../{tmp_path.name}-outside")
