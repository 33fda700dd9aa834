"""Delays, conditions and roles: what is drawn was asked for, and bad input is a sentence."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.asynchronous.conditions import Conditions
from oneway.asynchronous.delay import Delay
from oneway.asynchronous.roles import Roles, lies
from oneway.errors import ConfigError
from oneway.sentences import shown

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


def test_measured_delays_are_drawn_as_often_as_they_were_measured() -> None:
    delay = Delay.measured([0.3, 0.1, 0.2])
    assert [delay.draw(level) for level in (0.0, 0.5, 1.0)] == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    "text", ["-1", "uniform:-1,2", "uniform:2,1", "exponential:-0.1", "lognormal:0.1,-1",
             "sometimes", "uniform:1", "nan", "inf", "", "lognormal:1,nan", None, True, HUGE],
    ids=shown,
)  # fmt: skip
def test_a_delay_that_is_none_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match="delay"):
        Conditions(delay=text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["3601", "uniform:1,3601", "exponential:1000", "exponential:1e308", "lognormal:1,1000",
             "lognormal:1,3", "lognormal:1e308,900", "inf", 10**400],
    ids=shown,
)  # fmt: skip
def test_no_delay_is_longer_than_an_hour(text: str) -> None:
    with pytest.raises(ConfigError, match=r"delay.* at most 3600"):
        Conditions(delay=text)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="at most 3600"):
        Delay.measured([0.1, 3601.0])
    assert Delay.parse("3600").mean == 3600.0


@pytest.mark.parametrize(
    ("name", "value"),
    [("rate", 0.0), ("rate", math.inf), ("unequal", -1.0), ("loss", 1.0), ("loss", -0.1),
     ("bandwidth", 0.0), ("sleepers", 1.0), ("awake", 0.0), ("crashes", math.nan),
     ("down", -1.0), ("liars", 2.0), ("lie", math.inf), ("window", 65), ("clip", 0.0),
     ("commit", -1.0), ("presume_dead_after", 0.0), ("seconds", 0.0)],
)  # fmt: skip
def test_a_condition_outside_its_rule_is_named(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is "):
        Conditions(**{name: value})


NUMBERS = [it.name for it in fields(Conditions) if it.type.startswith("Annotated[float")]


@pytest.mark.parametrize("value", ["10", None, True, [1.0], HUGE, 1j, math.nan], ids=shown)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_of_another_kind_is_named_when_conditions_are_made(
    name: str, value: object
) -> None:
    if (name, value) == ("seconds", None):
        assert Conditions(seconds=None).seconds is None
        return
    with pytest.raises(ConfigError, match=f"^{name} is .*must be "):
        Conditions(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [("poisson", "no"), ("poisson", 1), ("ordered", None), ("window", 1.5), ("window", True),
     ("window", "4")],
)  # fmt: skip
def test_a_switch_or_count_of_another_kind_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is .*must be "):
        Conditions(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "most"),
    [("rate", 1e6), ("unequal", 10.0), ("awake", 1e9), ("asleep", 1e9), ("down", 1e9),
     ("lie", 1e6), ("commit", 3600.0), ("presume_dead_after", 1e9), ("seconds", 1e9)],
)  # fmt: skip
def test_the_largest_value_is_taken_and_the_next_one_refused_with_the_bound(
    name: str, most: float
) -> None:
    assert getattr(Conditions(**{name: np.float64(most)}), name) == most
    with pytest.raises(ConfigError, match=f"^{name} is .*{most:,.0f}"):
        Conditions(**{name: math.nextafter(most, math.inf)})


@pytest.mark.parametrize(("name", "least"), [("bandwidth", 1.0), ("crashes", 1e-9)])
def test_the_smallest_value_is_taken_and_the_next_one_refused_with_the_bound(
    name: str, least: float
) -> None:
    assert getattr(Conditions(**{name: least}), name) == least
    with pytest.raises(ConfigError, match=f"^{name} is .*{'1e-9' if least < 1 else '1 byte'}"):
        Conditions(**{name: math.nextafter(least, 0.0)})
    assert Conditions(crashes=0).crashes == 0.0


def test_values_of_numpy_become_plain_ones() -> None:
    told = Conditions(
        rate=np.int64(4), poisson=np.bool_(False), window=np.int64(3), loss=np.float32(0.5)
    )  # type: ignore[arg-type]
    found = told.rate, told.poisson, told.window, told.loss
    assert repr(found) == "(4.0, False, 3, 0.5)"


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
    norms = [np.linalg.norm(lie) for lie in lies(roles, 4, 7.0, seed).values()]
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
    assert Conditions().describe()["bandwidth"] == "infinite"
