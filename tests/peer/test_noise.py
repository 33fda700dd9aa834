"""The noise of a peer: standard normal numbers that nobody can repeat."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from scipy.special import ndtr

from oneway.peer.noise import SecretNormals


def test_they_are_standard_normal():
    """The largest distance from the distribution function; one test in 10^20 would exceed it."""
    numbers = np.sort(SecretNormals().standard_normal((100_000, 2)).ravel())
    steps = np.arange(numbers.size + 1) / numbers.size
    below, above = ndtr(numbers) - steps[:-1], steps[1:] - ndtr(numbers)
    assert max(below.max(), above.max()) < 4.9 / math.sqrt(numbers.size)


def test_neighbours_have_nothing_in_common():
    """Neither within a pair of the method of Box and Muller, nor between rows or columns."""
    numbers = SecretNormals().standard_normal((50_000, 4))
    together = np.hstack([numbers[:-1], numbers[1:]])
    correlations = np.corrcoef(together.T) - np.eye(8)
    assert np.abs(correlations).max() < 8 / math.sqrt(len(together))
    of_squares = np.corrcoef((together**2).T) - np.eye(8)
    assert np.abs(of_squares).max() < 8 / math.sqrt(len(together))


@pytest.mark.parametrize("size", [(1, 1), (1, 3), (2, 2), (3, 5), (0, 4), 7])
def test_there_are_as_many_as_asked_for(size):
    assert SecretNormals().standard_normal(size).shape == (
        size if isinstance(size, tuple) else (7,)
    )


def test_no_two_draws_are_alike():
    draws = [SecretNormals().standard_normal((1, 8)) for _ in range(3)]
    draws += [source.standard_normal((1, 8)) for source in [SecretNormals()] for _ in range(3)]
    assert len({number for draw in draws for number in draw.ravel().tolist()}) == 6 * 8


def test_no_seed_can_make_them_repeat():
    np.random.seed(1)  # noqa: NPY002
    one = SecretNormals().standard_normal((1, 4))
    np.random.seed(1)  # noqa: NPY002
    assert not np.any(one == SecretNormals().standard_normal((1, 4)))


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_they_are_finite_whatever_the_generator_says(byte, monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda count: byte * count)
    assert np.isfinite(SecretNormals().standard_normal((3, 3))).all()
