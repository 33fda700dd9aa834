"""How far a peer moves for one sample, whatever its mass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.models import LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.protocol.steps import STABLE, STEP_RULES, capped_step, mass_step, paper_step
from oneway.records import Batch

EXAMPLES = settings(deadline=None, max_examples=60)
rates = st.floats(1e-6, 1e3)
masses = st.floats(1e-12, 1e3)
curvatures = st.floats(1e-9, 1e9)


@EXAMPLES
@given(rates, masses, curvatures)
def test_the_capped_step_is_the_protocols(learning_rate, mass, curvature):
    literal = learning_rate * min(1.0, 0.5 * mass / (learning_rate * curvature))
    assert capped_step(learning_rate, mass, curvature) == pytest.approx(literal, rel=1e-12)


@EXAMPLES
@given(rates, masses)
def test_without_a_known_curvature_the_cap_is_by_mass_alone(learning_rate, mass):
    literal = learning_rate * min(1.0, mass)
    assert capped_step(learning_rate, mass, None) == literal
    assert capped_step(learning_rate, mass, 0.0) == literal


@EXAMPLES
@given(rates, masses, curvatures)
def test_the_estimate_never_moves_farther_than_half_of_what_the_sample_bears(
    learning_rate, mass, curvature
):
    moved_per_gradient = capped_step(learning_rate, mass, curvature) / mass
    assert moved_per_gradient <= STABLE / curvature * (1 + 1e-12)


@EXAMPLES
@given(rates, masses)
def test_the_other_rules_are_what_their_names_say(learning_rate, mass):
    assert mass_step(learning_rate, mass, 0.25) / mass == pytest.approx(learning_rate, rel=1e-12)
    assert paper_step(learning_rate, mass, 0.25) == learning_rate


@pytest.mark.parametrize("rule", STEP_RULES.values(), ids=STEP_RULES)
@pytest.mark.parametrize("mass", [0.0, -0.0, -1e-12, -5.0])
def test_without_a_positive_mass_no_step_is_taken(rule, mass):
    assert rule(0.3, mass, 0.25) == 0.0
    assert rule(0.3, mass, None) == 0.0


@EXAMPLES
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([LogisticRegression(0.01), RidgeRegression(0.01), SoftmaxRegression(3, 0.01)]),
    st.floats(1e-6, 1e3),
    st.floats(1e-3, 1e3),
    st.floats(1e-9, 10.0),
)
def test_with_the_capped_step_the_loss_of_the_sample_itself_never_rises(
    seed, model, size, learning_rate, mass
):
    """However large its features, however small the mass."""
    rng = np.random.default_rng(seed)
    batch = Batch(size * rng.normal(size=(1, 4)), np.ones(1))
    params = rng.normal(size=model.dim(4))
    [curvature] = model.curvature_bounds(batch.features)
    step = capped_step(learning_rate, mass, float(curvature))
    before = model.loss(params, batch)
    after = model.loss(params - step / mass * model.gradient(params, batch), batch)
    assert after <= before * (1 + 1e-9)
