"""Models, streams and graphs of the tests of engines."""

from __future__ import annotations

import numpy as np

import oneway as ow

FEATURES = 3
"""Features of a sample, float64."""
MODELS = {
    "logistic": ow.models.LogisticRegression(l2=1e-2, intercept=True),
    "logistic without intercept": ow.models.LogisticRegression(l2=0.0, intercept=False),
    "ridge": ow.models.RidgeRegression(l2=1e-2, intercept=True),
    "hinge": ow.models.Hinge(l2=1e-2, intercept=True),
    "softmax": ow.models.SoftmaxRegression(num_classes=3, l2=1e-2),
}
LOGISTIC = MODELS["logistic"]


def stream_for(num_rounds, num_nodes, seed=0, holes=0.0, classes=2, num_features=FEATURES):
    """Random samples; `holes` is the share of rounds of a node without one."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_rounds, num_nodes, num_features))
    labels = rng.integers(0, classes, (num_rounds, num_nodes)).astype(float)
    plain = ow.Stream.from_arrays(features, labels if classes > 2 else 2.0 * labels - 1.0)
    rows = np.where(rng.random(plain.rows.shape) < holes, -1, plain.rows)
    return ow.Stream(plain.features, plain.labels, rows)


def any_graph(num_nodes, seed):
    """A random graph, plain or with weights and kept shares, or a ring; chosen by the seed."""
    plain = ow.TrustGraph.random(num_nodes, max_receivers=min(4, num_nodes - 1), seed=seed)
    if seed % 3 == 0:
        return ow.TrustGraph.ring(num_nodes)
    if seed % 3 == 1:
        return plain
    rng = np.random.default_rng(seed)
    weighted = ow.TrustGraph.from_edges(
        [(int(a), int(b), float(rng.uniform(0.2, 3))) for a, b in zip(*plain.edges(), strict=True)],
        num_nodes,
    )
    return ow.TrustGraph.from_mixing(weighted.mixing(kept_share=rng.uniform(0, 0.8, num_nodes)))


def both(method, model, stream, graph, seed=3):
    """The same run in the fast and in the reference engine."""
    fast, reference = (
        ow.simulate(method, model, stream, graph, engine=engine, seed=seed)
        for engine in ("fast", "reference")
    )
    assert fast.record.config["engine"] == "fast"
    return fast, reference


def assert_close(fast, reference):
    for field in ("estimates", "masses", "losses", "disagreement"):
        np.testing.assert_allclose(
            getattr(fast, field), getattr(reference, field), rtol=1e-9, atol=1e-12
        )
    if reference.record.correct_counts is not None:
        np.testing.assert_array_equal(fast.record.correct_counts, reference.record.correct_counts)


def assert_same_bits(run, other):
    for field in ("numerators", "masses", "disagreement"):
        np.testing.assert_array_equal(getattr(run, field), getattr(other, field))
    np.testing.assert_array_equal(run.record.loss_sums, other.record.loss_sums)
