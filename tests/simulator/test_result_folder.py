"""Finished runs in a folder: what is whole and its own is taken, all else is computed again."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ConfigError, StoreError
from oneway.paper.run_grid import Cell, CellFolder
from oneway.simulator import sweep as sweeps
from oneway.simulator.result_folder import ResultFolder, key_of, whole
from oneway.simulator.sweep import Trial, sweep
from oneway.task.assembly import assemble
from oneway.task.privacy import NO_PRIVACY
from oneway.task.settings import Settings

FEW = Settings(data="synthetic", nodes=5, rounds=40, privacy=NO_PRIVACY, seed=3)
GRID = {"rates": ("auto", 0.3), "methods": ("relay", "local"), "seeds": (1, 2), "jobs": 1}
TRIAL = Trial("relay", "auto", 7, math.inf, None, 0.1, 0.2)
floats = st.floats(allow_nan=False)


class StoppedError(Exception):
    """An interruption that pytest takes for none of its own."""


@given(
    st.builds(
        Trial, st.text(), st.one_of(floats, st.text()), st.integers(), floats,
        st.none() | floats, floats, floats,
    )
)  # fmt: skip
def test_every_trial_comes_back_to_the_last_bit(trial):
    memory = ResultFolder(None, Trial)
    assert memory.read(memory.written(trial, "k"), "k") == trial


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "[1]",
        lambda _: "null",
        lambda _: "5",
        lambda _: '"x"',
        lambda _: "true",
        lambda _: "[" * 100_000,
        lambda text: text.replace("0.1", "0.3"),
        lambda _: "\x00\xff",
        lambda text: text.replace('"relay"', "3"),
        lambda text: text.replace("Infinity", '"large"'),
        lambda text: text.replace('"seed"', '"seeds"'),
        lambda text: text.replace('"a"', '"b"'),
    ],
)
def test_what_is_damaged_or_of_another_run_is_not_there(tmp_path, damage):
    memory = ResultFolder(tmp_path, Trial)
    memory.put("a", TRIAL)
    assert memory.get("a") == TRIAL
    [path] = tmp_path.iterdir()
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
    assert memory.get("a") is None
    memory.put("a", TRIAL)
    assert memory.get("a") == TRIAL


def test_no_single_flipped_bit_changes_a_result():
    memory = ResultFolder(None, Trial)
    content = memory.written(TRIAL, "a")
    for place in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        with suppress(ValueError):
            assert memory.read(bytes(flipped), "a") == TRIAL, bytes(flipped)


def test_files_of_before_had_no_checksum_and_are_read():
    memory = ResultFolder(None, Trial)
    stored = json.loads(memory.written(TRIAL, "a"))
    for gone in ("checksum", "key"):
        del stored[gone]
        assert memory.read(json.dumps(stored).encode(), "a") == TRIAL


def test_a_link_to_itself_is_replaced(tmp_path):
    memory = ResultFolder(tmp_path, Trial)
    (tmp_path / "a.json").symlink_to(tmp_path / "a.json")
    assert memory.get("a") is None
    memory.put("a", TRIAL)
    assert memory.get("a") == TRIAL


def test_a_cell_that_is_no_archive_is_not_there(tmp_path):
    memory = CellFolder(tmp_path, Cell)
    memory.put("a", Cell(*(np.ones(2) for _ in range(5)), 0.25))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[8] = content[content.index(b"PK\x01\x02") + 10] = 99
    (tmp_path / "a.npz").write_bytes(content)
    assert memory.get("a") is None


def test_a_cell_is_its_own(tmp_path):
    memory = CellFolder(tmp_path, Cell)
    cell = Cell(*(np.full(2, np.inf) for _ in range(5)), 0.25)
    memory.put("a", cell)
    found = memory.get("a")
    assert found.adversarial_share == 0.25
    np.testing.assert_array_equal(found.losses, cell.losses)
    (tmp_path / "a.npz").rename(tmp_path / "b.npz")
    assert memory.get("b") is None


def test_a_thing_that_is_known_by_its_place_in_memory_is_not_remembered(tmp_path):
    assert key_of({"method": repr(lambda: 0)}) == ""
    assert len(key_of({"method": "relay"})) == 24
    memory = ResultFolder(tmp_path, Trial)
    memory.put("", TRIAL)
    assert memory.get("") is None
    assert not list(tmp_path.iterdir())


def test_a_sweep_that_was_stopped_goes_on_where_it_stopped(tmp_path, monkeypatch):
    ticks = []

    def stop():
        ticks.append(1)
        if len(ticks) == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        sweep(FEW, folder=tmp_path, tick=stop, **GRID)
    assert len(list(tmp_path.iterdir())) == 3
    made, real = [], sweeps._trial
    monkeypatch.setattr(sweeps, "_trial", lambda *args: (made.append(args[0]), real(*args))[1])
    ticks.clear()
    found = sweep(FEW, folder=tmp_path, tick=lambda: ticks.append(1), **GRID)
    assert (len(made), len(ticks)) == (5, 8)
    fresh = sweep(FEW, **GRID)
    assert [replace(it, seconds=0.0) for it in found] == [replace(it, seconds=0.0) for it in fresh]
    made.clear()
    assert sweep(FEW, folder=tmp_path, **GRID) == found
    assert made == []


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": 6},
        {"rounds": 39},
        {"max_receivers": 2},
        {"step": "paper"},
        {"l2": 0.5},
        {"engine": "reference"},
        {"transforms": ("momentum",)},
        {"seed": 4},
    ],
)
def test_a_run_with_another_setting_is_another_run(change):
    assert key(FEW) == key(replace(FEW))
    assert key(FEW) != key(replace(FEW, **change))


def key(settings):
    parts = assemble(replace(settings, learning_rate=0.1))
    described = sweeps._described(parts)
    return key_of({**described, "method": parts.method.describe()})


def test_one_changed_number_of_the_table_is_another_run():
    parts = assemble(FEW)
    features = parts.table.features.copy()
    features[-1, -1] += 1.0
    other = assemble(FEW, replace(parts.table, features=features))
    assert sweeps._described(parts) != sweeps._described(other)


def test_half_a_run_is_never_remembered():
    parts = assemble(FEW)
    run = ow.simulate(parts.method, parts.model, parts.stream, parts.graph)
    assert whole(run) is run
    with pytest.raises(KeyboardInterrupt):
        whole(replace(run, record=replace(run.record, complete=False)))


def test_a_folder_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        sweep(FEW, folder=tmp_path / "file" / "runs", **GRID)
    for wrong in (3, ""):
        with pytest.raises(ConfigError, match=f"resume is {wrong!r}"):
            ow.sweep("synthetic", resume=wrong)
    assert json.loads(ResultFolder(None, Trial).written(TRIAL, "a"))["key"] == "a"
