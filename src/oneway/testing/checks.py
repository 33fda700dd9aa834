"""Checks that custom methods and models keep the contracts that both drivers rely on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from oneway.methods import Gradients, Method, State
from oneway.models import Model
from oneway.records import Batch, Matrix, NetworkState, Vector
from oneway.simulator.exchange import Exchange
from oneway.topology import TrustGraph

_Action: TypeAlias = Callable[[State, slice], State]
"""What nodes do alone: from the state of these rows of a network to their state after it."""


def step_network(
    method: Method,
    network: NetworkState,
    gradients: Matrix,
    mixing: Any,
    index: int = 0,
    curvatures: Vector | None = None,
) -> NetworkState:
    """One round of a method without memory, given and returned as numerators and masses."""
    start, rng = method.start(network.numerators), np.random.default_rng(0)
    segments = dict(start.segments)
    if method.has_mass:
        segments["mass"] = network.masses[:, None]
    learned = Gradients(gradients, index, curvatures)
    after = method.local_step(State(segments, start.memory), learned, rng)
    exchange = Exchange(method, mixing)
    for _ in range(method.mixes):
        after = exchange.apply(method.before_push(after, rng))
    after = method.bounded(after)
    masses = method.masses(after) if method.has_mass else network.masses
    return NetworkState(np.array(method.numerators(after)), masses)


def check_method(method: Method, dim: int = 3, seed: int = 0) -> None:
    """Check that a method is pure, works row by row, and conserves what it says it conserves.

    What nodes do alone (`local_step`, where some have no sample too, `before_push`, `estimate`) may
    not change what it is given, look at other nodes, or make or lose mass; an exchange conserves
    every segment that is not copied; and one that tracks a memory has its sum at every moment.

    Raises:
        AssertionError: It breaks a promise; says which.
    """
    rng = np.random.default_rng(seed)
    graph = TrustGraph.random(6, max_receivers=3, seed=seed)
    exchange = Exchange(method, method.shares(graph))
    state = method.start(np.tile(rng.standard_normal(dim), (graph.num_nodes, 1)))
    _check_tracked(method, state, "start")
    for index in range(6):
        learned = Gradients(rng.standard_normal((graph.num_nodes, dim)), index)
        if index % 2:
            learned = replace(learned, active=rng.random(graph.num_nodes) < 0.5)
        state = _after_step(method, state, learned)
        for _ in range(method.mixes):
            ready = _after("before_push", method, state, _push_of(method, index))
            assert ready.memory.keys() == state.memory.keys(), "before_push renamed a memory"
            state = exchange.apply(ready)
            if method.exchange == "graph":
                _check_conserved(method, ready, state)
                _check_tracked(method, state, "an exchange")
    _check_estimates(method, state, (graph.num_nodes, dim))


def check_model(model: Model, num_features: int = 4, seed: int = 0) -> None:
    """Check gradients against differences, rows against stacks, and the capabilities it has.

    Raises:
        AssertionError: It breaks a promise; says which.
    """
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((6, num_features))
    labels = {
        "binary": rng.choice([-1.0, 1.0], 6),
        "classes": rng.integers(0, 2, 6).astype(float),
        "number": rng.standard_normal(6),
    }[model.labels]
    batch = Batch(features, labels)
    model.check_labels(labels)
    start = model.init(num_features, rng)
    assert start.shape == (model.dim(num_features),), "init has another length than dim says"
    assert start.dtype == model.dtype, "init has other numbers than dtype says"
    stack: Matrix = start + rng.standard_normal((6, len(start))).astype(start.dtype)
    # Of a difference of losses in float32 far fewer digits are left.
    width, rtol, atol = (1e-6, 1e-4, 1e-6) if start.dtype == np.float64 else (1e-2, 1e-2, 1e-3)

    losses = model.losses(stack, batch)
    alone = [
        model.losses(row, Batch(features[i : i + 1], labels[i : i + 1]))[0]
        for i, row in enumerate(stack)
    ]
    assert np.allclose(losses, alone, rtol=0.1 * rtol), (
        "the losses of a stack are not those of its rows"
    )
    gradients = model.gradients(stack, batch)
    assert gradients.dtype == model.dtype, "gradients are other numbers than dtype says"
    for place in range(len(start)):
        nudge = np.zeros_like(start)
        nudge[place] = width
        rise = model.losses(stack + nudge, batch) - model.losses(stack - nudge, batch)
        assert np.allclose(gradients[:, place], rise / (2 * width), rtol=rtol, atol=atol), (
            f"the gradient by parameter {place} is not the slope of the loss"
        )
    right = model.correct(stack, batch)
    assert (right is None) == (model.labels == "number"), "correct is not None for numbers alone"
    hessian = model.hessian(start, batch)
    if hessian is not None:
        assert np.allclose(hessian, hessian.T), "the hessian is not symmetric"
    bounds = model.curvature_bounds(features)
    if bounds is not None:
        assert (bounds >= 0).all(), "a curvature bound is below 0"
    chances = model.probabilities(start, features)
    assert (chances is not None) == model.says_probabilities, "says_probabilities is wrong"
    if chances is not None:
        assert np.allclose(chances.sum(axis=1), 1.0), "probabilities do not add up to 1"


def _after_step(method: Method, state: State, learned: Gradients) -> State:
    """The state after a checked `local_step`, in which nodes without a sample stay as they are."""

    def step(held: State, rows: slice) -> State:
        active = None if learned.active is None else learned.active[rows]
        own = Gradients(learned.values[rows], learned.index, active=active)
        return method.local_step(held, own, np.random.default_rng(learned.index))

    after = _after("local_step", method, state, step)
    if learned.active is not None:
        idle = {name: array[~learned.active] for name, array in _arrays(state).items()}
        now = {name: _arrays(after)[name][~learned.active] for name in idle}
        _check_same(idle, now, "local_step changed a node without a sample")
    return after


def _push_of(method: Method, index: int) -> _Action:
    return lambda held, _: method.before_push(held, np.random.default_rng(index))


def _after(what: str, method: Method, state: State, act: _Action) -> State:
    """The state after an action of all nodes that is pure, and the same for each one alone."""
    before = {name: array.copy() for name, array in _arrays(state).items()}
    num_nodes = len(method.estimate(state))
    after = act(state, slice(num_nodes))
    _check_same(before, _arrays(state), f"{what} changed the state it was given")
    # A peer is a network with one row, so a row must not depend on the others.
    for node in range(num_nodes):
        row = slice(node, node + 1)
        alone = act(_rows_of(state, row), row)
        expected = _arrays(_rows_of(after, row))
        _check_same(expected, _arrays(alone), f"{what} of a node depends on other nodes")
    assert after.segments.keys() == state.segments.keys(), f"{what} renamed a segment"
    if method.has_mass:
        then, now = ({"mass": it.segments["mass"]} for it in (state, after))
        _check_same(then, now, f"{what} made or lost mass")
    _check_tracked(method, after, what)
    return after


def _check_conserved(method: Method, before: State, after: State) -> None:
    for segment in method.payload:
        if segment.kind != "copied":
            sums = (state.segments[segment.name].sum(axis=0) for state in (before, after))
            then, now = sums
            assert np.allclose(then, now, rtol=1e-9, atol=1e-12), f"{segment.name} is not conserved"


def _check_tracked(method: Method, state: State, when: str) -> None:
    for segment in method.payload:
        if segment.tracks:
            assert segment.tracks in state.memory, f"{segment.name} tracks no memory of {when}"
            here, there = state.segments[segment.name], state.memory[segment.tracks]
            assert np.allclose(here.sum(axis=0), there.sum(axis=0), rtol=1e-9, atol=1e-12), (
                f"after {when} the sum of {segment.name} is not that of {segment.tracks}"
            )


def _check_estimates(method: Method, state: State, shape: tuple[int, int]) -> None:
    before = {name: array.copy() for name, array in _arrays(state).items()}
    estimates = method.estimate(state)
    _check_same(before, _arrays(state), "estimate changed the state it was given")
    assert estimates.shape == shape, "an estimate is not [node, dim]"
    rows = [method.estimate(_rows_of(state, slice(node, node + 1))) for node in range(shape[0])]
    alone = {"estimate": np.concatenate(rows)}
    _check_same({"estimate": estimates}, alone, "the estimate of a node depends on other nodes")


def _rows_of(state: State, rows: slice) -> State:
    return State(
        {name: array[rows] for name, array in state.segments.items()},
        {name: array[rows] for name, array in state.memory.items()},
    )


def _arrays(state: State) -> dict[str, Matrix]:
    return {**state.segments, **state.memory}


def _check_same(one: dict[str, Matrix], other: dict[str, Matrix], complaint: str) -> None:
    assert one.keys() == other.keys(), f"{complaint}: {one.keys() ^ other.keys()}"
    for name, array in one.items():
        assert np.allclose(array, other[name], rtol=1e-9, atol=1e-12), f"{complaint}: {name}"
