"""Runs side by side, and sweeps."""

from __future__ import annotations

import numpy as np
import polars
import pytest

import oneway as ow
from oneway.errors import ConfigError
from oneway.simulator.sweep import Trial

MODEL = ow.models.LogisticRegression()


def table() -> ow.Table:
    return ow.streams.synthetic(num_samples=800, num_features=4, seed=1).table


def run(method: ow.methods.Method, seed: int = 0, nodes: int = 8) -> ow.Run:
    stream = table().deal(nodes, seed=seed)
    graph = ow.TrustGraph.random(nodes, 3, seed=seed)
    return ow.simulate(method, MODEL, stream, graph, seed=seed)


def test_runs_are_ranked_by_loss_and_named_by_their_method():
    together, alone = run(ow.OnlinePushSum(0.3)), run(ow.Isolated(0.3))
    compared = ow.compare([alone, together])
    rows = compared.rows()
    assert [row["method"] for row in rows] == ["ops", "local"]
    assert rows[0]["name"] == compared.best == "Online Push-Sum"
    assert rows[0]["average_loss"] == together.average_loss
    assert rows[0]["accuracy"] == together.accuracy
    assert rows[0]["standard_error"] is None
    assert compared.comparable
    assert repr(compared).splitlines()[1] == f"Online Push-Sum: {together.average_loss:.4f}"


def test_runs_that_differ_in_their_seed_only_are_one_with_a_standard_error():
    runs = [run(ow.OnlinePushSum(0.3), seed) for seed in (1, 2, 3)]
    compared = ow.compare(runs)
    (row,) = compared.rows()
    losses = [each.average_loss for each in runs]
    assert row["runs"] == 3
    assert row["average_loss"] == pytest.approx(np.mean(losses), rel=1e-12)
    assert row["standard_error"] == pytest.approx(np.std(losses, ddof=1) / np.sqrt(3), rel=1e-12)
    assert len(compared.plot().axes[0].collections) == 1  # the band


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ConfigError, match="no runs"):
        ow.compare([])
    with pytest.raises(ConfigError, match="no runs"):
        ow.compare({"a": []})
    for nonsense in ([1], {"a": [1]}):
        with pytest.raises(ConfigError, match="no run"):
            ow.compare(nonsense)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def swept():
    return ow.sweep(
        table(), rates=(0.01, 0.3), methods=("relay", "local"), seeds=(0, 1), nodes=5, rounds=60,
        privacy="none", jobs=1, progress=False,
    )  # fmt: skip


def test_a_sweep_of_a_table_in_memory_tries_everything(swept):
    assert len(swept.trials) == 8
    assert swept.best.learning_rate == 0.3
    assert swept.at_edge
    assert swept.best_settings.method == swept.best.method
    assert swept.best_settings.learning_rate == 0.3
    frame = swept.to_frame()
    assert frame.columns == list(Trial.__dataclass_fields__)
    assert len(frame) == 8


def test_a_sweep_takes_names_and_settings_and_refuses_frames():
    few = {"nodes": 3, "rounds": 20, "jobs": 1}
    found = ow.sweep("synthetic", rates=(0.1,), privacy="none", **few)
    assert [trial.method for trial in found.trials] == ["relay"]
    with pytest.raises(ConfigError, match=r"DataFrame.*from_frame"):
        ow.sweep(polars.DataFrame({"x": [1]}), **few)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="'nods'"):
        ow.sweep("synthetic", nods=3)
    with pytest.raises(ConfigError, match="learning rates"):
        ow.sweep("synthetic", rates=(), **few)
