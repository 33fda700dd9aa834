"""Both levels of the asynchronous network say the same of the same conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oneway as ow
from oneway.asynchronous.exact import run_exact
from oneway.asynchronous.fast import run_fast

SEEDS = range(3)


@pytest.mark.parametrize("faults", [{}, {"loss": 0.1}], ids=["plain", "loss"])
def test_loss_and_traffic_of_the_fast_level_are_those_of_the_peers(
    faults: dict[str, float],
) -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((40, 10, 3))
    labels = np.where(features @ [1.0, -2.0, 0.5] + rng.standard_normal((40, 10)) > 0, 1.0, -1.0)
    stream, graph = ow.Stream.from_arrays(features, labels), ow.TrustGraph.random(10, 4, seed=1)
    given = (ow.Relay(0.2, "curvature"), ow.models.LogisticRegression(), stream, graph)
    exact, fast = (
        [run(*given, ow.Conditions(**faults), seed, bins=1, progress=False) for seed in SEEDS]
        for run in (run_exact, run_fast)
    )
    losses = [
        np.array([(it.loss_sums / it.sample_counts)[0] for it in level]) for level in (exact, fast)
    ]
    spread = np.sqrt(sum(loss.var(ddof=1) / len(loss) for loss in losses))
    assert abs(losses[0].mean() - losses[1].mean()) < 4.0 * spread + 0.002
    for count in ("pushes", "acknowledgements", "messages", "bytes_sent", "mean_round_trip"):
        told, found = (
            np.mean([getattr(it.traffic, count) for it in level]) for level in (exact, fast)
        )
        assert abs(found / told - 1.0) < 0.12, (count, told, found)


@pytest.mark.parametrize("run", [run_exact, run_fast])
@pytest.mark.parametrize("method", [ow.OnlinePushSum(0.1), ow.Relay("auto")], ids=["ops", "relay"])
def test_who_has_nothing_to_learn_for_a_while_still_teaches_the_others_afterwards(
    run: Any, method: Any
) -> None:
    """One learner and two peers without samples: steps of length 0 must not cost it its mass."""
    rng = np.random.default_rng(1)
    features = rng.choice([-1.0, 1.0], (400, 3, 1)) * rng.uniform(1.0, 2.0, (400, 3, 1))
    labels = np.sign(features[..., 0])
    labels[150:] *= -1  # the hinge was 0 long before
    full = ow.Stream.from_arrays(features, labels)
    stream = replace(full, rows=np.where(np.arange(3) == 0, full.rows, -1))
    found = run(
        method, ow.models.Hinge(l2=0.0, intercept=False), stream, ow.TrustGraph.ring(3),
        ow.Conditions(poisson=False), 1, bins=1, progress=False,
    )  # fmt: skip
    models = found.numerators[:, 0] / found.masses
    assert found.masses.min() > 0.1
    assert models.max() < -0.3, models
