"""Five extensions of a user's own package, one file each, used everywhere without a change in src.

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
PATH = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
PATIENCE = 300.0
LEARNING = (
    "--model", "huber", "--options", "huber.delta=0.5", "--method", "rmsprop",
    "--step", "gentle", "--learning-rate", "0.5",
)  # fmt: skip


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
    assert found["config"]["algorithm"] == "rmsprop"
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
    assert (config["algorithm"], config["step"]["name"]) == ("rmsprop", "gentle")
    assert config["model"]["delta"] == 0.5
    assert config["num_nodes"] == 3
    assert found["accuracy"] is None


def test_real_peers_of_a_lab_use_them_over_a_transport_of_ones_own(tmp_path):
    found = json.loads(
        oneway(
            "lab", "--data", "dunes", "--nodes", 3, "--samples", 60, "--rate", 40, *LEARNING,
            "--transport", "udp", "--out", "lab", "--json", cwd=tmp_path,
        )
    )  # fmt: skip
    assert found["audit"]["exact"], found
    assert [peer["samples"] for peer in found["peers"]] == [60] * 3
    peer_toml = (tmp_path / "lab" / "peer0" / "peer.toml").read_text()
    task_toml = (tmp_path / "lab" / "task.toml").read_text()
    assert 'transport = "udp"' in peer_toml
    assert all(
        word in task_toml for word in ('"rmsprop"', '"huber"', '"gentle"', "[options.huber]")
    )
    for name in ("peer0", "peer1", "peer2"):
        memory = read_snapshot(tmp_path / "lab" / name / "peer.sqlite").memory
        own = [part for part in memory if not part.startswith("batch.")]
        assert own == ["squares"]  # no other method keeps it
        assert memory["squares"].max() > 1.5
    # The simulator mixes once a round, real peers by time: how many samples lie between two pushes
    # depends on how busy the machine is. Few pushes are like learning alone, many like lockstep
    # (which of the two is better depends on the data); the margin is for what comes late.
    losses = found["average_loss"]
    least, most = sorted([losses["alone"], losses["simulated"]])
    assert 0.8 * least <= losses["together"] <= 1.25 * most


def test_a_peer_that_was_stopped_remembers_what_its_method_keeps_to_itself(tmp_path):
    script = """
import oneway as ow
from extras import udp
from oneway.task.task import Task
from oneway.peer.home.home import Home
from pathlib import Path

task = Task.of(
    ow.streams.load("dunes"),
    model="huber",
    method="rmsprop",
    samples_per_push=1,
    privacy=ow.Privacy(unit="none"),
)
Path("task.toml").write_text(task.to_toml())
Home.create(Path("alice"), "alice", Path("task.toml"), "127.0.0.1:1")
Path("alice/peer.toml").write_text(Path("alice/peer.toml").read_text().replace(":1\\"", ":7701\\""))
sample = {"wind": 12.0, "moisture": 0.4, "distance": 80.0}
peer = ow.Peer("alice", transport=udp.listen_udp)
peer.learn_one(sample, 7.0)
before = peer.node.snapshot.memory["squares"]
peer.close()
peer = ow.Peer("alice", transport=udp.listen_udp)
after = peer.node.snapshot.memory["squares"]
peer.close()
assert before.max() > 1.0
assert (before == after).all()
print(peer.predict_one(sample))
"""
    assert float(run("-c", script, cwd=tmp_path)) > 0


def test_the_transport_keeps_the_promise_of_transports(tmp_path):
    script = """
import asyncio, hashlib, time
from extras.udp import listen_udp
from oneway.testing import check_transport
from oneway.transport import ConnectionLimits

class World:
    max_frame = 10_000

    async def start(self, name, address=None):
        secret = hashlib.sha256(name.encode()).digest()
        limits = ConnectionLimits(max_frame=self.max_frame)
        return listen_udp(secret, address or "127.0.0.1:0", limits=limits, clock=time.monotonic)

    async def pass_time(self):
        await asyncio.sleep(0.01)

asyncio.run(check_transport(World))
print("kept")
"""
    assert run("-c", script, cwd=tmp_path) == "kept\n"


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
