from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from oneway import store
from oneway.errors import StoreError
from oneway.records import RunRecord
from oneway.testing.records import make_record


@pytest.fixture
def record() -> RunRecord:
    rng = np.random.default_rng(5)
    return make_record(
        loss_sums=rng.random(7),
        sample_counts=np.arange(7),
        correct_counts=np.arange(7, dtype=np.int64),
        disagreement=rng.random(7),
        numerators=rng.standard_normal((3, 2)),
        masses=np.array([1e-300, 0.1 + 0.2, 2.5]),
        seconds=0.125,
        config={"seed": 7, "learning_rate": 0.1, "graph": {"names": ["é", "b"]}, "resample": None},
        versions={"oneway": "0.1.0"},
        comparator_sums=rng.random(7),
    )


def assert_same(one: RunRecord, other: RunRecord) -> None:
    for field in fields(RunRecord):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        assert type(mine) is type(theirs), field.name
        if isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
        else:
            assert mine == theirs


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_run_comes_back_bit_by_bit(tmp_path, record):
    assert store.save(record, tmp_path / "run") == tmp_path / "run"
    assert_same(store.load(tmp_path / "run"), record)


def test_what_a_run_does_not_have_stays_absent(tmp_path, record):
    bare = replace(record, correct_counts=None, comparator_sums=None, complete=False)
    store.save(bare, tmp_path / "run")
    assert_same(store.load(tmp_path / "run"), bare)


def test_a_run_without_rounds_comes_back(tmp_path, record):
    empty = replace(
        record,
        loss_sums=np.zeros(0),
        sample_counts=np.zeros(0, np.int64),
        correct_counts=None,
        disagreement=np.zeros(0),
        comparator_sums=None,
    )
    store.save(empty, tmp_path / "run")
    assert store.load(tmp_path / "run").num_rounds == 0


def test_numpy_numbers_in_a_config_become_plain_ones(tmp_path, record):
    config = {"l2": np.float64(0.5), "seed": np.int64(3), "weighted": np.bool_(True)}
    store.save(replace(record, config=config), tmp_path / "run")
    assert store.load(tmp_path / "run").config == {"l2": 0.5, "seed": 3, "weighted": True}


def test_people_and_other_programs_can_read_config_and_versions(tmp_path, record):
    store.save(record, tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert summary["format"] == 1
    assert summary["config"]["seed"] == 7
    assert summary["versions"] == {"oneway": "0.1.0"}
    with np.load(tmp_path / "run" / "arrays.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["masses"], record.masses)


def test_folders_on_the_way_are_made_and_text_will_do_as_a_path(tmp_path, record):
    store.save(record, f"{tmp_path}/some/where/run")
    assert_same(store.load(f"{tmp_path}/some/where/run"), record)


def test_a_run_replaces_a_run_whole(tmp_path, record):
    store.save(record, tmp_path / "run")
    (tmp_path / "run" / "left over.txt").write_text("from before")
    newer = replace(record, algorithm="col", comparator_sums=None)
    store.save(newer, tmp_path / "run")
    assert_same(store.load(tmp_path / "run"), newer)
    assert set(everything_in(tmp_path)) == {"run/run.json", "run/arrays.npz"}


def test_others_may_read_a_saved_run_as_they_may_any_folder(tmp_path, record):
    store.save(record, tmp_path / "run")
    assert (tmp_path / "run").stat().st_mode & 0o555 == 0o555


@pytest.mark.parametrize("what", ["a folder", "a file"])
def test_nothing_but_a_run_is_ever_replaced(tmp_path, record, what):
    place = tmp_path / "precious"
    if what == "a folder":
        place.mkdir()
        (place / "thesis.txt").write_text("years of work")
    else:
        place.write_text("years of work")
    before = everything_in(tmp_path)
    with pytest.raises(StoreError, match="precious"):
        store.save(record, place)
    assert everything_in(tmp_path) == before


def test_a_run_that_cannot_be_written_leaves_the_old_one_intact(tmp_path, record):
    store.save(record, tmp_path / "run")
    before = everything_in(tmp_path)
    with pytest.raises(StoreError, match="object at"):
        store.save(replace(record, config={"graph": object()}), tmp_path / "run")
    assert everything_in(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_place_that_cannot_be_written_is_named_and_left_as_it_is(tmp_path, record):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match=r"file/run"):
        store.save(record, tmp_path / "file" / "run")
    assert everything_in(tmp_path) == {"file": b"mine"}


def test_a_link_to_a_run_is_followed_or_refused_with_a_reason(tmp_path, record):
    store.save(record, tmp_path / "run")
    (tmp_path / "latest").symlink_to(tmp_path / "run")
    complaint = ""
    try:
        store.save(record, tmp_path / "latest")
    except StoreError as error:
        complaint = str(error)
    assert not complaint.endswith("None")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path, record):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="Permission denied"):
            store.save(record, tmp_path / "run")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("missing", ["run.json", "arrays.npz"])
def test_a_run_without_one_of_its_files_says_which(tmp_path, record, missing):
    store.save(record, tmp_path / "run")
    (tmp_path / "run" / missing).unlink()
    with pytest.raises(StoreError, match=f"run: {missing}"):
        store.load(tmp_path / "run")


@pytest.mark.parametrize("keep", [0, 10, 300])
def test_truncated_numbers_are_damage(tmp_path, record, keep):
    arrays = store.save(record, tmp_path / "run") / "arrays.npz"
    arrays.write_bytes(arrays.read_bytes()[:keep])
    with pytest.raises(StoreError, match="run is damaged"):
        store.load(tmp_path / "run")


def test_flipped_bits_in_the_numbers_are_damage(tmp_path, record):
    arrays = store.save(record, tmp_path / "run") / "arrays.npz"
    content = bytearray(arrays.read_bytes())
    place = content.index(record.masses.tobytes())
    content[place] ^= 0xFF
    arrays.write_bytes(content)
    with pytest.raises(StoreError, match="run is damaged"):
        store.load(tmp_path / "run")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"format": 1}',
        '{"format": 1, "surprise": 2}',
        "\udcff",
    ],
    ids=repr,
)
def test_a_summary_that_makes_no_sense_is_damage(tmp_path, record, text):
    summary = store.save(record, tmp_path / "run") / "run.json"
    summary.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StoreError, match="run is damaged"):
        store.load(tmp_path / "run")


def test_pickled_objects_are_never_loaded(tmp_path, record):
    arrays = store.save(record, tmp_path / "run") / "arrays.npz"
    with arrays.open("wb") as file:
        np.savez(file, masses=np.array([{"not": "a number"}], dtype=object))
    with pytest.raises(StoreError, match="run is damaged"):
        store.load(tmp_path / "run")


def test_another_format_is_named(tmp_path, record):
    summary = store.save(record, tmp_path / "run") / "run.json"
    summary.write_text(summary.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(StoreError, match=r"format 2 .*format 1"):
        store.load(tmp_path / "run")


def test_a_place_without_a_run_is_named(tmp_path):
    with pytest.raises(StoreError, match="nowhere"):
        store.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="file"):
        store.load(tmp_path / "file")


def test_if_the_new_run_cannot_take_its_place_the_old_one_comes_back(tmp_path, record, monkeypatch):
    store.save(record, tmp_path / "run")
    before = everything_in(tmp_path)
    rename = Path.rename

    def refuse_the_draft(self, target):
        if not self.name.endswith("-old") and target == tmp_path / "run":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse_the_draft)
    with pytest.raises(StoreError, match="Input/output error"):
        store.save(replace(record, seconds=9.0), tmp_path / "run")
    assert everything_in(tmp_path) == before
