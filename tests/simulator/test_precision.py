"""Networks in single precision: the engines agree, errors are those of rounding, mass is exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import oneway as ow
from oneway.errors import ConfigError
from oneway.simulator import fast_engine
from oneway.simulator.intrinsics import mix_single_row
from oneway.simulator.node_rows import empty_rows, mass_column, row_width

MODEL = ow.models.LogisticRegression(l2=1e-3)
NODES, ROUNDS, FEATURES = 24, 60, 3


def gaussian_stream(num_nodes=NODES, num_rounds=ROUNDS, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_rounds, num_nodes, FEATURES)).astype(np.float32)
    noise = rng.standard_normal((num_rounds, num_nodes))
    return ow.Stream.from_arrays(features, np.where(features.sum(axis=2) + noise > 0, 1.0, -1.0))


def single(method, stream=None, graph=None, engine="fast"):
    graph = ow.TrustGraph.random(NODES, 5, seed=3) if graph is None else graph
    stream = gaussian_stream() if stream is None else stream
    return ow.simulate(method, MODEL, stream, graph, engine=engine, precision="float32")


def literal(stream, graph, rate):
    """Online Push-Sum with numerators rounded to float32 wherever they are held."""
    mixing = graph.mixing().toarray()
    numerators, masses = np.zeros((stream.num_nodes, FEATURES + 1)), np.ones(stream.num_nodes)
    for round_index in range(stream.num_rounds):
        rows = stream.rows[round_index]
        samples = np.column_stack([stream.features[rows], np.ones(len(rows))])
        estimates = numerators / masses[:, None]
        margins = stream.labels[rows] * (samples * estimates).sum(axis=1)
        slopes = -stream.labels[rows] / (1 + np.exp(margins))
        gradients = slopes[:, None] * samples + MODEL.l2 * estimates
        descended = (numerators - rate * gradients).astype(np.float32).astype(float)
        numerators = (mixing.T @ descended).astype(np.float32).astype(float)
        masses = mixing.T @ masses
    return numerators, masses


def test_a_single_run_is_the_literal_one_with_rounded_numerators():
    """Rounding masses too, or sums in float32, would be off by more than one unit in the last."""
    stream, graph = gaussian_stream(), ow.TrustGraph.random(NODES, 5, seed=3)
    numerators, masses = literal(stream, graph, 0.1)
    run = single(ow.OnlinePushSum(0.1), stream, graph)
    assert run.numerators.dtype == np.float32
    assert run.masses.dtype == np.float64
    np.testing.assert_allclose(run.numerators, numerators, rtol=3e-7, atol=3e-8)
    np.testing.assert_allclose(run.masses, masses, rtol=1e-13)


@pytest.mark.parametrize(
    "method", [ow.OnlinePushSum(0.1), ow.Relay("auto"), ow.Isolated(0.1)], ids=lambda it: it.name
)
def test_both_engines_round_alike_and_little(method):
    exact = ow.simulate(method, MODEL, gaussian_stream(), ow.TrustGraph.random(NODES, 5, seed=3))
    fast, reference = (single(method, engine=engine) for engine in ("fast", "reference"))
    size = np.abs(exact.estimates).max()
    np.testing.assert_allclose(fast.estimates, reference.estimates, rtol=0, atol=1e-6 * size)
    np.testing.assert_allclose(fast.losses, reference.losses, rtol=1e-6)
    assert 0 < np.abs(fast.estimates - exact.estimates).max() < 2e-6 * size
    assert abs(fast.average_loss / exact.average_loss - 1) < 1e-6
    assert reference.numerators.dtype == fast.numerators.dtype == np.float32


@settings(max_examples=25, deadline=None)
@given(num_nodes=st.integers(2, 40), seed=st.integers(0, 10**6))
def test_total_mass_never_changes_in_single_precision(num_nodes, seed):
    """A mass of one float32 would be off by a thousand times as much."""
    graph = ow.TrustGraph.random(num_nodes, max_receivers=min(5, num_nodes - 1), seed=seed)
    run = single(ow.OnlinePushSum(0.1), gaussian_stream(num_nodes, 300, seed), graph)
    assert run.masses.sum() == pytest.approx(num_nodes, rel=1e-12)
    pushed = np.linalg.matrix_power(graph.mixing().toarray().T, 300) @ np.ones(num_nodes)
    np.testing.assert_allclose(run.masses, pushed, rtol=1e-11)


def test_results_do_not_depend_on_cores_in_either_precision(monkeypatch):
    """The kernel for large networks asks for rows ahead of time, which must change nothing."""
    graph, stream = ow.TrustGraph.random(NODES, 5, seed=3), gaussian_stream()
    for precision in ("float64", "float32"):
        runs = []
        for least_work in (0, 10**12):
            monkeypatch.setattr(fast_engine, "_PARALLEL_FROM", least_work)
            told = {"engine": "fast", "precision": precision}
            runs.append(ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph, **told))
        np.testing.assert_array_equal(runs[0].numerators, runs[1].numerators)
        np.testing.assert_array_equal(runs[0].masses, runs[1].masses)
        np.testing.assert_array_equal(runs[0].losses, runs[1].losses)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_mixing_keeps_the_sum_of_a_pair_to_48_bits(seed):
    rng = np.random.default_rng(seed)
    rows, out = (np.zeros((6, 8), np.float32) for _ in range(2))
    rows[:, :5] = rng.standard_normal((6, 5))
    masses = rng.uniform(0.01, 10, 6)
    rows[:, 6] = masses
    rows[:, 7] = masses - rows[:, 6]
    senders = rng.integers(0, 6, 9).astype(np.int32)
    shares = rng.uniform(0, 1, 9)
    _mix_third(out, rows, senders, shares)
    held = rows[:, 6].astype(float) + rows[:, 7]
    assert float(out[3, 6]) + float(out[3, 7]) == pytest.approx(shares @ held[senders], rel=1e-14)
    expected = shares @ rows[senders, :5].astype(float)
    np.testing.assert_allclose(out[3, :5], expected, rtol=7e-8, atol=1e-9)
    assert not out[[0, 1, 2, 4, 5]].any()


@njit
def _mix_third(out, rows, senders, shares):
    mix_single_row(out, rows, senders, shares, 0, len(senders), 3, 8, 6)


@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize("dim", [1, 2, 6, 7, 11, 30, 31, 32])
def test_rows_begin_at_a_cache_line_and_have_room_for_the_mass(dim, is_single):
    rows = empty_rows(5, dim, is_single)
    column = mass_column(dim, is_single)
    assert rows.ctypes.data % 64 == 0
    assert rows.shape == (5, row_width(dim, is_single))
    assert rows.strides[0] % 32 == 0
    assert dim <= column < rows.shape[1] - is_single
    assert not is_single or column % 2 == 0


def test_what_was_run_in_single_precision_says_so_and_is_run_again_so():
    run = single(ow.OnlinePushSum(0.1))
    assert run.record.config["precision"] == "float32"
    assert run.again(gaussian_stream()).numerators.dtype == np.float32
    double = ow.simulate(ow.Isolated(0.1), MODEL, gaussian_stream())
    assert "precision" not in double.record.config


def test_other_precisions_and_pushes_that_take_time_are_refused():
    arguments = ow.OnlinePushSum(0.1), MODEL, gaussian_stream(), ow.TrustGraph.ring(NODES)
    with pytest.raises(ConfigError, match="precision"):
        ow.simulate(*arguments, precision="float16")
    with pytest.raises(ConfigError, match="float32"):
        ow.simulate(*arguments, precision="float32", delays=(1, 2))
