"""The fast engine equals the reference for every method, model, step, batch and schedule."""

from __future__ import annotations

import math

import numpy as np
import pytest
from engine_cases import (
    LOGISTIC,
    MODELS,
    any_graph,
    assert_close,
    assert_same_bits,
    both,
    stream_for,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.event import install_recorder

import oneway as ow
from oneway.errors import ConfigError, DivergenceError
from oneway.methods import Batches
from oneway.methods.step_rules import Capped
from oneway.methods.transforms import Clip, Momentum
from oneway.models import Hinge
from oneway.simulator.fast_engine import COMPILED, FastEngine
from oneway.simulator.kernel import rounds
from oneway.simulator.measurements import Measurements
from oneway.task.assembly import assemble
from oneway.task.settings import Settings

BATCHES = (
    Batches(4), Batches(1, 0.5), Batches(5, 0.7), Batches(30, 0.7, 0.8), Batches(3, 0.7, 0.8, 5)
)  # fmt: skip


def turns(num_nodes, seed):
    """Graphs that take turns: in a round a node may be without receivers, and keeps its parcel."""
    graph = any_graph(num_nodes, seed)
    if seed % 2 == 0:
        return graph
    edges = list(zip(*(it.tolist() for it in graph.edges()), strict=True))
    return [ow.TrustGraph.from_edges(it, num_nodes) for it in (edges[::2], edges[1::2]) if it]


@st.composite
def configurations(draw):
    """Anything the fast engine supports: a method, a model, a stream and graphs."""
    number = st.floats(1e-3, 1.0)
    kind = draw(st.sampled_from(COMPILED))
    rate = draw(number | st.builds(ow.InverseSqrt, number) | st.sampled_from(["auto", 0.0]))
    options = {
        "step": draw(st.sampled_from(["paper", "mass", "curvature"]) | st.builds(Capped, number)),
        "mixes": draw(st.integers(1, 3)),
        "batches": draw(st.none() | st.sampled_from(BATCHES)),
    }
    if kind is ow.Relay:
        options["amount"] = draw(number | st.sampled_from([2, 50.0, 1e308]))
    if kind in (ow.OnlinePushSum, ow.Relay):
        options["bounds"] = draw(st.none() | st.just((0.5, 2.0)))
    model = draw(
        st.builds(
            draw(st.sampled_from([ow.models.LogisticRegression, ow.models.RidgeRegression, Hinge])),
            l2=st.sampled_from([0.0, 1e-2]),
            intercept=st.booleans(),
        )
    )
    num_nodes = draw(st.integers(2, 9) | st.integers(120, 140))  # one block of nodes, or more
    seed, num_features = draw(st.integers(0, 10**6)), draw(st.integers(1, 40))
    num_rounds, holes = draw(st.integers(1, 25)), draw(st.sampled_from([0.0, 0.3, 0.9]))
    stream = stream_for(num_rounds, num_nodes, seed, holes, num_features=num_features)
    features = stream.features / np.sqrt(num_features)
    if draw(st.booleans()):
        features = features.astype(np.float32)
    stream = ow.Stream(features, stream.labels, stream.rows)
    if draw(st.booleans()):
        stream = stream.delayed(np.random.default_rng(seed).integers(0, 5, stream.rows.shape))
    return kind(rate, **options), model, stream, turns(num_nodes, seed)


@given(configurations())
@settings(max_examples=4 * settings.default.max_examples)
def test_fast_equals_reference(configuration):
    """With few samples too: a node without one deposits, forwards and receives all the same."""
    assert_close(*both(*configuration))
    compiled = rounds(configuration[2].features.dtype.name, "int32", False)
    assert len(compiled.signatures) == 1  # two under one name could be stored as each other


@pytest.mark.parametrize("threshold", [0, math.inf], ids=["parallel", "serial"])
def test_a_new_table_network_or_configuration_compiles_nothing(threshold, monkeypatch):
    monkeypatch.setattr("oneway.simulator.fast_engine._PARALLEL_FROM", threshold)

    def run(learner, model, num_nodes, num_features):
        stream = stream_for(3, num_nodes, num_features=num_features)
        ow.simulate(learner, model, stream, any_graph(num_nodes, 1), engine="fast")

    run(ow.OnlinePushSum(0.1), LOGISTIC, 5, 3)
    with install_recorder("numba:compile") as compiled:
        run(ow.OnlinePushSum(0.1), LOGISTIC, 150, 29)
        run(ow.Relay("auto", "curvature", batches=BATCHES[4]), MODELS["hinge"], 6, 4)
        run(ow.Pull(0.1, mixes=2), MODELS["ridge"], 7, 5)
    assert not [event.data for _, event in compiled.buffer]


@pytest.mark.parametrize(
    "method",
    [
        ow.OnlinePushSum(0.2),
        ow.Pull(0.2, mixes=2),
        ow.Relay(0.2, "curvature", batches=Batches(3, 0.7, 0.8, 5)),
    ],
)
def test_the_parallel_kernel_gives_the_same_bits_as_the_serial_one(method, monkeypatch):
    graph, stream = ow.TrustGraph.random(200, max_receivers=8, seed=1), stream_for(30, 200, 1, 0.1)
    serial = ow.simulate(method, LOGISTIC, stream, graph, engine="fast")
    monkeypatch.setattr("oneway.simulator.fast_engine._PARALLEL_FROM", 0)
    parallel = ow.simulate(method, LOGISTIC, stream, graph, engine="fast")
    assert_same_bits(parallel, serial)


def advanced(learner, stream, mixings, ends):
    """An engine and its measurements after `advance` was called up to each of these rounds."""
    measured = Measurements.blank(stream.num_rounds)
    engine = FastEngine(learner, LOGISTIC, stream, measured, 7)
    done = 0
    for end in ends:
        while done < end:
            # Shares change every 10 rounds, whatever the ends are.
            stop = min(end, 10 * (done // 10 + 1))
            engine.advance(done, stop, mixings[done // 10 % len(mixings)])
            done = stop
    return (
        engine.state.numerators, engine.state.masses,
        measured.loss_sums, measured.correct_counts, measured.disagreement,
    )  # fmt: skip


@given(
    ends=st.lists(st.integers(1, 50), max_size=12),
    memory=st.sampled_from([1, 10_000, 16_000_000]),
    batches=st.sampled_from(BATCHES),
    mixes=st.integers(1, 3),
)
def test_stretches_of_any_lengths_give_the_same_bits_as_one(ends, memory, batches, mixes):
    learner = ow.Relay(0.2, step="curvature", batches=batches, mixes=mixes)
    stream = stream_for(50, 9, 5, 0.3)
    mixings = [ow.TrustGraph.random(9, max_receivers=5, seed=seed).mixing() for seed in range(3)]
    whole = advanced(learner, stream, mixings, [50])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oneway.simulator.release_plan._MEMORY", memory)
        cut = advanced(learner, stream, mixings, sorted({*ends, 50}))
    for expected, found in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_clip_holds_where_a_gradient_is_huge():
    """The square of the second node's gradient overflows; it then counts as 0."""
    features = np.full((2, 2, 3), 1e30)
    features[:, 1] = 1e200
    stream = ow.Stream.from_arrays(features, np.ones((2, 2)))
    learner = ow.OnlinePushSum(0.1, batches=Batches(2, 1.0))
    fast, reference = both(learner, LOGISTIC, stream, ow.TrustGraph.ring(2))
    assert_close(fast, reference)
    assert math.isfinite(fast.average_loss)


@pytest.mark.parametrize("method", [ow.OnlinePushSum, ow.Pull, ow.Relay])
@pytest.mark.parametrize("mixes", [1, 2])
def test_both_engines_diverge_in_the_same_round_at_the_same_node(method, mixes):
    rng = np.random.default_rng(0)
    stream = ow.Stream.from_arrays(20 * rng.standard_normal((400, 6, 3)), rng.random((400, 6)))
    graph, places = ow.TrustGraph.random(6, max_receivers=3, seed=1), set()
    for engine in ("reference", "fast"):
        with pytest.raises(DivergenceError) as caught:
            ow.simulate(method(5.0, mixes=mixes), MODELS["ridge"], stream, graph, engine=engine)
        places.add((caught.value.round_index, caught.value.node))
    assert len(places) == 1


def test_the_default_of_specifications_is_compiled():
    parts = assemble(Settings(data="synthetic", nodes=4, rounds=20))
    run = ow.simulate(parts.method, parts.model, parts.stream, parts.graph)
    assert run.record.config["engine"] == "fast"
    assert run.record.config["learning_rate"] == "auto"


class Slow(ow.OnlinePushSum):
    def descend(self, state, steps):
        return super().descend(state, 0.5 * steps)


class SlowRelay(ow.Relay):
    def descend(self, state, steps):
        return super().descend(state, 0.5 * steps)


class Half(Capped):
    def lengths(self, rate, masses, curvatures):
        return 0.5 * super().lengths(rate, masses, curvatures)


class Halved(Batches):
    def add(self, gradients, active, memory, rng):
        return super().add(0.5 * gradients, active, memory, rng)


@pytest.mark.parametrize(
    ("method", "same"),
    [
        (Slow(0.2), ow.OnlinePushSum(0.1)),
        (SlowRelay(0.2), ow.Relay(0.1)),
        (ow.OnlinePushSum(0.2, step=Half()), ow.OnlinePushSum(0.1, step="capped")),
        (ow.OnlinePushSum(0.2, transforms=(Clip(1e9),)), ow.OnlinePushSum(0.2)),
        (ow.OnlinePushSum(0.4, batches=Halved(3)), ow.OnlinePushSum(0.2, batches=Batches(3))),
        (ow.OnlinePushSum(0.2, transforms=(Momentum(),), batches=BATCHES[3]), None),
    ],
)
def test_the_fast_engine_leaves_everything_it_has_no_kernel_for_to_the_reference(method, same):
    """A subclass, a transform or a step rule of one's own must never run as something else."""
    stream, graph = stream_for(12, 9, 1), ow.TrustGraph.random(9, max_receivers=4, seed=1)
    run = ow.simulate(method, LOGISTIC, stream, graph)
    assert run.record.config["engine"] == "reference"
    if same is not None:
        assert_close(ow.simulate(same, LOGISTIC, stream, graph), run)
    with pytest.raises(ConfigError, match="no kernel"):
        ow.simulate(method, LOGISTIC, stream, graph, engine="fast")


def test_an_unknown_engine_is_named():
    with pytest.raises(ConfigError, match="engine='warp' is unknown"):
        ow.simulate(ow.Isolated(0.1), LOGISTIC, stream_for(2, 2), engine="warp")
