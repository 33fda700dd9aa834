"""Delays, conditions and roles: what is drawn was asked for, and bad input is a sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import ConfigError
from oneway.sentences import shown
from oneway.task.conditions import Conditions, Delay, Roles, lies

HUGE = 10**5000
"""So large that Python does not write it."""
WRITTEN = st.sampled_from(
    ["0", "0.05", "fixed:1", "uniform:0.01,0.1", "exponential:0.05", "lognormal:0.05,0.5"]
)


@given(WRITTEN, st.floats(0, 1), st.floats(0, 1))
def test_a_later_quantile_is_never_a_shorter_delay(text: str, one: float, other: float) -> None:
    delay = Delay.parse(text)
    low, high = sorted((one, other))
    assert 0 <= delay.draw(low) <= delay.draw(high) <= delay.quantiles[-1]


@pytest.mark.parametrize(
    ("text", "mean"),
    [("0.05", 0.05), ("uniform:0.01,0.1", 0.055), ("exponential:0.05", 0.05),
     ("lognormal:0.05,0.5", 0.05 * math.exp(0.125))],
)  # fmt: skip
def test_draws_have_the_mean_of_the_distribution(text: str, mean: float) -> None:
    delay = Delay.parse(text)
    drawn = np.mean([delay.draw(level) for level in np.random.default_rng(0).random(20_000)])
    assert drawn == pytest.approx(mean, rel=0.03)
    assert delay.mean == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize(
    "text", ["-1", "uniform:2,1", "lognormal:0.1,-1", "sometimes", "uniform:1", "nan", "", None,
             HUGE, "3601", "exponential:1e308", "lognormal:1e308,900", "inf"],
    ids=shown,
)  # fmt: skip
def test_a_delay_that_is_none_or_longer_than_an_hour_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="delay"):
        Conditions(delay=text)  # type: ignore[arg-type]
    assert Delay.parse("3600").mean == 3600.0


@pytest.mark.parametrize(
    ("name", "bound", "beyond"),
    [("rate", 1e6, math.inf), ("unequal", 10.0, math.inf), ("loss", 0.0, -1.0),
     ("awake", 1e9, math.inf), ("crashes", 0.0, -1.0),
     ("lie", 1e6, math.inf), ("commit", 3600.0, math.inf), ("seconds", 1e9, math.inf)],
)  # fmt: skip
def test_a_bound_is_taken_and_the_next_number_is_refused(name, bound, beyond) -> None:
    assert getattr(Conditions(**{name: np.float64(bound)}), name) == bound
    with pytest.raises(ConfigError, match=f"^{name} is "):
        Conditions(**{name: math.nextafter(bound, beyond)})


@given(
    st.integers(1, 200), st.floats(0, 0.9), st.floats(0, 0.9), st.floats(0, 0.9), st.integers(0, 99)
)
def test_roles_are_as_many_as_the_shares_say(
    num_nodes: int, liars: float, joining: float, leaving: float, seed: int
) -> None:
    told = Conditions(liars=liars, joining=joining, leaving=leaving, sleepers=0.1)
    roles = Roles.draw(told, num_nodes, 60.0, seed)
    assert roles.liars.sum() == min(max(round(liars * num_nodes), int(liars > 0)), num_nodes)
    honest = num_nodes - roles.liars.sum()
    wanted = min(max(round(leaving * num_nodes), int(leaving > 0)), honest)
    assert np.isfinite(roles.leaves).sum() == wanted
    assert (roles.joins <= roles.leaves).all()
    assert not (roles.liars & (roles.sleepers | (roles.joins > 0))).any()
    norms = [np.linalg.norm(lie) for lie in lies(roles.liars, 4, 7.0, seed).values()]
    assert norms == pytest.approx([7.0] * int(roles.liars.sum()))


def test_speeds_are_lognormal_with_a_median_of_one() -> None:
    speeds = Roles.draw(Conditions(unequal=1.0), 20_000, 1.0, 0).speeds
    assert np.median(speeds) == pytest.approx(1.0, rel=0.03)
    assert np.quantile(speeds, 0.9) == pytest.approx(math.exp(1.2816), rel=0.05)


def test_a_run_lasts_as_long_as_an_ordinary_node_needs() -> None:
    assert Conditions(rate=4.0).duration(100) == 25.0
    assert Conditions(rate=4.0, seconds=7.0).duration(100) == 7.0
    with pytest.raises(ConfigError, match=r"^rate is 1e-300"):
        Conditions(rate=1e-300).duration(100)
    assert Conditions(clip=math.inf).describe()["clip"] == "infinite"
