"""One network over the two machines of a real Ray cluster: the bits of one process."""

from __future__ import annotations

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ClusterError
from oneway.methods import Batches

pytest.importorskip("ray", reason="the extra ray is not installed")

MODEL = ow.models.LogisticRegression(l2=1e-2, intercept=True)
ROUNDS, NODES = 30, 23


def world(num_rounds=ROUNDS):
    rng = np.random.default_rng(1)
    features = rng.standard_normal((num_rounds, NODES, 8)).astype(np.float32)
    labels = rng.choice([-1.0, 1.0], (num_rounds, NODES)).astype(np.float32)
    full = ow.Stream.from_arrays(features, labels)
    rows = np.where(rng.random(full.rows.shape) < 0.2, -1, full.rows)
    graph = ow.TrustGraph.random(NODES, 4, seed=1)
    return ow.Stream(full.features, full.labels, rows), graph


def assert_same_bits(one, other, every):
    assert np.array_equal(one.numerators, other.numerators)
    assert np.array_equal(one.masses, other.masses)
    for name in ("loss_sums", "correct_counts", "sample_counts"):
        assert np.array_equal(getattr(one.record, name), getattr(other.record, name)), name
    known = [at for at in range(ROUNDS) if (at + 1) % every == 0 or at == ROUNDS - 1]
    assert np.flatnonzero(~np.isnan(other.disagreement)).tolist() == known
    assert np.array_equal(one.disagreement[known], other.disagreement[known])
    assert one.measures == other.measures


def test_a_lost_part_costs_the_rounds_since_the_checkpoint_and_no_bit(
    ray_cluster, tmp_path, monkeypatch
):
    """Actors on two machines, one of which is killed as it computes; nothing is sent twice."""
    import ray

    from oneway.simulator.ray_parts import RayHands

    stream, graph = world()
    method = ow.Relay(0.2, batches=Batches(3, 0.7, 0.8))
    asked: list[int] = []
    plain = RayHands.call

    def call(self, part, name, *given, returns=1):
        if name == "turn":
            asked.append(given[1])
            if asked.count(12) == 1 and given[1] == 12:
                ray.kill(self._actors[1])
        return plain(self, part, name, *given, returns=returns)

    monkeypatch.setattr(RayHands, "call", call)
    run = ow.simulate(
        method, MODEL, stream, graph, seed=3, measure=True,
        engine=f"ray://{ray_cluster.address}", parts=2, disagreement_every=7,
        checkpoint=tmp_path, checkpoint_seconds=0,
    )  # fmt: skip
    config = run.record.config
    assert (config["engine"], config["parts"], config["disagreement_every"]) == ("ray", 2, 7)
    assert config["restarts"] == 1
    again = asked[asked.index(12) + 2 :]
    assert 0 < min(again) <= 12
    assert_same_bits(
        ow.simulate(method, MODEL, stream, graph, seed=3, measure=True, engine="fast"), run, 7
    )
    # The checkpoint of the run is there, and another one has no use for it.
    assert {it.name.split("-")[0] for it in tmp_path.iterdir()} == {
        "checkpoint.json", "checkpoint.lock", "measurements", "part0", "part1",
    }  # fmt: skip


def test_parts_may_be_given_in_a_file(ray_cluster, tmp_path):
    stream, graph = world()
    np.savetxt(tmp_path / "parts.txt", np.arange(NODES) % 2, "%d")
    method = ow.OnlinePushSum(0.2, mixes=2)
    run = ow.simulate(
        method, MODEL, stream, graph, seed=3, measure=True,
        engine=f"ray://{ray_cluster.address}", parts=tmp_path / "parts.txt",
    )  # fmt: skip
    one = ow.simulate(method, MODEL, stream, graph, seed=3, measure=True, engine="fast")
    assert_same_bits(one, run, 10)
    assert "2 parts" in run._repr_html_()


def test_a_part_that_does_not_fit_the_object_store_is_refused(ray_cluster):
    features = np.zeros((400_000, 60), np.float32)
    stream = ow.Stream(features, np.ones(400_000), np.arange(400_000).reshape(-1, 4))
    with pytest.raises(ClusterError, match="object store"):
        ow.simulate(
            ow.OnlinePushSum(0.1), MODEL, stream, ow.TrustGraph.ring(4),
            engine=f"ray://{ray_cluster.address}", parts=1,
        )  # fmt: skip


def test_a_cluster_that_does_not_answer_is_named():
    stream, graph = world(2)
    with pytest.raises(ClusterError, match=r"127\.0\.0\.1:1 does not answer"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph, engine="ray://127.0.0.1:1")
