"""Peers with a torch task: from init to prediction and export, alone and over real processes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from oneway.export.json_format import from_json
from oneway.models import examples
from oneway.peer.home.free_address import free_address
from oneway.peer.home.home import Home
from oneway.peer.store.store import read_snapshot
from oneway.tables.arrays import save_arrays

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

NETWORK = "oneway.models.examples:digits_network"
SHAPE = (1, 4, 4)
SMALL = "{hidden = 6, pixels = 16, classes = 3}"


@pytest.fixture
def task(oneway, here: Path) -> Path:
    """Images of three classes: which row is bright."""
    rng = np.random.default_rng(2)
    labels = np.arange(240) % 3
    pixels = rng.integers(0, 80, (240, *SHAPE))
    pixels[np.arange(240), 0, labels] += 150
    save_arrays(here / "images.npy", pixels.astype(np.uint8), np.array(list("abc"))[labels])
    told = ("--model", f"torch:{NETWORK}", "--options", f"torch.arguments={SMALL}")
    flags = ("--privacy", "none", "--samples-per-push", 4, "--out", "task.toml")
    made = oneway("peer", "task", "images.npy", *told, *flags)
    assert made.code == 0, made.err
    return here / "task.toml"


@pytest.fixture
def learned(oneway, task: Path, here: Path) -> Path:
    told = ("--allow", NETWORK, "--listen", free_address(here))
    made = oneway("peer", "init", "ada", "--task", task, *told)
    assert made.code == 0, made.err
    ran = oneway("peer", "run", "--data", "images.npy", "--until-done")
    assert ran.code == 0, ran.err
    assert read_snapshot(here / "peer.sqlite").journal.samples == 240
    return here


def bright(row: int) -> np.ndarray:
    image = np.full(SHAPE, 40.0)
    image[0, row] = 190.0
    return image


def test_a_peer_learns_a_network_and_its_exports_predict_what_it_predicts(oneway, learned):
    import onnxruntime

    for name, out in (("json", "a.json"), ("state-dict", "a.pt"), ("onnx", "a.onnx")):
        written = oneway("peer", "export", "--format", name, "--out", out)
        assert written.code == 0, written.err
    module = examples.digits_network(hidden=6, pixels=16, classes=3).eval()
    module.load_state_dict(torch.load("a.pt", weights_only=True))
    [feature] = Home.open(learned).task().features
    session = onnxruntime.InferenceSession("a.onnx", providers=["CPUExecutionProvider"])
    from_file = from_json(Path("a.json").read_bytes(), allow=[NETWORK])
    for row, label in enumerate("abc"):
        image = bright(row)
        given = f"features={json.dumps(image.tolist())}"
        said = oneway("peer", "predict", given, "--model", "shared", "--json").json
        assert said["prediction"] == oneway("peer", "predict", given, "--json").json["prediction"]
        assert said["prediction"] == label
        shares = list(said["probabilities"].values())
        scaled = torch.from_numpy((image[None] - feature.center) / feature.scale).float()
        np.testing.assert_allclose(
            torch.softmax(module(scaled), 1)[0].detach().numpy(), shares, atol=1e-5
        )
        by_onnx = session.run(["label", "probabilities"], {"features": image[None]})
        assert by_onnx[0].tolist() == [label]
        np.testing.assert_allclose(by_onnx[1][0], shares, atol=1e-5)
        assert list(from_file.predict_proba_one({"features": image}).values()) == shares
