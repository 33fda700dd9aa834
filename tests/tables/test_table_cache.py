from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest

from oneway.errors import DataError
from oneway.streams import Table, cache_folder, load
from oneway.tables import cache


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "x.csv"
    rows = [
        f"{a:.17g},{b:.17g},w{i % 70},{i % 2}" for i, (a, b) in enumerate(rng.normal(size=(500, 2)))
    ]
    path.write_text("\n".join(["a,b,who,y", *rows]))
    return path


def same(one: Table, other: Table) -> None:
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.means, other.means)
    np.testing.assert_array_equal(one.scales, other.scales)
    assert one.feature_names == other.feature_names
    assert one.label_values == other.label_values
    assert one.origin == other.origin
    assert one.name == other.name
    assert one.notes == other.notes
    assert one.encoding == other.encoding
    assert list(one.columns) == list(other.columns)
    for name, column in one.columns.items():
        assert column.names == other.columns[name].names
        np.testing.assert_array_equal(column.codes, other.columns[name].codes)


def entry_of(folder: Path) -> Path:
    (entry,) = folder.iterdir()
    return entry


@pytest.mark.parametrize("block_bytes", [100, 2**20])
def test_the_mapped_table_equals_the_one_in_memory_bit_for_bit(
    csv: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", block_bytes)
    direct = load(csv, label="y")
    monkeypatch.setenv("ONEWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("oneway.tables.cache.CACHE_ABOVE_BYTES", 0)
    built, mapped = load(csv, label="y"), load(csv, label="y")
    same(direct, built)
    same(direct, mapped)
    assert isinstance(mapped.features.base, np.ndarray)
    assert not mapped.features.flags.writeable
    assert mapped.features.flags.c_contiguous
    np.testing.assert_array_equal(
        direct.deal(5, 0.5, seed=1).rows, mapped.deal(5, 0.5, seed=1).rows
    )


def test_the_file_is_read_once(csv: Path, cache_everything: Path) -> None:
    load(csv, label="y")
    before = (entry_of(cache_everything) / "features.f32").stat()
    load(csv, label="y")
    after = (entry_of(cache_everything) / "features.f32").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_small_files_are_not_cached(csv: Path, own_cache: Path) -> None:
    load(csv, label="y")
    assert list(own_cache.iterdir()) == []


def test_other_options_are_another_entry(csv: Path, cache_everything: Path) -> None:
    assert load(csv, label="y").num_features == 2
    assert load(csv, label="y", features=["b"]).num_features == 1
    assert load(csv, label="y", standardise=False).means.tolist() == [0, 0]
    assert load(csv, label="y", task="classes").labels.tolist()[:2] == [0, 1]
    assert len(list(cache_everything.iterdir())) == 4


def test_a_changed_file_is_read_again_and_replaces_its_entry(
    csv: Path, cache_everything: Path
) -> None:
    assert len(load(csv, label="y")) == 500
    csv.write_text(csv.read_text() + "\n0,0,w0,1")
    assert len(load(csv, label="y")) == 501
    os.utime(csv, ns=(1, 1))
    assert load(csv, label="y").origin["modified_ns"] == 1
    entry_of(cache_everything)


@pytest.mark.parametrize("file", ["features.f32", "labels.f32", "codes-0.i32", "table.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_a_damaged_entry_is_rebuilt(
    csv: Path, cache_everything: Path, file: str, damage: str
) -> None:
    whole = load(csv, label="y")
    path = entry_of(cache_everything) / file
    content = bytearray(path.read_bytes())
    del whole
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        content[len(content) // 2] ^= 0x80
        path.write_bytes(content)
    again = load(csv, label="y")
    same(again, load(csv, label="y"))
    assert len(again) == 500
    assert abs(float(again.features.mean())) < 1e-6
    entry_of(cache_everything)


def test_a_json_file_of_another_shape_is_rebuilt(csv: Path, cache_everything: Path) -> None:
    load(csv, label="y")
    for content in ("[]", "{}", '{"format": 1}', '"x"'):
        (entry_of(cache_everything) / "table.json").write_text(content)
        assert len(load(csv, label="y")) == 500


def test_a_failure_leaves_nothing_behind(tmp_path: Path, cache_everything: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x,y\n1,0\ninf,1\n")
    with pytest.raises(DataError, match="line 3, column 'x' is inf"):
        load(path, label="y")
    assert list(cache_everything.iterdir()) == []


def test_what_a_killed_process_left_is_removed_after_a_day(
    csv: Path, cache_everything: Path
) -> None:
    for name, modified in (("old.part", 1), ("new.part", None)):
        (cache_everything / name).mkdir(parents=True)
        if modified:
            os.utime(cache_everything / name, (modified, modified))
    load(csv, label="y")
    assert not (cache_everything / "old.part").exists()
    assert (cache_everything / "new.part").exists()


@pytest.mark.usefixtures("cache_everything")
def test_a_cache_that_cannot_be_written_is_named(
    csv: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("ONEWAY_CACHE", str(tmp_path / "a file" / "cache"))
    with pytest.raises(DataError, match=r"cannot be written .*ONEWAY_CACHE"):
        load(csv, label="y")


def test_the_cache_follows_the_users_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ONEWAY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "oneway" / "tables"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "oneway" / "tables"


def load_at_the_barrier(path: Path, barrier: Barrier, answers: Queue[str]) -> None:
    cache.CACHE_ABOVE_BYTES = 0
    for _ in range(8):
        barrier.wait(timeout=60)
        try:
            answers.put(f"{len(load(path, label='y'))} rows")
        except BaseException as error:
            answers.put(repr(error))
        barrier.wait(timeout=60)  # nobody is reading any more
        with suppress(FileNotFoundError):
            table = next(cache_folder().glob("*/table.json"), None)
            if table is not None:
                table.write_text("{}")  # a damaged entry, which all of them replace


@pytest.mark.parametrize("damaged", [False, True])
def test_processes_that_load_the_same_new_file_at_once_all_get_it(
    csv: Path, cache_everything: Path, damaged: bool
) -> None:
    if damaged:
        load(csv, label="y")
        (entry_of(cache_everything) / "table.json").write_text("{}")
    context = get_context("spawn")
    barrier, answers = context.Barrier(4), context.Queue()
    processes = [
        context.Process(target=load_at_the_barrier, args=(csv, barrier, answers)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    collected = {answers.get(timeout=60) for _ in range(4 * 8)}
    for process in processes:
        process.join(timeout=60)
    assert collected == {"500 rows"}
    entry_of(cache_everything)


def test_a_valid_entry_of_another_process_stays(csv: Path, cache_everything: Path) -> None:
    load(csv, label="y")
    entry = entry_of(cache_everything)
    origin = json.loads((entry / "table.json").read_text())["origin"]
    before = entry.stat().st_ino
    work = cache_everything / "slower.part"
    shutil.copytree(entry, work)
    cache._put_in_place(work, entry, origin)
    assert entry.stat().st_ino == before
