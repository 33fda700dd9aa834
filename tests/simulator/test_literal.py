"""Fast = reference = a literal transcription of the paper's Algorithm 1, message by message."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ConfigError
from oneway.methods import Batches
from oneway.methods.step_rules import Capped
from oneway.methods.transforms import Clip
from oneway.records import Batch
from oneway.simulator.kernels import round_kernel

MODELS = {
    "logistic": ow.models.LogisticRegression(l2=1e-2, intercept=True),
    "logistic without intercept": ow.models.LogisticRegression(l2=0.0, intercept=False),
    "ridge": ow.models.RidgeRegression(l2=1e-2, intercept=True),
    "hinge": ow.models.Hinge(l2=1e-2, intercept=True),
    "softmax": ow.models.SoftmaxRegression(num_classes=3, l2=1e-2),
}


def stream_for(model, num_rounds, num_nodes, num_features, seed, holes=0.0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_rounds, num_nodes, num_features)).astype(np.float32)
    if isinstance(model, ow.models.SoftmaxRegression):
        labels = rng.integers(0, 3, (num_rounds, num_nodes)).astype(np.float32)
    else:
        labels = rng.choice([-1.0, 1.0], (num_rounds, num_nodes)).astype(np.float32)
    stream = ow.Stream.from_arrays(features, labels)
    if holes:
        rows = stream.rows.copy()
        rows[rng.random(rows.shape) < holes] = -1
        stream = ow.Stream(features=stream.features, labels=stream.labels, rows=rows)
    return stream


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


def literal_step(rule, rate, mass, model, features):
    """The length of a step, by the formulas of the step rules; None is the paper's."""
    if rule == "mass":
        return rate * mass
    if isinstance(rule, float):
        return rate * min(rule, mass)
    if rule != "curvature":
        return rate
    bend = {"LogisticRegression": 0.25, "RidgeRegression": 1.0, "SoftmaxRegression": 0.5}.get(
        type(model).__name__
    )
    if bend is None:
        return rate * min(1.0, mass)
    square = math.fsum(float(value) ** 2 for value in features) + int(model.intercept)
    return min(rate, 0.5 * mass / (bend * square + model.l2))


def algorithm_1(graph, model, stream, learning_rate, rule="paper"):
    """Online Push-Sum as printed: one node at a time, one message per edge, plain dictionaries."""
    mixing = graph.mixing().toarray()
    nodes = range(graph.num_nodes)
    dim = model.dim(stream.dim)
    z = {i: [0.0] * dim for i in nodes}
    omega = dict.fromkeys(nodes, 1.0)
    x = {i: [0.0] * dim for i in nodes}
    losses = []
    for t in range(stream.num_rounds):
        inbox = defaultdict(list)
        loss = 0.0
        for i in nodes:
            row = stream.rows[t, i]
            half = list(z[i])
            if row >= 0:
                sample = Batch(stream.features[row : row + 1], stream.labels[row : row + 1])
                loss += model.loss(np.array(x[i]), sample)
                gradient = model.gradient(np.array(x[i]), sample)
                step = literal_step(rule, learning_rate, omega[i], model, sample.features[0])
                half = [value - step * slope for value, slope in zip(z[i], gradient, strict=True)]
            for j in [i, *graph.receivers_of(i)]:
                share = mixing[i, j]
                inbox[int(j)].append(([share * value for value in half], share * omega[i]))
        for i in nodes:
            z[i] = [math.fsum(parts) for parts in zip(*(m[0] for m in inbox[i]), strict=True)]
            omega[i] = math.fsum(m[1] for m in inbox[i])
            x[i] = [value / omega[i] for value in z[i]]
        losses.append(loss)
    return np.array([x[i] for i in nodes]), np.array([omega[i] for i in nodes]), np.array(losses)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@settings(max_examples=12, deadline=None)
