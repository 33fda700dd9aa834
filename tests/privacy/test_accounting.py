from __future__ import annotations

import itertools
import math
from fractions import Fraction

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oneway.errors import ConfigError
from oneway.privacy import Guarantee, delta_of, epsilon_of, mu_for

MUS = (1e-4, 1e-3, 0.01, 0.1, 0.27, 0.5, 1.0, 1.9, 2.0, 2.1, 3.0, 5.0, 10.0, 30.0, 100.0)
DELTAS = (0.3, 0.01, 1e-5, 1e-9, 1e-15, 1e-30)
EPSILONS = (1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 8.0, 50.0, 1000.0, 10_000.0)

mus = st.floats(math.log(1e-4), math.log(100)).map(math.exp)
deltas = st.floats(math.log(1e-30), math.log(0.5)).map(math.exp)
epsilons = st.floats(math.log(1e-9), math.log(9_999)).map(math.exp)


def literal_delta(mu, epsilon):
    """The closed form as it is printed, with so many digits that cancellation does not matter."""
    with mpmath.workdps(100):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        first = mpmath.ncdf(mu / 2 - epsilon / mu)
        return first - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def literal_epsilon(mu, delta):
    """The smallest epsilon by plain bisection of the literal delta, 0 if none is needed."""
    with mpmath.workdps(100):
        low, high = mpmath.mpf(0), mpmath.mpf(mu) * (mu + 40)
        if literal_delta(mu, low) <= delta:
            return low
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (low, middle) if literal_delta(mu, middle) <= delta else (middle, high)
        return high


@pytest.mark.parametrize("mu", MUS)
def test_delta_is_the_closed_form_wherever_it_is_evaluated(mu):
    for tail in (-50, -20, -8, -3, -1.01, -1, -0.99, -0.3, 0, 0.01, 0.5, 1, 3, 8, 11.5, 30):
        epsilon = mu * (tail + mu / 2)
        if epsilon >= 0:
            true = literal_delta(mu, epsilon)
            assert abs(delta_of(mu, epsilon) / true - 1) < 1e-12, tail


@pytest.mark.parametrize("mu", MUS)
def test_epsilon_is_that_of_the_literal_transcription_and_never_below_it(mu):
    for delta in DELTAS:
        true = literal_epsilon(mu, delta)
        found = epsilon_of(mu, delta)
        assert true <= found <= true * (1 + 1e-9), delta


