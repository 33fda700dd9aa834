"""A peer learns from arrays: files of them, tables, single images as lists."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain import PLAIN

import oneway as ow
from oneway.errors import DataError, MissingDataError
from oneway.peer.sample_stream import SampleStream
from oneway.peer.samples import has_place, rows
from oneway.tables import Array, Number
from oneway.tables.arrays import save_arrays
from oneway.tables.rows import Row
from oneway.task.task import Task

PATIENCE = 240.0
SHAPE = (1, 3, 4)
CELLS = np.random.default_rng(3).integers(0, 256, (150, *SHAPE), dtype=np.uint8)
LABELS = np.array(["cat", "dog", "owl"])[np.arange(150) % 3]
TASK = Task(
    "softmax",
    "animal",
    (Array("image", SHAPE, 128.0, 64.0),),
    ("cat", "dog", "owl"),
    **PLAIN,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_arrays(tmp_path / "a.npy", CELLS, LABELS)
    return tmp_path / "a.npy"


def read(path: Path, **options: Any) -> list[Row]:
    async def collect() -> list[Row]:
        async with asyncio.timeout(PATIENCE):
            options.setdefault("task_columns", ("animal", "image"))
            return [item async for item in rows(str(path), **options)]

    return asyncio.run(collect())


def test_every_row_comes_with_its_label_under_the_names_of_the_task(path):
    found = read(path)
    assert [row.values["animal"] for row in found] == LABELS.tolist()
    np.testing.assert_array_equal([row.values["image"] for row in found], CELLS)
    assert [row.position.num_rows for row in found] == list(range(1, 151))


@pytest.mark.parametrize("count", [1, 63, 64, 65, 149, 150])
def test_a_stream_goes_on_after_the_last_row_that_was_used(path, count):
    last = read(path)[count - 1].position
    assert has_place(str(path), last)
    found = read(path, skip=last)
    assert [row.line for row in found] == list(range(count + 1, 151))
    for row in found:
        np.testing.assert_array_equal(row.values["image"], CELLS[row.line - 1])


def test_a_source_that_does_not_suit_is_named_before_the_peer_wakes(path, tmp_path):
    stream = SampleStream(str(path))
    stream.check()
    stream.check_columns(TASK)
    flat = Task("ridge", "y", (Array("x", shape=(12,)),), **PLAIN)
    for other in (flat, Task("ridge", "y", (Number("x"), Number("z")), **PLAIN)):
        with pytest.raises(DataError, match=r"a\.npy holds arrays of 1 x 3 x 4"):
            stream.check_columns(other)
    with pytest.raises(MissingDataError):
        SampleStream(str(tmp_path / "b.npy")).check()
    with pytest.raises(DataError, match="is a folder"):
        SampleStream(str(tmp_path)).check()
    with pytest.raises(DataError, match="follow"):
        read(path, follow=True)
    with pytest.raises(DataError, match=r"a\.npy.*'ticket'"):
        read(path, task_columns=("animal", "image", "ticket"))
    (tmp_path / "c.pkl").write_bytes(b"")
    with pytest.raises(DataError, match="pickle"):
        SampleStream(str(tmp_path / "c.pkl")).check()


def test_a_peer_learns_the_same_from_a_table_from_arrays_and_from_lists(tmp_path):
    pairs = list(zip(CELLS, LABELS, strict=True))
    samples = {
        "table": ow.Table.from_arrays(
            CELLS, LABELS, task="classes", feature_names=["image"], label_name="animal",
            origin={"kind": "arrays", "label": "animal"},
        ),
        "rows": [{"image": cells, "animal": label} for cells, label in pairs],
        "lists": [({"image": cells.tolist()}, str(label)) for cells, label in pairs],
    }  # fmt: skip
    losses = {}
    for name, given in samples.items():
        with ow.Peer.create(tmp_path / name, TASK) as peer:
            losses[name] = peer.learn_many(given)
            assert peer.node.snapshot.journal.samples == 150
            said = peer.predict_one({"image": CELLS[0].tolist()})
            assert said in TASK.classes
            assert peer.predict_one({"image": CELLS[0]}) == said
            with pytest.raises(DataError, match="'image'"):
                peer.learn_one({"image": CELLS[0][0]}, "cat")
    np.testing.assert_array_equal(losses["rows"], losses["lists"])
    np.testing.assert_allclose(losses["table"], losses["rows"], rtol=1e-6)
