from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oneway import store
from oneway.errors import StoreError
from oneway.store.catalogue import find_runs
from oneway.testing.records import make_record

RECORD = make_record(config={"num_rounds": 2})
HUGE = 10**400


def with_summary(folder: Path, **changes: object) -> Path:
    store.save(RECORD, folder)
    file = folder / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return folder


def with_array(folder: Path, name: str, array: Any) -> Path:
    store.save(RECORD, folder)
    with np.load(folder / "arrays.npz") as stored:
        arrays = dict(stored)
    np.savez(folder / "arrays.npz", **(arrays | {name: array}))
    return folder


def claims_much(file: Path) -> None:
    header = io.BytesIO()
    said = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(header, said)
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("loss_sums", "sample_counts"):
            archive.writestr(f"{name}.npy", header.getvalue())


def with_byte(offset: int, value: int) -> Callable[[Path], None]:
    """Sets a byte of the first entry in the archive's table of contents."""

    def change(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[content.find(b"PK\x01\x02") + offset] = value
        file.write_bytes(bytes(content))

    return change


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(claims_much, id="claims terabytes"),
        pytest.param(with_byte(8, 1), id="encrypted"),
        pytest.param(with_byte(10, 99), id="unknown compression"),
    ],
)
def test_an_archive_that_cannot_be_read_is_damage(tmp_path, damage):
    store.save(RECORD, tmp_path / "run")
    damage(tmp_path / "run" / "arrays.npz")
    for read in (store.load, store.load_losses):
        with pytest.raises(StoreError, match="run is damaged"):
            read(tmp_path / "run")


@pytest.mark.parametrize(
    "array",
    [
        np.array(["1", "2"]),
        np.array([b"1", b"2"]),
        np.array([1, 2], "datetime64[s]"),
        np.array([1j, 2j]),
        np.array([True, False]),
        np.zeros(2, [("part", "f8")]),
    ],
    ids=lambda array: array.dtype.kind,
)
def test_losses_that_are_no_numbers_are_damage(tmp_path, array):
    with_array(tmp_path / "run", "loss_sums", array)
    for read in (store.load, store.load_losses):
        with pytest.raises(StoreError, match="loss_sums"):
            read(tmp_path / "run")


@pytest.mark.parametrize("value", [np.nan, np.inf, -1])
def test_counts_that_count_nothing_are_damage(tmp_path, value):
    with_array(tmp_path / "run", "sample_counts", np.array([2, value]))
    for read in (store.load, store.load_losses):
        with pytest.raises(StoreError, match="sample_counts"):
            read(tmp_path / "run")


def test_losses_may_be_infinite(tmp_path):
    with_array(tmp_path / "run", "loss_sums", np.array([np.inf, np.nan]))
    assert store.load(tmp_path / "run").num_rounds == 2
    store.load_losses(tmp_path / "run")


@pytest.mark.parametrize("name", ["config", "seconds", "complete", "algorithm", "other"])
def test_an_array_never_takes_the_place_of_something_else(tmp_path, name):
    with_array(tmp_path / "run", name, np.ones(2))
    with pytest.raises(StoreError, match=f"arrays.npz holds '{name}'"):
        store.load(tmp_path / "run")


@pytest.mark.parametrize(
    "changes",
    [
        {"seconds": None},
        {"seconds": "long"},
        {"seconds": [1]},
        {"seconds": HUGE},
        {"config": None},
        {"config": [1]},
        {"versions": "new"},
        {"algorithm": ["ops"]},
        {"complete": "no"},
    ],
    ids=lambda changes: str(changes)[:30],
)
def test_a_summary_with_wrong_types_is_listed_and_not_loaded(tmp_path, changes):
    with_summary(tmp_path / "run", **changes)
    assert [entry.name for entry in find_runs(tmp_path)] == ["run"]
    with pytest.raises(StoreError, match="run is damaged"):
        store.load(tmp_path / "run")


def test_a_lab_with_huge_numbers_is_listed_without_them(tmp_path):
    (tmp_path / "task.toml").touch()
    result = {"seconds": HUGE, "average_loss": {"together": HUGE}}
    (tmp_path / "result.json").write_text(json.dumps(result))
    (entry,) = find_runs(tmp_path)
    assert (entry.kind, entry.seconds, entry.average_loss) == ("lab", None, None)


def test_halves_of_letters_are_replaced(tmp_path):
    with_summary(tmp_path / "run", algorithm="\ud800", config={"\udfff": ["\ud800 \U0001f600"]})
    (entry,) = find_runs(tmp_path)
    assert entry.algorithm == "?"
    assert store.load(tmp_path / "run").config == {"?": ["? \U0001f600"]}


@pytest.mark.parametrize("kind", ["{receivers", "{0}", "%s", "a" * 500, "\0"])
def test_a_graph_of_any_name_has_words(tmp_path, kind):
    with_summary(tmp_path / "run", config={"graph": {"graph": kind}})
    (entry,) = find_runs(tmp_path)
    assert entry.problem == ""
    assert entry.graph.startswith(kind[:60])
