"""What people read about personal predictions."""

from __future__ import annotations

import math

import pytest

from oneway.personal.words import believes, verdict


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0.9, 0.05, 0.05], "mostly the network"),
        ([0.05, 0.9, 0.05], "mostly your own data"),
        ([0.05, 0.05, 0.9], "mostly the network, adapted to you"),
        ([1 / 6, 1 / 2, 1 / 3], "a mix of your own data, the network adapted to you and"),
        ([0.08, 0.5, 0.42], "a mix of your own data and the network adapted to you"),
        ([1 / 3, 1 / 3, 1 / 3], "a mix of"),
    ],
)
def test_the_expert_with_most_weight_is_named_first(weights: list[float], words: str) -> None:
    """Small weights are not mentioned."""
    assert believes(weights).startswith(words)


@pytest.mark.parametrize(
    ("difference", "half_width", "alone", "words"),
    [
        (-0.0155, 0.0035, 0.5, "together you lose 3.1 % less than alone (2.4 to 3.8)"),
        (0.0155, 0.0035, 0.5, "together you lose 3.1 % more than alone (2.4 to 3.8)"),
        (-0.0002, 0.0005, 0.5, "the network changes little here"),
        (0.0002, 0.03, 0.5, "not decided yet: between 6.0 % less and 6.0 % more than alone"),
        (-0.01, math.nan, 0.5, "not decided yet: too few samples"),
        (None, None, None, "not decided yet: too few samples"),
        (0.0, 0.0, 0.0, "the network cannot help here"),
    ],
)
def test_the_verdict_goes_by_the_whole_interval(
    difference: float | None, half_width: float | None, alone: float | None, words: str
) -> None:
    """Less, more, nothing, or not decided."""
    assert verdict(difference, half_width, alone).startswith(words)


def test_a_verdict_is_no_finer_than_asked_for() -> None:
    """A peer's status shows losses on a grid; the difference beside them is on it, too."""
    assert verdict(-0.0155, 0.0071, 0.15, 1.0) == "together you lose 10 % less than alone (6 to 15)"
    assert (
        verdict(-0.0155, 0.0171, 0.15, 5.0)
        == "not decided yet: between 20 % less and 0 % more than alone"
    )
