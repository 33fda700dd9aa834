"""A lab ends as runs: what the peers wrote down, and the simulations on the same samples."""

from __future__ import annotations

import numpy as np
import pytest
from builders import make_record

from oneway import metrics
from oneway.lab.result import peers_record
from oneway.peer.learner import Learner
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.incoming import mint
from oneway.protocol.state import PeerState
from oneway.records import RunRecord
from oneway.records.curve import Curve
from oneway.tables import Number
from oneway.task.task import Task

TASK = Task("logistic", "y", (Number("x"),), ("no", "yes"), method="ops")


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
        "method": "ops",
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


def test_baselines_of_peers_are_summed_by_round_if_all_know_them(record):
    known = {"base_sums": (4.0, 5.0), "alone_sums": (None, 1.0)}
    one = Curve(samples=2, loss_sums=(1.0, 2.0), correct=(1, 0), **known)
    other = Curve(samples=1, loss_sums=(5.0,), correct=(0,), base_sums=(7.0,), alone_sums=(1.0,))
    found = record(one, other)
    assert found.base_sums.tolist() == [11.0, 5.0]
    assert metrics.base_loss(found) == pytest.approx(16 / 3)
    assert found.alone_sums is metrics.alone_loss(found) is None
