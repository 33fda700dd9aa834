"""Banded inverse square root (BISR, arXiv 2505.12128): noise that later noise takes back.

Release t carries sum over k < band of r_k z_(t-k), where the z are independent normal vectors and
r_k are the coefficients of (1 - x)^(1/2). All but r_0 = 1 are negative: most of what a release adds
is subtracted again by the next ones, so that the running sum of all releases, which is what a
learner sees, carries much less noise than with independent draws.

As a matrix mechanism: with R the lower triangular Toeplitz matrix of the r, the releases are
x + R z = R (R^-1 x + z), so everything is computed from R^-1 x + z, the Gaussian mechanism with
independent noise. One record moves one row of x by the clip at most, and so R^-1 x by the clip
times the norm of a column of R^-1: the sensitivity. That a row of x may depend on earlier releases
changes nothing, since R^-1 is lower triangular (Denisov et al. 2022, theorem 2.1).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from oneway.errors import ConfigError
from oneway.records import Vector
from oneway.sentences import shown

LARGEST_BAND = 1024
"""A peer keeps so many noise vectors in memory; wider bands help hardly."""

_NOTHING = 1e-16
_ROUNDING = 1e-13


def coefficients(band: int) -> Vector:
    """Return r_0, ..., r_(band-1), read-only: r_k = r_(k-1) (k - 3/2) / k.

    >>> coefficients(4).tolist()
    [1.0, -0.5, -0.125, -0.0625]

    Raises:
        ConfigError: If band is not a whole number from 1 to `LARGEST_BAND`.
    """
    _check_band(band)
    return _coefficients(band)


def sensitivity(band: int) -> float:
    """Return the norm of a column of R^-1 for streams of any length, rounded up.

    >>> sensitivity(1), f"{sensitivity(32):.4f}"
    (1.0, '1.5297')

    Raises:
        ConfigError: If band is not a whole number from 1 to `LARGEST_BAND`.
    """
    _check_band(band)
    return _sensitivity(band)


@lru_cache
def _coefficients(band: int) -> Vector:
    order = np.arange(1, band)
    result = np.concatenate([[1.0], np.cumprod((order - 1.5) / order)])
    result.flags.writeable = False
    return result


@lru_cache
def _sensitivity(band: int) -> float:
    """Sum the squares of the power series c of 1 / (r_0 + r_1 x + ...), with a bound on the rest.

    c_n = sum over 0 < k < band of -r_k c_(n-k), so every c is positive, a finite stream has a
    smaller norm than an infinite one, and no c is larger than `total` = sum of -r_k < 1 times the
    largest of the band - 1 before it. After every band - 1 more of them that largest has therefore
    shrunk by `total` at least, and the rest of the squares is at most the geometric series below.
    """
    if band == 1:
        return 1.0
    width = band - 1
    backwards = -_coefficients(band)[:0:-1]
    total = float(backwards.sum())
    window = np.zeros(width)  # c_(n-width), ..., c_(n-1)
    window[-1] = 1.0
    squares, rest = [1.0], math.inf
    while rest > _NOTHING:
        for _ in range(width):
            newest = float(backwards @ window)
            window = np.append(window[1:], newest)
            squares.append(newest * newest)
        largest = float(window.max()) * total
        rest = width * largest**2 / (1 - total**2)
    # Everything added above is positive, so rounding errors stay far below this factor.
    return math.sqrt(math.fsum(squares) + rest) * (1 + _ROUNDING)


def _check_band(band: int) -> None:
    if not (isinstance(band, int) and not isinstance(band, bool) and 1 <= band <= LARGEST_BAND):
        raise ConfigError(
            f"band is {shown(band)}; it must be a whole number from 1 to {LARGEST_BAND:,}; choose "
            "32, or 1 for independent noise"
        )
