from __future__ import annotations

import io
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from builders import make_record
from npz_bombs import ABSURD, bomb, claiming

from oneway import store
from oneway.errors import StoreError
from oneway.records import RunRecord


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


def test_a_run_replaces_a_run_whole_and_no_file_of_the_user(tmp_path, record):
    store.save(record, tmp_path / "run")
    newer = replace(record, method="col", comparator_sums=None)
    store.save(newer, tmp_path / "run")
    assert_same(store.load(tmp_path / "run"), newer)
    assert set(everything_in(tmp_path)) == {"run/run.json", "run/arrays.npz"}
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"notes\.txt"):
        store.save(record, tmp_path / "run")
    assert_same(store.load(tmp_path / "run"), newer)


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


def torn(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    place = content.rindex(np.array([2.5]).tobytes())
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def pickled(_: bytes) -> bytes:
    file = io.BytesIO()
    np.savez(file, masses=np.array([{"not": "a number"}], dtype=object))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("arrays.npz", lambda _: b""),
        ("arrays.npz", torn),
        ("arrays.npz", flipped),
        ("arrays.npz", pickled),
        ("run.json", lambda _: b""),
        ("run.json", torn),
        ("run.json", lambda _: b"[]"),
        ("run.json", lambda _: b'{"format": 1}'),
        ("run.json", lambda _: b"\xff"),
    ],
)
def test_damage_is_named_and_nothing_is_unpickled(tmp_path, record, name, damage):
    file = store.save(record, tmp_path / "run") / name
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(StoreError, match="run is damaged"):
        store.load(tmp_path / "run")


def test_a_run_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path, record):
    path = bomb(store.save(record, tmp_path / "run") / "arrays.npz")
    with pytest.raises(StoreError, match=r"arrays\.npz has 2\..* MB .* 2\.15 GB") as raised:
        store.load(tmp_path / "run")
    assert str(path) in raised.value.reason


@pytest.mark.parametrize("shape", ABSURD)
def test_a_run_that_claims_an_absurd_shape_is_named(tmp_path, record, shape):
    claiming(store.save(record, tmp_path / "run") / "arrays.npz", shape)
    with pytest.raises(StoreError, match="run is damaged"):
        store.load(tmp_path / "run")


def test_a_compressed_run_is_read(tmp_path, record):
    path = store.save(record, tmp_path / "run") / "arrays.npz"
    with np.load(path) as arrays:
        np.savez_compressed(path, **dict(arrays))
    assert_same(store.load(tmp_path / "run"), record)


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
