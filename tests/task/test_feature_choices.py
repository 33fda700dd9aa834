"""Which features are one choice, told from their centers and scales alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.task.feature_choices import Choice, with_choices
from oneway.task.task import Feature, Task


def columns(name, shares):
    """One feature for each share, as columns of 0 and 1 are scaled."""
    return [
        Feature(f"{name} {option}", share, float(np.sqrt(share * (1.0 - share))))
        for option, share in shares.items()
    ]


def names(found):
    return [each.name for each in found]


def test_carriers_and_airports_of_real_flights_are_choices_and_numbers_are_not():
    task = Task.of(ow.streams.load("flights"))
    found = list(with_choices(task.features))
    choices = {each.name: each for each in found if isinstance(each, Choice)}
    assert choices.keys() == {"carrier", "origin"}
    assert list(choices["origin"].options) == ["EWR", "JFK", "LGA"]
    assert {"AA", "UA", "other"} <= choices["carrier"].options.keys()
    assert choices["origin"].most_frequent == "EWR"
    assert {"hour", "distance", "temp", "hour sin"} <= {
        each.name for each in found if isinstance(each, Feature)
    }


@given(st.lists(st.lists(st.integers(1, 20), min_size=2, max_size=6), min_size=1, max_size=4))
def test_every_group_of_columns_of_which_one_is_one_is_found(counts):
    features = [Feature("first", 3.0, 2.0)]
    for number, group in enumerate(counts):
        shares = {f"option {n}": count / sum(group) for n, count in enumerate(group)}
        features += columns(f"group{number} of", shares)
        features.append(Feature(f"between{number}", -0.4, 0.7))
    found = list(with_choices(features))
    choices = [each for each in found if isinstance(each, Choice)]
    assert names(choices) == [f"group{number} of option" for number in range(len(counts))]
    for choice, group in zip(choices, counts, strict=True):
        assert list(choice.options) == [str(n) for n in range(len(group))]
        assert group[int(choice.most_frequent)] == max(group)
    # Nothing is lost, and the order stays.
    flat = []
    for each in found:
        flat += list(each.options.values()) if isinstance(each, Choice) else [each]
    assert flat == features


@pytest.mark.parametrize(
    "features",
    [
        pytest.param(columns("origin", {"EWR": 0.5, "JFK": 0.4}), id="none of them is possible"),
        pytest.param(columns("day", {"wet": 0.7, "warm": 0.6}), id="several are possible"),
        pytest.param(columns("is", {"wet": 0.3}), id="one column"),
        pytest.param([Feature("a", 0.5, 0.5), Feature("b", 0.5, 0.5)], id="nothing in common"),
        pytest.param([Feature("a", 0.5, 0.5), Feature("a b", 0.5, 0.5)], id="a name without rest"),
        pytest.param([Feature("x a", 0.5, 0.4), Feature("x b", 0.5, 0.4)], id="not 0 and 1"),
        pytest.param([Feature("x a"), Feature("x b")], id="never scaled"),
    ],
)
def test_what_may_be_no_choice_stays_as_it_is(features):
    assert list(with_choices(features)) == features


def test_a_column_before_a_choice_does_not_hide_it():
    wet, *origins = columns("is", {"wet": 0.3}) + columns("origin", {"EWR": 0.6, "JFK": 0.4})
    found = list(with_choices([wet, *origins]))
    assert names(found) == ["is wet", "origin"]
