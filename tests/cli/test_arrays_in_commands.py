"""Arrays through the commands: from a .npy file to a task, a simulation and a peer that learns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from oneway.peer.home.free_address import free_address
from oneway.peer.store.store import read_snapshot
from oneway.tables.arrays import open_arrays, save_arrays

SHAPE = (1, 5, 5)


@pytest.fixture
def images(here: Path) -> Path:
    rng = np.random.default_rng(5)
    labels = np.arange(120) % 2
    pixels = rng.integers(0, 100, (120, *SHAPE)) + 150 * labels[:, None, None, None]
    save_arrays(here / "images.npy", pixels.astype(np.uint8), np.array(["no", "yes"])[labels])
    return here / "images.npy"


def test_a_peer_learns_every_image_once_and_predicts_one(oneway, images, here):
    flags = ("--privacy", "none", "--samples-per-push", 1, "--out", "task.toml")
    assert oneway("peer", "task", images, *flags).code == 0
    address = free_address(here)
    made = oneway("peer", "init", "ada", "--task", "task.toml", "--listen", address)
    assert made.code == 0, made.err
    run = ("peer", "run", "--data", images, "--until-done")
    assert oneway(*run).code == 0
    assert read_snapshot(here / "peer.sqlite").journal.samples == 120
    again = oneway(*run)
    assert again.code == 0
    assert "nothing new" in again.err
    assert read_snapshot(here / "peer.sqlite").journal.samples == 120
    bright = json.dumps(np.full(SHAPE, 220).tolist())
    said = oneway("peer", "predict", f"features={bright}", "--json").json
    assert said["prediction"] == "yes"
    assert oneway("peer", "predict", "features=[1, 2]").code == 2


def test_a_simulation_reads_them_and_a_deal_writes_them(oneway, images, here):
    told = ("--data", images, "--nodes", 4, "--classes-per-node", 1, "--json")
    result = oneway("simulate", *told)
    assert result.code == 0, result.err
    assert result.json["average_loss"] > 0
    result = oneway("data", "deal", images, "--owner", "label", "--out", "dealt", "--json")
    assert result.code == 0
    assert set(result.json["samples"].values()) == {60}
    rows = open_arrays(here / "dealt" / "yes.npy")
    assert (rows.shape, rows.features[:].dtype) == (SHAPE, np.uint8)
    assert set(rows.labels) == {"yes"}
    assert oneway("data", "deal", images, "--owner", "label", "--out", "dealt", "--force").code == 0