@given(
    num_nodes=st.integers(2, 9),
    seed=st.integers(0, 10**6),
    rate=st.floats(0.01, 0.5),
    rule=st.sampled_from(["paper", "mass", "curvature", 1.0, 0.3]),
    holes=st.sampled_from([0.0, 0.4]),
    num_features=st.sampled_from([3, 8]),
)
def test_both_engines_equal_the_paper_message_by_message(
    model, num_nodes, seed, rate, rule, holes, num_features
):
    """Ragged streams included: a node without a sample only mixes."""
    graph = any_graph(num_nodes, seed)
    stream = stream_for(model, 12, num_nodes, num_features, seed, holes)
    estimates, masses, losses = algorithm_1(graph, model, stream, rate, rule)
    algorithm = ow.OnlinePushSum(rate, step=Capped(rule) if isinstance(rule, float) else rule)
    engines = ["reference"]
    if not isinstance(model, ow.models.SoftmaxRegression):
        engines.append("fast")
    for engine in engines:
        run = ow.simulate(algorithm, model, stream, graph, engine=engine)
        np.testing.assert_allclose(run.estimates, estimates, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(run.masses, masses, rtol=1e-12)
        np.testing.assert_allclose(run.record.loss_sums, losses, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "algorithm",
    [
        ow.OnlinePushSum(0.2),
        ow.OnlinePushSum(ow.InverseSqrt(0.5), step="capped"),
        ow.OnlinePushSum(0.9, step="curvature"),
        ow.Centralised(0.9, step="curvature"),
        ow.MutualGossip(0.2),
        ow.NaiveGossip(0.2),
        ow.Centralised(0.2),
        ow.Isolated(ow.InverseSqrt(0.3)),
        ow.Pull(0.2),
        ow.Pull(0.9, step="curvature"),
        ow.Relay(0.2),
        ow.Relay(0.9, step="curvature"),
        ow.Relay(ow.InverseSqrt(0.5), step=Capped(0.4), deposit="mass"),
        *(
            method(0.2, mixes=3)
            for method in (ow.OnlinePushSum, ow.MutualGossip, ow.Centralised, ow.Isolated, ow.Pull)
        ),
        ow.Relay(0.2, mixes=3),
    ],
    ids=lambda algorithm: (
        f"{algorithm.name} {algorithm.learning_rate} {algorithm.rule.name} x{algorithm.mixes}"
    ),
)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "softmax"])
def test_fast_equals_reference_for_every_method_and_linear_model(algorithm, name):
    model = MODELS[name]
    graph = ow.TrustGraph.random(17, max_receivers=5, seed=3)
    stream = stream_for(model, 60, 17, 8, seed=5, holes=0.2)
    reference, fast = (
        ow.simulate(algorithm, model, stream, graph, engine=engine)
        for engine in ("reference", "fast")
    )
    assert fast.record.config["engine"] == "fast"
    for field in ("estimates", "masses", "losses", "disagreement"):
        np.testing.assert_allclose(
            getattr(fast, field), getattr(reference, field), rtol=1e-9, atol=1e-12
        )
    assert fast.accuracy == reference.accuracy