@pytest.mark.parametrize(("mu", "delta"), list(itertools.product(MUS, DELTAS)))
def test_epsilon_is_that_of_dp_accounting(mu, delta):
    oracle = dp_accounting.get_epsilon_gaussian(1 / mu, delta)
    assert epsilon_of(mu, delta) == pytest.approx(oracle, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_the_noise_is_that_of_dp_accounting(epsilon, delta):
    oracle = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert 1 / mu_for(epsilon, delta) == pytest.approx(oracle, rel=1e-8)


def test_epsilon_is_that_of_the_privacy_loss_distribution():
    """An oracle that does not know the closed form."""
    for mu, delta in ((0.27, 1e-5), (1.0, 1e-6), (1.666, 1e-5)):
        accountant = dp_accounting.pld.PLDAccountant(
            dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
        )
        accountant.compose(dp_accounting.GaussianDpEvent(1 / mu))
        assert epsilon_of(mu, delta) == pytest.approx(accountant.get_epsilon(delta), rel=1e-3)


@given(mus, deltas)
def test_an_epsilon_is_true(mu, delta):
    assert literal_delta(mu, epsilon_of(mu, delta)) <= delta


@given(epsilons, deltas)
def test_noise_keeps_what_was_promised_and_is_not_more_than_needed(epsilon, delta):
    mu = mu_for(epsilon, delta)
    assert epsilon_of(mu, delta) <= epsilon
    assert literal_delta(mu, epsilon) <= delta
    assert literal_delta(mu * (1 + 1e-8), epsilon) > delta


@given(mus, mus, deltas, deltas)
def test_more_noise_or_more_delta_is_never_a_larger_epsilon(mu, other_mu, delta, other_delta):
    weaker = epsilon_of(max(mu, other_mu), min(delta, other_delta))
    assert epsilon_of(min(mu, other_mu), max(delta, other_delta)) <= weaker * (1 + 1e-12)


@given(epsilons, epsilons, deltas, deltas)
def test_a_weaker_promise_never_needs_more_noise(epsilon, other_epsilon, delta, other_delta):
    stronger = mu_for(min(epsilon, other_epsilon), min(delta, other_delta))
    weaker = mu_for(max(epsilon, other_epsilon), max(delta, other_delta))
    assert stronger <= weaker * (1 + 1e-12)


@given(mus, st.floats(0, 6_000), st.floats(0, 6_000))
def test_delta_is_a_probability_that_falls_with_epsilon(mu, epsilon, other_epsilon):
    low, high = sorted((epsilon, other_epsilon))
    assert 0 <= delta_of(mu, high) <= delta_of(mu, low) * (1 + 1e-12) <= 1 + 1e-12


def test_no_epsilon_is_needed_if_delta_covers_everything():
    assert epsilon_of(1e-4, 1e-4) == 0
    assert delta_of(1e-4, 0.0) < 1e-4


@pytest.mark.parametrize("mu", [5e-324, 1e-300, 1e-30])
def test_absurdly_much_noise_needs_no_epsilon(mu):
    assert epsilon_of(mu, 1e-5) == 0
    assert delta_of(mu, 0.0) <= mu
    assert delta_of(mu, 1.0) == 0


@pytest.mark.parametrize("mu", [1e3, 1e6, 1e30, 1e300])
def test_hardly_any_noise_has_an_enormous_epsilon(mu):
    assert epsilon_of(mu, 1e-5) >= mu * mu / 2  # infinite, where no double is large enough
    assert delta_of(mu, 1.0) == 1


@given(epsilons, deltas, st.integers(1, 10_000))
@example(1.0, 0.0025048598320383014, 2)
def test_a_group_composes_to_what_was_promised_for_it(epsilon, delta, records):
    guarantee = Guarantee(epsilon, delta, unit="group", records_per_group=records)
    assert guarantee.epsilon_of_records(records) <= epsilon
    assert epsilon_of(records / guarantee.noise_multiplier, delta) <= epsilon
    # In exact arithmetic too: every rounding goes to the safe side.
    whole, mu = Fraction(mu_for(epsilon, delta)), Fraction(guarantee.mu)
    assert whole * (1 - Fraction(1, 10**12)) < records * mu <= whole
    assert mu * Fraction(guarantee.noise_multiplier) >= 1


@given(epsilons, deltas, st.integers(1, 100), st.integers(1, 100))
def test_a_person_with_more_records_has_a_larger_epsilon(epsilon, delta, few, more):
    few, more = sorted((few, more))
    guarantee = Guarantee(epsilon, delta)
    fewer = guarantee.epsilon_of_records(few)
    assert fewer <= guarantee.epsilon_of_records(more) * (1 + 1e-12)
    assert fewer == epsilon_of(few * guarantee.mu, delta)


def test_replacement_doubles_mu():
    """Contents u against contents -u are twice as far apart as contents u against none."""
    guarantee = Guarantee(1.0, 1e-5)
    true = literal_epsilon(2 * guarantee.mu, 1e-5)
    assert guarantee.replacement == pytest.approx(float(true), rel=1e-9)
    assert guarantee.replacement > 2 * guarantee.epsilon  # doubling epsilon is not enough
    group = Guarantee(1.0, 1e-5, unit="group", records_per_group=7)
    assert group.replacement == pytest.approx(guarantee.replacement, rel=1e-9)


# Methods that are wrong, by name: what each of them promises is not kept.


def kept(mu, epsilon, delta):
    return literal_delta(mu, epsilon) <= delta


def test_the_classical_formula_promises_too_much_at_a_large_epsilon():
    """The noise sqrt(2 ln(1.25 / delta)) / epsilon is proven for epsilon below 1 only."""
    delta = 1e-5
    for epsilon, holds in ((0.5, True), (8.0, True), (20.0, False), (50.0, False)):
        classical = epsilon / math.sqrt(2 * math.log(1.25 / delta))
        assert kept(classical, epsilon, delta) is holds
        assert kept(mu_for(epsilon, delta), epsilon, delta)


def test_the_classical_formula_wastes_noise_at_a_small_epsilon():
    classical = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert 1 / mu_for(1.0, 1e-5) < 0.8 * classical


def test_the_square_root_of_k_is_not_enough_for_a_group():
    """It is right for records in unrelated releases, but a group may be in one batch."""
    epsilon, delta, records = 1.0, 1e-5, 9
    guarantee = Guarantee(epsilon, delta, unit="group", records_per_group=records)
    wrong = mu_for(epsilon, delta) / math.sqrt(records)
    # One batch of nine equal clipped gradients, with and without them: the means' distance.
    distance = np.linalg.norm(np.tile([0.6, 0.8], (records, 1)).sum(axis=0))
    assert kept(distance * guarantee.mu * (1 - 1e-12), epsilon, delta)
    assert not kept(distance * wrong, epsilon, delta)
    assert epsilon_of(distance * wrong, delta) > 3 * epsilon


def test_k_times_epsilon_is_not_true_for_a_group_at_the_same_delta():
    guarantee = Guarantee(1.0, 1e-5)
    assert not kept(5 * guarantee.mu, 5 * 1.0, 1e-5)
    assert guarantee.epsilon_of_records(5) > 5.0


# Bad input.


NO_NUMBERS = (math.nan, math.inf, 10**400, "1", None)


@pytest.mark.parametrize(
    ("calls", "culprit", "values"),
    [
        (
            (lambda it: mu_for(it, 1e-5), lambda it: Guarantee(it, 1e-5)),
            "epsilon",
            (0, -1.0, 1e-12, 1e9, True, *NO_NUMBERS),
        ),
        ((lambda it: delta_of(1.0, it),), "epsilon", (-1e-9, *NO_NUMBERS)),
        (
            (
                lambda it: mu_for(1.0, it),
                lambda it: epsilon_of(1.0, it),
                lambda it: Guarantee(1.0, it),
            ),
            "delta",
            (0, 1, -0.1, 1.5, [], *NO_NUMBERS),
        ),
        (
            (lambda it: delta_of(it, 0.5), lambda it: epsilon_of(it, 0.5)),
            "mu",
            (0, -1.0, False, *NO_NUMBERS),
        ),
        (
            (lambda it: Guarantee(1.0, 1e-5, unit="group", records_per_group=it),),
            "records_per_group",
            (0, -1, 2.0, True, None, 10**12),
        ),
        ((Guarantee(1.0, 1e-5).epsilon_of_records,), "count", (0, -1, 2.0, True, None, 10**12)),
    ],
)
def test_a_number_that_breaks_its_rule_is_named(calls, culprit, values):
    for call, value in itertools.product(calls, values):
        with pytest.raises(ConfigError, match=rf"^{culprit} is "):
            call(value)


def test_a_unit_that_does_not_exist_or_contradicts_the_group_is_named():
    with pytest.raises(ConfigError, match=r"^unit is 'person'"):
        Guarantee(1.0, 1e-5, unit="person")
    with pytest.raises(ConfigError, match=r"^unit is a list"):
        Guarantee(1.0, 1e-5, unit=["group"])
    with pytest.raises(ConfigError, match=r"^records_per_group is 5"):
        Guarantee(1.0, 1e-5, records_per_group=5)


# What people read.


@given(epsilons, deltas)
def test_the_sentence_never_shows_a_smaller_replacement_epsilon_than_holds(epsilon, delta):
    guarantee = Guarantee(epsilon, delta)
    shown = float(guarantee.sentence.rsplit("epsilon ", 1)[1].rstrip(")"))
    assert guarantee.replacement <= shown <= guarantee.replacement * 1.01
