"""Peers with a torch task: from init to prediction and export, alone and over real processes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.datasets import load
from oneway.errors import ConfigError, DataError, TaskError
from oneway.export.json_format import from_json
from oneway.lab.problem import Problem
from oneway.lab.run import Conditions, run_lab
from oneway.models import examples
from oneway.peer.home.free_address import free_address
from oneway.peer.home.home import Home
from oneway.peer.store.store import read_snapshot
from oneway.tables import npy_arrays
from oneway.tables.raw_cells import raw_arrays
from oneway.task.privacy import NO_PRIVACY
from oneway.task.task import Task

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
    npy_arrays.save(here / "images.npy", pixels.astype(np.uint8), np.array(list("abc"))[labels])
    told = ("--model", f"torch:{NETWORK}", "--options", f"torch.arguments={SMALL}")
    flags = ("--privacy", "none", "--samples-per-push", 4, "--out", "task.toml")
    made = oneway("peer", "task", "images.npy", *told, *flags)
    assert made.code == 0, made.err
    return here / "task.toml"


@pytest.fixture
def learned(oneway, task: Path, here: Path) -> Path:
    made = oneway("peer", "init", "ada", "--task", task, "--listen", free_address(here))
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
    [feature] = Task.read(learned / "task.toml").features
    session = onnxruntime.InferenceSession("a.onnx", providers=["CPUExecutionProvider"])
    from_file = from_json(Path("a.json").read_bytes())
    for row, label in enumerate("abc"):
        image = bright(row)
        said = oneway("peer", "predict", f"features={json.dumps(image.tolist())}", "--json").json
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


@pytest.mark.usefixtures("learned")
def test_a_sample_is_predicted_from_a_file(oneway):
    image = pytest.importorskip("PIL.Image", reason="the extra images is not installed")
    pixels = bright(1).astype(np.uint8)
    np.save("one.npy", pixels)
    np.save("batch.npy", pixels[None])
    image.fromarray(pixels[0]).save("one.png")
    image.fromarray(np.kron(pixels[0], np.ones((8, 8), np.uint8))).convert("RGB").save("large.bmp")
    told = f"features={json.dumps(pixels.tolist())}"
    expected = oneway("peer", "predict", told, "--json").json
    assert expected["prediction"] == "b"
    for given in ("one.npy", "batch.npy", "one.png", "features=one.png"):
        said = oneway("peer", "predict", given, "--json")
        assert said.json == expected, given
        assert ("white is taken for 255" in said.err) == given.endswith("png")
    assert oneway("peer", "predict", "large.bmp", "--json").json["prediction"] == "b"
    dark = oneway("peer", "predict", "one.png", "--white", "51", "--json")
    told = f"features={json.dumps((pixels / 5).tolist())}"
    assert dark.json == oneway("peer", "predict", told, "--json").json
    assert dark.err == ""
    oneway("peer", "predict", "one.npy", "one.png").check_refused(DataError, "twice")
    oneway("peer", "predict", "gone.png").check_refused(DataError, "gone.png")
    oneway("peer", "predict", "task.toml").check_refused(DataError, "task.toml")


def test_a_library_learns_many_images_and_predicts_by_the_settled_model(learned):
    with ow.Peer(learned) as peer:
        before = peer.node.snapshot.journal.samples
        samples = [({"features": bright(n % 3)}, "abc"[n % 3]) for n in range(12)]
        losses = peer.learn_many(samples)
        assert losses.shape == (12,)
        assert np.isfinite(losses).all()
        assert peer.node.snapshot.journal.samples == before + 12
        assert peer.predict_one({"features": bright(1)}) == "b"
        assert sum(peer.predict_proba_one({"features": bright(1)}).values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("changed", "culprit"),
    [
        ((NETWORK, "oneway.models.examples:gone"), "gone"),
        (("hidden = 6", "hidden = 7"), "other shapes"),
        (("pixels = 16", "pixels = 9"), "other shapes"),
        ((r'hash = "(.*)-.*"', r'hash = "\1-0000000000000000"'), "other values"),
    ],
)
def test_a_site_without_the_module_of_the_task_is_told_so(oneway, task, changed, culprit):
    old, new = changed
    text, count = re.subn(old, new, task.read_text())
    assert count == 1
    task.write_text(text)
    made = oneway("peer", "init", "bob", "--task", task)
    if made.code == 0:  # told when it is to run at the latest
        made = oneway("peer", "run", "--data", "images.npy", "--until-done")
    made.check_refused((ConfigError, TaskError), culprit)


def test_samples_of_another_shape_are_skipped_and_counted(oneway, task, here):
    assert oneway("peer", "init", "ada", "--task", task, "--listen", free_address(here)).code == 0
    rows = [{"features": bright(0).tolist(), "label": "a"}] * 3
    rows += [{"features": [1, 2, 3], "label": "a"}, {"features": bright(0).tolist(), "label": "z"}]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert oneway("peer", "run", "--data", "rows.jsonl", "--until-done").code == 0
    journal = read_snapshot(here / "peer.sqlite").journal
    assert (journal.samples, journal.skipped) == (3, 2)


def test_samples_without_a_gradient_are_skipped_and_counted(oneway, here):
    """The root of the first column has none where that lies below its mean."""
    rows = "".join(f"{n % 2},{n % 3},{n % 5},{n % 7},{['no', 'yes'][n % 2]}\n" for n in range(40))
    Path("rows.csv").write_text(f"a,b,c,d,y\n{rows}")
    numbers = [flag for name in "abcd" for flag in ("--numeric", name)]
    flags = ("--label", "y", "--model", "torch:nets:root", "--privacy", "none", *numbers)
    made = oneway("peer", "task", "rows.csv", *flags, "--out", "task.toml")
    assert made.code == 0, made.err
    made = oneway("peer", "init", "ada", "--task", "task.toml", "--listen", free_address(here))
    assert made.code == 0, made.err
    assert oneway("peer", "run", "--data", "rows.csv", "--until-done").code == 0
    journal = read_snapshot(here / "peer.sqlite").journal
    assert (journal.samples, journal.skipped) == (20, 20)
    assert "gradient" in Home.open(here).status().last_skipped


def test_two_real_peers_learn_digits_together(oneway, tmp_path: Path):
    table = load("digits")
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 0)], 2)
    problem = Problem.deal(
        table,
        graph,
        samples=160,
        seed=1,
        model="torch",
        options={"torch": {"module": NETWORK, "arguments": {"hidden": 16}}},
        privacy=NO_PRIVACY,
        samples_per_push=4,
    )
    # Slowly enough for steps to arrive before the next ones: docs/neural-networks.md.
    result = run_lab(tmp_path / "lab", problem, Conditions(rate=20.0))
    assert result.audit.is_exact, result.audit.sentences
    assert [peer.samples for peer in result.peers] == [160, 160]
    alone = [peer.alone_accuracy for peer in result.peers]
    assert min(peer.accuracy for peer in result.peers) > max(alone) > 0.3
    assert any("no peer has learned from" in sentence for sentence in result.sentences)
    [row] = raw_arrays(table, slice(1500, 1501), table.encoder)
    told = f"image={json.dumps(row.tolist())}"
    said = oneway("peer", "predict", told, "--home", tmp_path / "lab" / "peer0", "--json").json
    assert sum(said["probabilities"].values()) == pytest.approx(1.0)
