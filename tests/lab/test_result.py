"""A lab ends as runs: what the peers wrote down, and the simulations on the same samples."""

from __future__ import annotations

import json

import numpy as np
import pytest

import oneway as ow
from oneway import metrics, store
from oneway.lab.problem import Problem
from oneway.lab.result import peers_record
from oneway.lab.run import Conditions, run_lab
from oneway.methods import METHODS
from oneway.peer.learner import Learner
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.incoming import mint
from oneway.protocol.state import PeerState
from oneway.records import RunRecord
from oneway.records.curve import Curve
from oneway.task.task import Feature, Task
from oneway.testing.records import make_record

TASK = Task("logistic", "y", (Feature("x"),), ("no", "yes"), method="ops")


@pytest.fixture
def record():
    """The record of peers with these curves."""

    def make(*curves: Curve, measured=(), classifies: bool = True) -> RunRecord:
        snapshots = [
            Snapshot(mint(PeerState.new(2, node + 1, 1), np.array([float(node), 0.0])))
            for node in range(len(curves))
        ]
        like = make_record(
            correct_counts=[1, 1] if classifies else None,
            config={"model": "the model", "stream": "the stream"},
            versions={"oneway": "0"},
        )
        config = {"rate": 20.0, "task": TASK.fields()}
        return peers_record(
            curves,
            snapshots,
            Learner(TASK),
            measured,
            like,
            config=config,
            seconds=1.5,
            complete=True,
        )

    return make


def test_a_round_is_the_same_sample_of_every_peer(record):
    found = record(
        Curve(samples=3, loss_sums=(1.0, 2.0, 3.0), correct=(1, 0, 1)),
        Curve(samples=1, loss_sums=(5.0,), correct=(0,)),
        Curve(),
    )
    assert found.loss_sums.tolist() == [6.0, 2.0, 3.0]
    assert found.sample_counts.tolist() == [2, 1, 1]
    assert found.correct_counts.tolist() == [1, 0, 1]
    assert metrics.average_loss(found) == pytest.approx(11 / 4)
    assert found.masses.tolist() == [1.0, 1.0, 1.0]
    assert found.numerators[:, 0].tolist() == [0.0, 1.0, 2.0]
    assert found.config == {
        "kind": "lab",
        "algorithm": "ops",
        "rate": 20.0,
        "task": TASK.fields(),
        "model": "the model",
        "stream": "the stream",
        "num_nodes": 3,
        "num_rounds": 3,
    }
    assert (found.seconds, found.complete, found.versions) == (1.5, True, {"oneway": "0"})
    assert (
        record(Curve(samples=1, loss_sums=(1.0,), correct=(0,)), classifies=False).correct_counts
        is None
    )


def test_disagreement_lies_between_what_was_measured_and_ends_as_the_stores_do(record):
    curves = [Curve(samples=8, loss_sums=(1.0,) * 8, correct=(0,) * 8) for _ in range(2)]
    found = record(*curves, measured=[(4.0, 2.0)])
    # The models are (0, 0) and (1, 0) in the end: each half a unit from their mean.
    assert found.disagreement.tolist() == [0.5, 1.0, 1.5, 2.0, 1.5625, 1.125, 0.6875, 0.25]


def test_real_peers_leave_runs_that_say_what_the_result_says(tmp_path):
    table = ow.streams.synthetic(num_samples=4500, num_features=3, seed=1).table
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 2), (2, 0), (0, 2)])
    # More than a curve has groups, so that some hold several samples.
    problem = Problem.deal(table, graph, samples=1100, seed=2, learning_rate=0.2)
    result = run_lab(tmp_path / "lab", problem, Conditions(seed=4))
    result.write(tmp_path / "lab")
    result_file = json.loads((tmp_path / "lab" / "result.json").read_text())
    said = result_file["average_loss"]
    segments = result_file["audit"]["segment_discrepancy"]
    assert segments == {"numerator": [0] * 4, "parcel": [0] * 4, "count": [0]}
    runs = {path.name: store.load(path) for path in (tmp_path / "lab" / "runs").iterdir()}
    assert runs.keys() == {*METHODS, "peers"}
    assert metrics.average_loss(runs["peers"]) == pytest.approx(said["together"], abs=1e-9)
    assert metrics.average_loss(runs["relay"]) == pytest.approx(said["simulated"], abs=1e-12)
    assert metrics.average_loss(runs["local"]) == pytest.approx(said["alone"], abs=1e-12)
    peers = runs["peers"]
    assert peers.sample_counts.tolist() == [3] * 1100
    assert peers.masses.sum() == 3.0
    assert np.isfinite(peers.disagreement).all()
    assert (peers.disagreement >= 0).all()
    assert peers.complete
    # Each alone is computed twice: by the peers themselves, and by the simulator.
    assert metrics.alone_loss(peers) == pytest.approx(said["alone"], rel=1e-9)
    assert metrics.base_loss(peers) == pytest.approx(said["base_rate"], rel=1e-9)
    assert said["base_rate"] == pytest.approx(np.log(2), rel=0.02)
    assert result_file["measures"]["so_far"]["samples"] == 3300
    assert peers.measures.accuracy == pytest.approx(metrics.accuracy(peers), abs=1e-12)
    assert sum(map(sum, peers.measures.confusion)) == 3300
    assert (peers.config["kind"], peers.config["task"]["model"]) == ("lab", "logistic")
    assert peers.config["stream"] == runs["relay"].config["stream"]
    assert sorted(map(tuple, peers.config["edges"])) == [(0, 1), (0, 2), (1, 2), (2, 0)]
    assert 0 < peers.correct_counts.sum() <= 3300
    np.testing.assert_allclose(
        metrics.loss_curve(peers)[-1], metrics.loss_curve(runs["relay"])[-1], rtol=0.5
    )


def test_baselines_of_peers_are_summed_by_round_if_all_know_them(record):
    known = {"base_sums": (4.0, 5.0), "alone_sums": (None, 1.0)}
    one = Curve(samples=2, loss_sums=(1.0, 2.0), correct=(1, 0), **known)
    other = Curve(samples=1, loss_sums=(5.0,), correct=(0,), base_sums=(7.0,), alone_sums=(1.0,))
    found = record(one, other)
    assert found.base_sums.tolist() == [11.0, 5.0]
    assert metrics.base_loss(found) == pytest.approx(16 / 3)
    assert found.alone_sums is metrics.alone_loss(found) is None
