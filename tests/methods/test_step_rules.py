"""How far a node moves for one sample, whatever its mass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import ConfigError
from oneway.methods.step_rules import STEP_RULES, Capped, Curvature, Mass, Paper, StepRule
from oneway.models import LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.records import Batch

EXAMPLES = settings(deadline=None, max_examples=60)
rates = st.floats(1e-6, 1e3)
masses = st.floats(1e-12, 1e3)
curvatures = st.floats(1e-9, 1e9)


def length(rule: StepRule, rate: float, mass: float, curvature: float | None) -> float:
    bends = None if curvature is None else np.array([curvature])
    return float(rule.lengths(rate, np.array([mass]), bends)[0])


@EXAMPLES
@given(rates, masses, curvatures)
def test_the_curvature_limited_step_is_the_protocols(learning_rate, mass, curvature):
    literal = learning_rate * min(1.0, 0.5 * mass / (learning_rate * curvature))
    assert length(Curvature(), learning_rate, mass, curvature) == pytest.approx(literal, rel=1e-12)


@EXAMPLES
@given(rates, masses)
def test_without_a_known_curvature_the_cap_is_by_mass_alone(learning_rate, mass):
    literal = learning_rate * min(1.0, mass)
    assert length(Curvature(), learning_rate, mass, None) == literal
    assert length(Curvature(), learning_rate, mass, 0.0) == literal
    assert length(Capped(), learning_rate, mass, 0.25) == literal


@EXAMPLES
@given(rates, masses, curvatures)
def test_the_estimate_never_moves_farther_than_half_of_what_the_sample_bears(
    learning_rate, mass, curvature
):
    moved_per_gradient = length(Curvature(), learning_rate, mass, curvature) / mass
    assert moved_per_gradient <= 0.5 / curvature * (1 + 1e-12)


@EXAMPLES
@given(rates, masses)
def test_the_other_rules_are_what_their_names_say(learning_rate, mass):
    assert length(Mass(), learning_rate, mass, 0.25) / mass == pytest.approx(
        learning_rate, rel=1e-12
    )
    assert length(Paper(), learning_rate, mass, 0.25) == learning_rate
    assert length(Capped(3.0), learning_rate, mass, None) == learning_rate * min(3.0, mass)


@pytest.mark.parametrize("name", STEP_RULES)
@pytest.mark.parametrize("mass", [0.0, -0.0, -1e-12, -5.0])
def test_without_a_positive_mass_no_step_is_taken(name, mass):
    assert length(STEP_RULES[name](), 0.3, mass, 0.25) == 0.0
    assert length(STEP_RULES[name](), 0.3, mass, None) == 0.0


@pytest.mark.parametrize(
    ("rule", "options", "culprit"),
    [
        (Capped, {"cap": 0.0}, "cap is 0"),
        (Capped, {"cap": float("inf")}, "cap is inf"),
        (Curvature, {"stable": 0}, "stable is 0"),
        (Curvature, {"stable": 2.1}, "stable is 2.1"),
    ],
)
def test_a_parameter_that_breaks_its_rule_is_named(rule, options, culprit):
    with pytest.raises(ConfigError, match=culprit):
        rule(**options)


@EXAMPLES
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([LogisticRegression(0.01), RidgeRegression(0.01), SoftmaxRegression(3, 0.01)]),
    st.floats(1e-6, 1e3),
    st.floats(1e-3, 1e3),
    st.floats(1e-9, 10.0),
)
def test_with_the_curvature_limited_step_the_loss_of_the_sample_itself_never_rises(
    seed, model, size, learning_rate, mass
):
    """However large its features, however small the mass."""
    rng = np.random.default_rng(seed)
    batch = Batch(size * rng.normal(size=(1, 4)), np.ones(1))
    params = rng.normal(size=model.dim(4))
    [curvature] = model.curvature_bounds(batch.features)
    step = length(Curvature(), learning_rate, mass, float(curvature))
    before = model.loss(params, batch)
    after = model.loss(params - step / mass * model.gradient(params, batch), batch)
    assert after <= before * (1 + 1e-9)