@settings(max_examples=60, deadline=None)
@given(
    num_nodes=st.integers(2, 9),
    seed=st.integers(0, 10**6),
    method=st.sampled_from([ow.Pull, ow.Relay]),
    deposit=st.sampled_from(["count", "mass"]),
    amount=st.sampled_from([None, 1e-3, 0.7, 2, 50.0, 1e308]),
    rule=st.sampled_from(["paper", "mass", "curvature", Capped(0.3)]),
    batches=st.sampled_from([None, Batches(3), Batches(2, 0.7, 0.8, 5)]),
    mixes=st.integers(1, 3),
    holes=st.sampled_from([0.0, 0.4, 0.9]),
    num_rounds=st.integers(1, 12),
)
def test_fast_equals_reference_for_pull_and_relay_whatever_their_parameters(
    num_nodes, seed, method, deposit, amount, rule, batches, mixes, holes, num_rounds
):
    """With few samples too: a node without one deposits, forwards and receives all the same."""
    model = MODELS["logistic"]
    own = {"deposit": deposit, "amount": amount} if method is ow.Relay else {}
    learner = method(0.3, step=rule, batches=batches, mixes=mixes, **own)
    stream = stream_for(model, num_rounds, num_nodes, 8, seed, holes)
    # Where graphs take turns, a node may be without receivers in a round, and keeps its parcel.
    turns = [any_graph(num_nodes, seed)]
    if seed % 2:
        senders, receivers = turns[0].edges()
        edges = list(zip(senders.tolist(), receivers.tolist(), strict=True))
        turns = [
            ow.TrustGraph.from_edges(part, num_nodes) for part in (edges[::2], edges[1::2]) if part
        ]
    reference, fast = (
        ow.simulate(learner, model, stream, turns, engine=engine, seed=seed)
        for engine in ("reference", "fast")
    )
    for field in ("estimates", "masses", "losses", "disagreement"):
        np.testing.assert_allclose(
            getattr(fast, field), getattr(reference, field), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_array_equal(fast.record.correct_counts, reference.record.correct_counts)


def test_the_fast_engine_leaves_everything_it_has_no_kernel_for_to_the_reference():
    """A subclass, a transform or a step rule of one's own must never run as something else."""
    model, graph = MODELS["logistic"], ow.TrustGraph.random(9, max_receivers=4, seed=1)
    stream = stream_for(model, 12, 9, 3, seed=1)

    class Slow(ow.OnlinePushSum):
        def descend(self, state, steps):
            return super().descend(state, 0.5 * steps)

    class SlowRelay(ow.Relay):
        def descend(self, state, steps):
            return super().descend(state, 0.5 * steps)

    class Half(Capped):
        def lengths(self, rate, masses, curvatures):
            return 0.5 * super().lengths(rate, masses, curvatures)

    half = ow.simulate(ow.OnlinePushSum(0.1), model, stream, graph)
    for method, same in (
        (Slow(0.2), half),
        (ow.OnlinePushSum(0.2, step=Half()), ow.OnlinePushSum(0.1, step="capped")),
        (ow.OnlinePushSum(0.2, transforms=(Clip(1e9),)), ow.OnlinePushSum(0.2)),
        (SlowRelay(0.2), ow.Relay(0.1)),
        (ow.Relay(0.2, deposit_transforms=(Clip(1e9),)), ow.Relay(0.2)),
    ):
        run = ow.simulate(method, model, stream, graph)
        expected = same if isinstance(same, ow.Run) else ow.simulate(same, model, stream, graph)
        assert run.record.config["engine"] == "reference"
        np.testing.assert_allclose(run.estimates, expected.estimates, rtol=1e-9, atol=1e-12)
        with pytest.raises(ConfigError, match="no kernel"):
            ow.simulate(method, model, stream, graph, engine="fast")


class Transposed(ow.OnlinePushSum):
    """The plausible mistake: shares go to senders."""

    def shares(self, graph):
        return graph.mixing().T.tocsr()


def test_a_transposed_mixing_is_noticed():
    """The engines' agreement means nothing if a transposed matrix gave the same numbers."""
    graph = ow.TrustGraph.random(9, max_receivers=4, seed=1)
    model = MODELS["logistic"]
    stream = stream_for(model, 12, 9, 3, seed=1)
    estimates, masses, losses = algorithm_1(graph, model, stream, 0.2)
    wrong = ow.simulate(Transposed(0.2), model, stream, graph)
    assert np.abs(wrong.masses - masses).max() > 0.05
    assert np.abs(wrong.estimates - estimates).max() > 0.01
    assert np.abs(wrong.record.loss_sums - losses).max() > 1e-3


def test_reversed_trust_is_noticed():
    graph = ow.TrustGraph.random(9, max_receivers=4, seed=1)
    transposed = ow.TrustGraph.from_edges(
        [(receiver, sender) for sender, receiver in zip(*graph.edges(), strict=True)], num_nodes=9
    )
    model = MODELS["logistic"]
    stream = stream_for(model, 12, 9, 3, seed=1)
    estimates, masses, _ = algorithm_1(graph, model, stream, 0.2)
    run = ow.simulate(ow.OnlinePushSum(0.2), model, stream, transposed)
    assert np.abs(run.masses - masses).max() > 0.05
    assert np.abs(run.estimates - estimates).max() > 0.01


@pytest.mark.parametrize(
    "method", [ow.OnlinePushSum(0.2), ow.Pull(0.2, mixes=2), ow.Relay(0.2), ow.Relay(0.2, mixes=3)]
)
def test_the_parallel_kernel_gives_the_same_bits_as_the_serial_one(method, monkeypatch):
    model = MODELS["logistic"]
    graph = ow.TrustGraph.random(200, max_receivers=8, seed=1)
    stream = stream_for(model, 30, 200, 8, seed=1, holes=0.1)
    serial = ow.simulate(method, model, stream, graph, engine="fast")
    monkeypatch.setattr("oneway.simulator.fast_engine._PARALLEL_FROM", 0)
    parallel = ow.simulate(method, model, stream, graph, engine="fast")
    np.testing.assert_array_equal(parallel.numerators, serial.numerators)
    np.testing.assert_array_equal(parallel.record.loss_sums, serial.record.loss_sums)
    np.testing.assert_array_equal(parallel.disagreement, serial.disagreement)


@pytest.mark.parametrize(
    ("method", "num_features"),
    [(ow.OnlinePushSum(0.1), num) for num in (1, 18, 35, 70)]
    + [(ow.Relay(0.1), num) for num in (1, 35)],
)
def test_wide_and_narrow_samples_in_single_and_double_precision(method, num_features):
    """Rows shorter than a vector and longer than the register block both mix correctly."""
    model = ow.models.LogisticRegression(l2=1e-3)
    graph = ow.TrustGraph.random(11, max_receivers=6, seed=2)
    rng = np.random.default_rng(0)
    labels = rng.choice([-1.0, 1.0], (15, 11))
    for dtype in (np.float32, np.float64):
        features = rng.standard_normal((15, 11, num_features)).astype(dtype)
        stream = ow.Stream.from_arrays(features, labels)
        fast = ow.simulate(method, model, stream, graph, engine="fast")
        reference = ow.simulate(method, model, stream, graph, engine="reference")
        np.testing.assert_allclose(fast.estimates, reference.estimates, rtol=1e-9, atol=1e-13)


def test_kernels_of_different_shapes_share_no_name_in_the_cache_on_disk():
    """Two processes that compile under one name at once may store one kernel as the other."""
    plain = {"intercept": True, "kind": 0, "itemsize": 4, "parallel": False, "limited": False}
    others = [
        {"num_features": 8},
        {"itemsize": 8},
        {"kind": 1},
        {"parallel": True},
        {"limited": True},
        {"batched": True},
        {"relayed": True},
        {"late": True},
    ]
    shapes = [{"num_features": 7, **plain, **other} for other in ({}, *others)]
    names = {round_kernel(**shape).py_func.__qualname__ for shape in shapes}
    assert len(names) == len(shapes)
