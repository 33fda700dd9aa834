from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import MixingError
from oneway.topology import stationary_masses
from theory import ergodicity, graph_constants, smallest_mass

ONE_WAY = ow.TrustGraph.random(20, max_receivers=3, seed=1)


@st.composite
def mixings(draw):
    """Any shares on a strongly connected graph in which everybody keeps something."""
    num_nodes = draw(st.integers(2, 12))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    graph = ow.TrustGraph.random(num_nodes, rng.integers(1, num_nodes), int(rng.integers(10**6)))
    shares = graph.mixing().toarray() * rng.uniform(0.1, 1, (num_nodes, num_nodes))
    return shares / shares.sum(axis=1, keepdims=True)


def largest_errors(mixing, num_powers):
    """max_ij |[(W^T)^k]_ij - psi_i| for k = 1, 2, ..., from powers of the transpose."""
    stationary = stationary_masses(mixing) / len(mixing)
    power, errors = np.eye(len(mixing)), []
    for _ in range(num_powers):
        power = mixing.T @ power
        errors.append(np.abs(power - stationary[:, None]).max())
    return np.array(errors)


def holds(errors, factor, rate):
    """Whether the inequality holds, up to the rounding errors of the powers themselves."""
    allowed = factor * rate ** np.arange(1, len(errors) + 1)
    return bool(np.all(errors <= allowed * (1 + 1e-9) + 1e-13))


@settings(max_examples=60)
@given(mixings())
def test_no_share_is_off_by_more_than_the_fitted_decay(mixing):
    fitted = ergodicity(mixing)
    assert 0 <= fitted.rate < 1
    assert fitted.proven
    errors = largest_errors(mixing, 4 * fitted.num_powers + 100)
    assert holds(errors, fitted.factor, fitted.rate)


@settings(max_examples=60)
@given(mixings())
def test_a_factor_one_per_cent_smaller_is_too_small(mixing):
    fitted = ergodicity(mixing)
    assume(fitted.factor > 1e-6)
    errors = largest_errors(mixing, fitted.num_powers)
    assert not holds(errors, 0.99 * fitted.factor, fitted.rate)


# Two complex eigenvalues, in whose powers the norm stands still for a moment.
@example(np.array([[0.181, 0.0, 0.819], [0.53, 0.47, 0.0], [0.0, 0.698, 0.302]]))
@settings(max_examples=60)
@given(mixings())
def test_the_rate_keeps_its_distance_from_the_second_eigenvalue_and_no_other_pair_is_better(mixing):
    fitted = ergodicity(mixing)
    modulus = np.sort(np.abs(np.linalg.eigvals(mixing)))[-2]
    assert fitted.rate >= modulus + 0.04 * (1 - modulus) or fitted.factor == 0
    errors = largest_errors(mixing, fitted.num_powers)
    powers = np.arange(1, fitted.num_powers + 1)
    lowest = modulus + 0.07 * (1 - modulus)
    for rate in np.linspace(lowest, 1, 30, endpoint=False):
        factor = (errors * rate**-powers).max()
        assert fitted.total <= factor * rate / (1 - rate) * 1.01 + 1e-9


def test_the_transposed_matrix_does_not_decay():
    mixing = ONE_WAY.mixing().toarray()
    fitted = ergodicity(mixing)
    stationary = stationary_masses(mixing) / len(mixing)
    errors = [
        np.abs(np.linalg.matrix_power(mixing, power) - stationary[:, None]).max()
        for power in range(1, 200)
    ]
    assert holds(largest_errors(mixing, 200), fitted.factor, fitted.rate)
    assert not holds(np.array(errors), fitted.factor, fitted.rate)
    assert min(errors) > 0.1


def test_a_periodic_graph_is_refused_with_a_remedy():
    swap = ow.TrustGraph.ring(6).mixing(kept_share=0.0)
    with pytest.raises(MixingError, match=r"periodic or nearly so; let nodes keep a share"):
        ergodicity(swap)


def test_in_large_networks_the_pair_is_an_estimate_near_the_computed_one():
    graph = ow.TrustGraph.random(600, max_receivers=2, seed=3)
    whole = ergodicity(graph.mixing())
    sampled = ergodicity(graph.mixing(), dense_nodes=100)
    assert whole.proven
    assert not sampled.proven
    assert sampled.rate == pytest.approx(whole.rate, abs=0.02)
    assert sampled.total == pytest.approx(whole.total, rel=0.1)


@settings(max_examples=60)
@given(mixings())
def test_no_mass_is_ever_smaller_than_the_smallest(mixing):
    smallest = smallest_mass(mixing)
    masses, seen = np.ones(len(mixing)), math.inf
    for _ in range(3000):
        masses = mixing.T @ masses
        seen = min(seen, masses.min())
    assert smallest == pytest.approx(min(seen, stationary_masses(mixing).min()), rel=1e-8)
    assert smallest <= seen * (1 + 1e-12)


def test_a_mass_that_dips_on_the_way_counts():
    """Two feed a third and get nothing for a while: masses undershoot before they settle."""
    mixing = np.array([[0.01, 0.99, 0], [0, 0.01, 0.99], [0.9, 0, 0.1]])
    assert smallest_mass(mixing) < 0.99 * stationary_masses(mixing).min()


def test_the_constants_are_those_of_the_theorem():
    constants = graph_constants(ONE_WAY.mixing())
    factor, rate = constants.ergodicity.factor, constants.ergodicity.rate
    delta_min = constants.smallest_mass / 20
    spread = factor * rate / (delta_min * (1 - rate))
    assert constants.gradient_constant == pytest.approx(8 * spread + 1, rel=1e-12)
    assert constants.noise_constant == pytest.approx(2 * spread, rel=1e-12)
    assert constants.smallest_mass == smallest_mass(ONE_WAY.mixing())
    assert constants.worst_case_digits == pytest.approx(53.55, abs=0.01)
