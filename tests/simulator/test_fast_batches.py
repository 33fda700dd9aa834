"""Methods with batches, clipped and noised: fast = reference, however the rounds are cut."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import DivergenceError
from oneway.methods import Batches
from oneway.methods.step_rules import Capped
from oneway.methods.transforms import Momentum
from oneway.simulator.fast_engine import FastEngine
from oneway.simulator.measurements import Measurements
from oneway.task.assembly import assemble
from oneway.task.settings import Settings

MODELS = {
    "logistic": ow.models.LogisticRegression(l2=1e-2, intercept=True),
    "logistic without intercept": ow.models.LogisticRegression(l2=0.0, intercept=False),
    "ridge": ow.models.RidgeRegression(l2=1e-2, intercept=True),
    "hinge": ow.models.Hinge(l2=1e-2, intercept=True),
}
BATCHES = {
    "sums": Batches(4),
    "every sample": Batches(1, 0.5),
    "clip": Batches(5, 0.7),
    "noise": Batches(5, 0.7, 0.8),
    "band 5": Batches(3, 0.7, 0.8, 5),
}
METHODS = (
    ow.OnlinePushSum,
    ow.MutualGossip,
    ow.NaiveGossip,
    ow.Centralised,
    ow.Isolated,
    ow.Pull,
    ow.Relay,
    partial(ow.Relay, deposit="mass", amount=0.6, mixes=2),
)
STEPS = ("paper", "mass", "curvature", Capped(0.4))
NODES, ROUNDS = 17, 50


def ragged(holes=0.3, num_nodes=NODES, num_rounds=ROUNDS, seed=5):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_rounds, num_nodes, 8)).astype(np.float32)
    labels = rng.choice([-1.0, 1.0], (num_rounds, num_nodes)).astype(np.float32)
    full = ow.Stream.from_arrays(features, labels)
    rows = np.where(rng.random(full.rows.shape) < holes, -1, full.rows)
    return ow.Stream(full.features, full.labels, rows)


def graphs():
    return [ow.TrustGraph.random(NODES, max_receivers=5, seed=seed) for seed in range(3)]


def assert_close(fast, reference):
    for field in ("estimates", "masses", "losses", "disagreement"):
        np.testing.assert_allclose(
            getattr(fast, field), getattr(reference, field), rtol=1e-9, atol=1e-12
        )
    assert fast.accuracy == reference.accuracy


def both(method, model, stream, graph, seed=3):
    fast, reference = (
        ow.simulate(method, model, stream, graph, engine=engine, seed=seed)
        for engine in ("fast", "reference")
    )
    assert fast.record.config["engine"] == "fast"
    return fast, reference


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES.keys())
def test_fast_equals_reference_for_every_method_step_rule_and_model(name, batches):
    stream, turns = ragged(), graphs()
    for method, step in itertools.product(METHODS, STEPS):
        rate = ow.InverseSqrt(0.3) if step == "paper" else 0.2
        learner = method(rate, step=step, batches=batches)
        assert_close(*both(learner, MODELS[name], stream, turns))


@pytest.mark.parametrize(("name", "steps"), [("logistic", STEPS), ("ridge", ("curvature",))])
@pytest.mark.parametrize(
    "batches", [None, BATCHES["sums"], BATCHES["band 5"]], ids=["none", "sums", "band 5"]
)
def test_fast_equals_reference_where_nodes_choose_their_rates(name, steps, batches):
    stream, turns = ragged(), graphs()
    for method, step in itertools.product(METHODS, steps):
        fast, reference = both(
            method("auto", step=step, batches=batches), MODELS[name], stream, turns
        )
        assert_close(fast, reference)
        assert np.abs(fast.estimates).max() > 1e-3


def test_what_specifications_have_by_default_is_compiled():
    parts = assemble(Settings(data="synthetic", nodes=4, rounds=20))
    run = ow.simulate(parts.method, parts.model, parts.stream, parts.graph)
    assert run.record.config["engine"] == "fast"
    assert run.record.config["learning_rate"] == "auto"


def test_both_engines_draw_from_the_runs_seed():
    learner = ow.OnlinePushSum(0.1, batches=BATCHES["band 5"])
    runs = [both(learner, MODELS["logistic"], ragged(), graphs(), seed) for seed in (1, [1, 2])]
    for fast, reference in runs:
        assert_close(fast, reference)
    assert np.abs(runs[0][0].estimates - runs[1][0].estimates).max() > 1e-3


def test_a_rate_of_zero_learns_nothing_and_is_no_division_by_zero():
    learner = ow.OnlinePushSum(0.0, step="curvature", batches=BATCHES["band 5"])
    fast, reference = both(learner, MODELS["logistic"], ragged(), graphs())
    assert_close(fast, reference)
    assert not fast.estimates.any()


@pytest.mark.parametrize("step", ["paper", "mass", Capped(0.4)])
def test_batches_of_one_sample_without_clip_and_noise_are_no_batches(step):
    stream, turns = ragged(), graphs()
    for engine in ("fast", "reference"):
        plain, batched = (
            ow.simulate(
                ow.OnlinePushSum(0.2, step=step, batches=batches),
                MODELS["ridge"],
                stream,
                turns,
                engine=engine,
            )
            for batches in (None, Batches(1))
        )
        assert_close(batched, plain)


def test_without_a_full_batch_no_step_is_taken():
    stream = ragged(holes=0.0)
    learner = ow.OnlinePushSum(0.2, batches=Batches(ROUNDS + 1, 1.0, 1.0, 5))
    fast, reference = both(learner, MODELS["logistic"], stream, graphs())
    assert not fast.estimates.any()
    assert not reference.estimates.any()


def advanced(learner, stream, mixings, ends):
    """Numerators, masses and measurements after `advance` was called up to each of these rounds."""
    measured = Measurements.blank(stream.num_rounds)
    engine = FastEngine(learner, MODELS["logistic"], stream, measured, 7)
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


@settings(deadline=None, max_examples=40)
@given(
    ends=st.lists(st.integers(1, ROUNDS), max_size=12),
    memory=st.sampled_from([1, 10_000, 16_000_000]),
    batches=st.sampled_from([None, *BATCHES.values()]),
    step=st.sampled_from(STEPS),
    method=st.sampled_from([ow.OnlinePushSum, ow.Pull, ow.Relay]),
    mixes=st.integers(1, 3),
)
def test_stretches_of_any_lengths_give_the_same_bits_as_one(
    ends, memory, batches, step, method, mixes
):
    learner = method(0.2, step=step, batches=batches, mixes=mixes)
    stream, mixings = ragged(), [graph.mixing() for graph in graphs()]
    whole = advanced(learner, stream, mixings, [ROUNDS])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oneway.simulator.release_plan._MEMORY", memory)
        cut = advanced(learner, stream, mixings, sorted({*ends, ROUNDS}))
    for expected, found in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", [ow.OnlinePushSum, ow.Relay])
def test_the_parallel_kernel_gives_the_same_bits_as_the_serial_one(method, monkeypatch):
    stream = ragged(num_nodes=200, num_rounds=30)
    graph = ow.TrustGraph.random(200, max_receivers=8, seed=1)
    learner = method(0.2, step="curvature", batches=BATCHES["band 5"])
    serial = ow.simulate(learner, MODELS["logistic"], stream, graph, engine="fast")
    monkeypatch.setattr("oneway.simulator.fast_engine._PARALLEL_FROM", 0)
    parallel = ow.simulate(learner, MODELS["logistic"], stream, graph, engine="fast")
    np.testing.assert_array_equal(parallel.numerators, serial.numerators)
    np.testing.assert_array_equal(parallel.record.loss_sums, serial.record.loss_sums)


@pytest.mark.parametrize("method", [ow.OnlinePushSum, ow.Pull, ow.Relay])
@pytest.mark.parametrize("batches", [Batches(3), None])
@pytest.mark.parametrize("mixes", [1, 2])
def test_both_engines_diverge_in_the_same_round_at_the_same_node(method, batches, mixes):
    rng = np.random.default_rng(0)
    stream = ow.Stream.from_arrays(
        (10 * rng.standard_normal((400, 6, 8))).astype(np.float32), rng.random((400, 6))
    )
    places = set()
    for engine in ("reference", "fast"):
        with pytest.raises(DivergenceError) as caught:
            ow.simulate(
                method(5.0, batches=batches, mixes=mixes),
                MODELS["ridge"],
                stream,
                ow.TrustGraph.random(6, max_receivers=3, seed=1),
                engine=engine,
            )
        places.add((caught.value.round_index, caught.value.node))
    assert len(places) == 1


def test_a_clip_holds_where_a_gradient_is_huge():
    """The square of the second node's is no finite number; it then counts as 0."""
    features = np.full((4, 2, 8), 1e30, np.float64)
    features[:, 1] = 1e200
    stream = ow.Stream.from_arrays(features, np.ones((4, 2)))
    learner = ow.OnlinePushSum(0.1, batches=Batches(2, 1.0))
    fast, reference = both(learner, MODELS["logistic"], stream.head(2), ow.TrustGraph.ring(2))
    assert_close(fast, reference)
    assert math.isfinite(fast.average_loss)


def test_batches_of_ones_own_run_in_the_reference():
    class Halved(Batches):
        def add(self, gradients, active, memory, rng):
            return super().add(0.5 * gradients, active, memory, rng)

    own, plain = (
        ow.simulate(ow.OnlinePushSum(rate, batches=batches), MODELS["logistic"], ragged(), graphs())
        for rate, batches in ((0.4, Halved(3)), (0.2, Batches(3)))
    )
    assert own.record.config["engine"] == "reference"
    assert_close(own, plain)


def test_with_transforms_the_reference_runs():
    learner = ow.OnlinePushSum(0.2, transforms=(Momentum(),), batches=BATCHES["noise"])
    run = ow.simulate(learner, MODELS["logistic"], ragged(), graphs())
    assert run.record.config["engine"] == "reference"
