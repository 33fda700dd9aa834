"""Fast = reference = a literal transcription of the paper's Algorithm 1, message by message."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from engine_cases import LOGISTIC, MODELS, any_graph, stream_for
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.methods.step_rules import Capped
from oneway.records import Batch


def literal_step(rule, rate, mass, model, features):
    """The length of a step, by the formulas of the step rules."""
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


@pytest.mark.parametrize("name", MODELS)
@given(
    num_nodes=st.integers(2, 9),
    seed=st.integers(0, 10**6),
    rate=st.floats(0.01, 0.5),
    rule=st.sampled_from(["paper", "mass", "curvature", 1.0, 0.3]),
    holes=st.sampled_from([0.0, 0.4]),
)
def test_both_engines_equal_the_paper_message_by_message(name, num_nodes, seed, rate, rule, holes):
    """Ragged streams included: a node without a sample only mixes."""
    model, graph = MODELS[name], any_graph(num_nodes, seed)
    stream = stream_for(12, num_nodes, seed, holes, classes=3 if name == "softmax" else 2)
    estimates, masses, losses = algorithm_1(graph, model, stream, rate, rule)
    method = ow.OnlinePushSum(rate, step=Capped(rule) if isinstance(rule, float) else rule)
    for engine in ("reference",) if name == "softmax" else ("reference", "fast"):
        run = ow.simulate(method, model, stream, graph, engine=engine)
        np.testing.assert_allclose(run.estimates, estimates, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(run.masses, masses, rtol=1e-12)
        np.testing.assert_allclose(run.record.loss_sums, losses, rtol=1e-9, atol=1e-11)


class Transposed(ow.OnlinePushSum):
    """The plausible mistake: shares go to senders."""

    def shares(self, graph):
        return graph.mixing().T.tocsr()


def reversed_edges(graph):
    return ow.TrustGraph.from_edges(
        [(receiver, sender) for sender, receiver in zip(*graph.edges(), strict=True)],
        graph.num_nodes,
    )


@pytest.mark.parametrize(
    ("method", "change"),
    [(Transposed, lambda graph: graph), (ow.OnlinePushSum, reversed_edges)],
    ids=["transposed mixing", "reversed trust"],
)
def test_a_wrong_direction_is_noticed(method, change):
    """The engines' agreement means nothing if a transposed matrix gave the same numbers."""
    graph, stream = ow.TrustGraph.random(9, max_receivers=4, seed=1), stream_for(12, 9, 1)
    estimates, masses, losses = algorithm_1(graph, LOGISTIC, stream, 0.2)
    wrong = ow.simulate(method(0.2), LOGISTIC, stream, change(graph))
    assert np.abs(wrong.masses - masses).max() > 0.05
    assert np.abs(wrong.estimates - estimates).max() > 0.01
    assert np.abs(wrong.record.loss_sums - losses).max() > 1e-3
