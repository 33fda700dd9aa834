"""Four extensions of a user's own package, one file each, used everywhere without a change in src.

Everything here runs in processes of its own: what the package registers must not reach other tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oneway.peer.store.store import read_snapshot

HERE = Path(__file__).parent
WORLDS = HERE.parents[1] / "worlds"
PATH = os.pathsep.join([str(HERE), str(WORLDS), *filter(None, [os.environ.get("PYTHONPATH")])])
PATIENCE = 300.0
LEARNING = (
    "--model", "huber", "--options", "huber.delta=0.5", "--method", "rmsprop",
    "--step", "gentle", "--learning-rate", "0.5",
)  # fmt: skip

ALONE = """
import polars as pl
import oneway as ow

losses = []
for name in ("peer0", "peer1", "peer2"):
    alone = ow.Peer.create("alone-" + name, "lab/task.toml", name=name)
    losses.append(alone.learn_many(pl.read_csv("lab/" + name + "/samples.csv")).mean())
    alone.close()
print(sum(losses) / 3)
"""
"""The same samples learned by peers that know nobody."""


def run(*command: object, cwd: Path, plugins: str = "extras") -> str:
    """Run a command with the package on the path; returns what it printed."""
    environment = {**os.environ, "PYTHONPATH": PATH, "ONEWAY_PLUGINS": plugins}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def oneway(*arguments: object, cwd: Path, plugins: str = "extras") -> str:
    return run("-m", "oneway", *arguments, cwd=cwd, plugins=plugins)


def test_they_are_used_from_python(tmp_path):
    script = """
import json
import numpy as np
import oneway as ow
from extras.huber import HuberRegression
from extras.rmsprop import RMSPropPushSum
from oneway.testing import check_method, check_model

table = ow.streams.load("dunes", seed=3)
stream = table.deal(num_nodes=6, seed=1)
graph = ow.TrustGraph.random(num_nodes=6, max_receivers=3, seed=1)
method = RMSPropPushSum(0.5, step="gentle")
check_method(method)
check_model(HuberRegression(delta=0.5))
run = ow.simulate(method, HuberRegression(delta=0.5), stream, graph)
plain = ow.simulate(ow.OnlinePushSum(0.5, step="gentle"), HuberRegression(delta=0.5), stream, graph)
run.save("stored")
print(json.dumps({
    "config": ow.Run.load("stored").record.config,
    "differs": float(np.abs(run.estimates - plain.estimates).max()),
    "losses": [float(run.losses[0]), float(run.losses[-20:].mean())],
    "regret": float(run.regret()[-1]),
}))
"""
    found = json.loads(run("-c", script, cwd=tmp_path))
    assert found["config"]["method"] == "rmsprop"
    assert found["config"]["start_at"] == 1.0
    assert found["config"]["step"] == {"name": "gentle", "power": 0.5}
    assert found["config"]["model"] == {"model": "HuberRegression", "delta": 0.5, "l2": 0.0}
    assert found["config"]["engine"] == "reference"
    assert found["differs"] > 1e-3
    assert found["losses"][1] < 0.5 * found["losses"][0]
    assert 0 < found["regret"] < 6 * 150


def test_they_are_used_from_the_command_line(tmp_path):
    catalogue = json.loads(oneway("data", "list", "--json", cwd=tmp_path))
    assert "dunes" in json.dumps(catalogue)
    help_text = oneway("simulate", "--help", cwd=tmp_path)
    assert all(name in help_text for name in ("rmsprop", "huber", "gentle"))
    found = json.loads(
        oneway("simulate", "--data", "dunes", "--owner", "beach", *LEARNING, "--json", cwd=tmp_path)
    )
    config = found["config"]
    assert (config["method"], config["step"]["name"]) == ("rmsprop", "gentle")
    assert config["model"]["delta"] == 0.5
    assert config["num_nodes"] == 3
    assert found["accuracy"] is None


def test_real_peers_of_a_lab_use_them(tmp_path):
    found = json.loads(
        oneway(
            "lab", "--data", "dunes", "--nodes", 3, "--samples", 60, "--rate", 40, *LEARNING,
            "--privacy", "none", "--samples-per-push", 1, "--out", "lab", "--json", cwd=tmp_path,
        )
    )  # fmt: skip
    assert found["audit"]["exact"], found
    assert [peer["samples"] for peer in found["peers"]] == [60] * 3
    task_toml = (tmp_path / "lab" / "task.toml").read_text()
    assert all(
        word in task_toml for word in ('"rmsprop"', '"huber"', '"gentle"', "[options.huber]")
    )
    for name in ("peer0", "peer1", "peer2"):
        memory = read_snapshot(tmp_path / "lab" / name / "peer.sqlite").memory
        own = [part for part in memory if not part.startswith("batch.")]
        assert own == ["squares"]  # no other method keeps it
        assert (memory["squares"] < 0.5).all()  # it starts at 1, and has decayed
    # Real peers push by time: rarely on a busy machine, which is like learning alone, and more than
    # once a sample on a quiet one, which is better than the simulator's one exchange a round.
    losses, alone = found["average_loss"], float(run("-c", ALONE, cwd=tmp_path))
    assert losses.keys() == {"yours", "base_rate", "simulated"}
    assert losses["simulated"] < 0.5 * alone
    assert losses["yours"] <= 1.25 * alone < 0.5 * losses["base_rate"]


def test_an_installed_package_is_found_by_its_entry_point(tmp_path):
    """What `pip install` leaves behind: metadata with an entry point in our group."""
    metadata = tmp_path / "site" / "extras-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: extras\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[oneway.plugins]\nextras = extras\n")
    environment = {**os.environ, "PYTHONPATH": f"{PATH}{os.pathsep}{metadata.parent}"}
    environment.pop("ONEWAY_PLUGINS", None)
    script = "from oneway.models import MODELS; print('huber' in MODELS)"
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout == "True\n"


@pytest.mark.parametrize("plugin", ["no_such_package", "extras.broken"])
def test_a_plugin_that_cannot_be_imported_is_one_sentence(tmp_path, plugin):
    environment = {**os.environ, "PYTHONPATH": PATH, "ONEWAY_PLUGINS": plugin}
    done = subprocess.run(
        [sys.executable, "-m", "oneway", "simulate", "--data", "synthetic"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert plugin in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
