"""Checks that a method of one's own keeps the promises both drivers rely on."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneway.methods import Gradients, Method, State
from oneway.records import Matrix, NetworkState, Vector
from oneway.simulator.exchange import Exchange
from oneway.topology import TrustGraph


def step_network(
    method: Method,
    network: NetworkState,
    gradients: Matrix,
    mixing: Any,
    index: int = 0,
    curvatures: Vector | None = None,
) -> NetworkState:
    """One round of a method without memory, given and returned as numerators and masses."""
    start = method.start(network.numerators)
    segments = dict(start.segments)
    if method.has_mass:
        segments["mass"] = network.masses[:, None]
    learned = Gradients(gradients, index, curvatures)
    after = method.local_step(State(segments, start.memory), learned, np.random.default_rng(0))
    after = Exchange(method, mixing).apply(after)
    masses = method.masses(after) if method.has_mass else network.masses
    return NetworkState(np.array(method.numerators(after)), masses)


def check_method(method: Method, dim: int = 3, seed: int = 0) -> None:
    """Check that a method is pure, works row by row, and conserves what it says it conserves.

    Raises:
        AssertionError: It breaks a promise; says which.
    """
    rng = np.random.default_rng(seed)
    graph = TrustGraph.random(6, max_receivers=3, seed=seed)
    exchange = Exchange(method, method.shares(graph))
    state = method.start(np.tile(rng.standard_normal(dim), (graph.num_nodes, 1)))
    for index in range(5):
        learned = Gradients(rng.standard_normal((graph.num_nodes, dim)), index)
        before = {name: array.copy() for name, array in _arrays(state).items()}
        after = method.local_step(state, learned, np.random.default_rng(index))
        _check_same(before, _arrays(state), "local_step changed the state it was given")
        _check_rows(method, state, learned, after)
        mixed = exchange.apply(after)
        if method.exchange == "graph":
            _check_conserved(method, after, mixed)
        state = mixed
    assert method.estimate(state).shape == (graph.num_nodes, dim), "an estimate is not [node, dim]"


def _check_rows(method: Method, state: State, learned: Gradients, after: State) -> None:
    """A peer is a network with one row, so a row must not depend on the others."""
    for node in range(len(learned.values)):
        row = slice(node, node + 1)
        alone = method.local_step(
            State(
                {name: array[row] for name, array in state.segments.items()},
                {name: array[row] for name, array in state.memory.items()},
            ),
            Gradients(learned.values[row], learned.index),
            np.random.default_rng(learned.index),
        )
        expected = {name: array[row] for name, array in _arrays(after).items()}
        _check_same(expected, _arrays(alone), "a node's step depends on other nodes")


def _check_conserved(method: Method, before: State, after: State) -> None:
    for segment in method.payload:
        if segment.kind != "copied":
            sums = (state.segments[segment.name].sum(axis=0) for state in (before, after))
            then, now = sums
            assert np.allclose(then, now, rtol=1e-9, atol=1e-12), f"{segment.name} is not conserved"


def _arrays(state: State) -> dict[str, Matrix]:
    return {**state.segments, **state.memory}


def _check_same(one: dict[str, Matrix], other: dict[str, Matrix], complaint: str) -> None:
    assert one.keys() == other.keys(), f"{complaint}: {one.keys() ^ other.keys()}"
    for name, array in one.items():
        assert np.allclose(array, other[name], rtol=1e-9, atol=1e-12), f"{complaint}: {name}"
