"""Privacy accounting: epsilon and delta of the Gaussian mechanism in closed form.

Let mu be the largest distance that one record can move a release, in standard deviations of its
noise. Then (Balle and Wang 2018, theorem 8, with Phi the normal distribution function)

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu),

and no smaller delta is true. A record is in one batch only, so this one release is all that is
ever said about it, and epsilon does not grow with the length of the stream.

Two neighbouring streams differ by the contents of one record: its clipped gradient is there, or
is zero ("add/remove" in the zero-out sense; that a record was counted is not hidden). Replacing a
record by another moves a release at most twice as far.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from oneway.errors import ConfigError
from oneway.sentences import shown

Unit = Literal["sample", "group"]
"""Whose contents are protected: one sample's, or all samples' of one person, device or house."""

SMALLEST_EPSILON = 1e-9
LARGEST_EPSILON = 1e4
"""Between these, rounding errors are below the margin; beyond, a promise means nothing anyway."""
LARGEST_GROUP = 10**9

_MARGIN = 1e-12
"""A promise is kept only if delta is smaller than asked by this factor, more than any rounding."""
_TOLERANCE = 1e-13
_MAX_HALVINGS = 200
_FAR = 1e3
"""So many standard deviations out, delta is below every positive double."""
_LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)
_STEP = 0.1
_NODES = np.exp(np.arange(-40.0, 4.0, _STEP))


def delta_of(mu: float, epsilon: float) -> float:
    """Return the smallest delta that is true at this epsilon, which may be 0.

    >>> f"{delta_of(mu=1.0, epsilon=1.0):.6f}"
    '0.126937'

    Raises:
        ConfigError: If mu is not a finite number above 0, or epsilon is not one from 0 on.
    """
    _check_mu(mu)
    if not (_is_number(epsilon) and 0 <= epsilon <= sys.float_info.max):
        raise ConfigError(
            f"epsilon is {shown(epsilon)}; it must be finite and at least 0: give such a number"
        )
    return math.exp(_log_delta(float(mu), float(epsilon)))


def epsilon_of(mu: float, delta: float) -> float:
    """Return the smallest epsilon that is true at this delta, rounded up; 0 if none is needed.

    For k records of one person, take k times mu: the release moves by a sum of k vectors (a
    column of the mechanism's matrix times a clipped gradient), none longer than mu, so by k mu at
    most, and by exactly that if all k are in one batch and their gradients are the same.

    >>> f"{epsilon_of(mu=1.0, delta=1e-5):.4f}, {epsilon_of(mu=2.0, delta=1e-5):.4f}"
    '4.3772, 9.9973'

    Raises:
        ConfigError: If mu is not a finite number above 0, or delta is not between 0 and 1.
    """
    _check_mu(mu)
    _check_delta(delta)
    mu, delta = float(mu), float(delta)
    if _is_kept(mu, 0.0, delta):
        return 0.0
    # Since delta(epsilon) < Phi(-x) <= exp(-x^2/2) at x = epsilon/mu - mu/2, this is enough.
    enough = mu * (mu / 2 + math.sqrt(-2 * math.log(delta)) + _MARGIN)
    _, epsilon = _bisect(lambda guess: not _is_kept(mu, guess, delta), 0.0, enough)
    return epsilon


def mu_for(epsilon: float, delta: float) -> float:
    """Return the largest mu that keeps the promise, rounded down.

    `epsilon_of(mu_for(epsilon, delta), delta) <= epsilon` holds always, not only nearly. The
    standard deviation of the noise is the sensitivity divided by this.

    >>> f"{mu_for(epsilon=1.0, delta=1e-5):.4f}, {mu_for(epsilon=8.0, delta=1e-5):.4f}"
    '0.2681, 1.6660'

    Raises:
        ConfigError: If epsilon or delta is not one that can be promised.
    """
    _check_epsilon(epsilon)
    _check_delta(delta)
    return _mu_for(float(epsilon), float(delta))


@dataclass(frozen=True)
class Guarantee:
    """Differential privacy that is promised: epsilon and delta, and for what.

    Attributes:
        epsilon: With or without the unit's contents, the probability of whatever others see
            differs by a factor of e^epsilon at most ...
        delta: ... plus this.
        unit: What the promise is for: one sample, or all samples of one group (say, a person).
        records_per_group: No group has more samples than this; 1 if the unit is the sample.

    >>> guarantee = Guarantee(epsilon=1.0, delta=1e-5, unit="group", records_per_group=10)
    >>> f"{guarantee.noise_multiplier:.2f}, {guarantee.epsilon_of_records(1):.3f}"
    '37.31, 0.081'

    Raises:
        ConfigError: If one of them is not valid.
    """

    epsilon: float
    delta: float
    unit: Unit = "sample"
    records_per_group: int = 1

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)
        _check_delta(self.delta)
        if self.unit not in get_args(Unit):
            raise ConfigError(
                f'unit is {shown(self.unit)}; it must be "sample" or "group": write one of them'
            )
        _check_count("records_per_group", self.records_per_group)
        if self.unit == "sample" and self.records_per_group != 1:
            raise ConfigError(
                f'records_per_group is {self.records_per_group}, but unit is "sample", for which '
                'it must be 1; leave it out or write unit = "group"'
            )

    @property
    def mu(self) -> float:
        """The distance one record may move a release, in standard deviations of the noise."""
        whole = mu_for(self.epsilon, self.delta)
        if self.records_per_group == 1:
            return whole
        return math.nextafter(whole / self.records_per_group, 0.0)  # k * mu must not exceed it

    @property
    def noise_multiplier(self) -> float:
        """The noise's standard deviation over the distance one record can move a release: 1/mu."""
        return math.nextafter(1 / self.mu, math.inf)

    @property
    def replacement(self) -> float:
        """The epsilon if neighbours differ by other contents instead of none: mu is doubled."""
        return epsilon_of(2 * self.records_per_group * self.mu, self.delta)

    def epsilon_of_records(self, count: int) -> float:
        """Return the composed epsilon of somebody with so many records, at the same delta.

        Raises:
            ConfigError: If count is not a whole number above 0.
        """
        _check_count("count", count)
        return epsilon_of(count * self.mu, self.delta)

    @property
    def sentence(self) -> str:
        """What is promised, for people.

        >>> print(Guarantee(8.0, 1e-5).sentence)
        epsilon 8, delta 1e-05 for each sample: with or without its contents, whatever others see \
is as likely up to a factor of e^8 and a remainder of 1e-05 (exchanged for another: epsilon 19.2)
        """
        epsilon, delta = f"{self.epsilon:.10g}", f"{self.delta:.10g}"
        unit = "sample"
        if self.unit == "group":
            unit = f"group of up to {self.records_per_group:,} samples"
        return (
            f"epsilon {epsilon}, delta {delta} for each {unit}: with or without its contents, "
            f"whatever others see is as likely up to a factor of e^{epsilon} and a remainder of "
            f"{delta} (exchanged for another: epsilon {_rounded_up(self.replacement)})"
        )


@lru_cache(maxsize=1024)
def _mu_for(epsilon: float, delta: float) -> float:
    tail = math.sqrt(-2 * math.log(delta)) + _MARGIN
    # Here epsilon = mu^2/2 + mu * tail, which is enough, as in `epsilon_of`.
    low = 2 * epsilon / (tail + math.sqrt(tail * tail + 2 * epsilon))
    high = 2 * low
    while _is_kept(high, epsilon, delta):
        high *= 2
    mu, _ = _bisect(lambda guess: _is_kept(guess, epsilon, delta), low, high)
    # Both searches end within a tolerance; this makes the inequality between them exact, and that
    # for a product which was rounded to less than mu, whose search may end above that for mu.
    less = _TOLERANCE
    while epsilon_of(mu, delta) > epsilon * (1 - 8 * _TOLERANCE):
        mu *= 1 - less
        less = min(2 * less, 0.5)
    return mu


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Narrow down where a condition that holds at `low` and not at `high` ends."""
    for _ in range(_MAX_HALVINGS):
        if high - low <= _TOLERANCE * high:
            break
        middle = low + (high - low) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _is_kept(mu: float, epsilon: float, delta: float) -> bool:
    return _log_delta(mu, epsilon) <= math.log(delta) - _MARGIN


def _log_delta(mu: float, epsilon: float) -> float:
    """Return the logarithm of delta without cancellation.

    With x = epsilon/mu - mu/2 and phi the normal density, e^epsilon phi(x + mu) = phi(x), so

        delta = phi(x) * integral over s > 0 of exp(-x s - s^2/2) (1 - exp(-mu s)).

    Nothing is subtracted there, so small mu and small delta are as accurate as others. If x is
    well below 0, the peak at s = -x is too narrow for the nodes, but then Phi(-x) is near 1 and
    the subtraction is harmless.
    """
    x = epsilon / mu - mu / 2
    if x > _FAR:
        return -math.inf
    if x < -1:
        density = math.exp(-x * x / 2 - _LOG_ROOT_2_PI)
        return math.log(math.erfc(x / math.sqrt(2)) / 2 - density * _integral(x + mu, math.inf))
    integral = _integral(x, mu)
    return math.log(integral) - x * x / 2 - _LOG_ROOT_2_PI if integral > 0 else -math.inf


def _integral(x: float, mu: float) -> float:
    """Integrate exp(-x s - s^2/2) (1 - exp(-mu s)) over s > 0, for x >= -1 and mu up to infinity.

    The trapezoidal rule in log s: the integrand is analytic there and dies out at both ends, so
    the error falls as exp(-1/step), and is below the rounding errors at this step.
    """
    scale = max(1.0, x)
    s = _NODES / scale
    values = np.exp(-s * (x + s / 2)) * -np.expm1(-mu * s) * s
    return _STEP * float(values.sum())


def _rounded_up(value: float) -> str:
    """Return three digits, never less than the value: a guarantee is not made stronger in print."""
    return f"{Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(value):f}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_mu(mu: float) -> None:
    if not (_is_number(mu) and 0 < mu <= sys.float_info.max):
        raise ConfigError(
            f"mu is {shown(mu)}; it must be a finite number above 0: give the sensitivity divided "
            "by the standard deviation of the noise"
        )


def _check_epsilon(epsilon: float) -> None:
    if not (_is_number(epsilon) and SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON):
        raise ConfigError(
            f"epsilon is {shown(epsilon)}; it must be a number from {SMALLEST_EPSILON:g} to "
            f'{LARGEST_EPSILON:,.0f}; choose one such as 1 or 8, or write privacy = "none"'
        )


def _check_delta(delta: float) -> None:
    if not (_is_number(delta) and 0 < delta < 1):
        raise ConfigError(
            f"delta is {shown(delta)}; it must be between 0 and 1, both excluded; choose one "
            "below 1 / (number of samples), such as 1e-5"
        )


def _check_count(name: str, count: int) -> None:
    if not (isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= LARGEST_GROUP):
        raise ConfigError(
            f"{name} is {shown(count)}; it must be a whole number from 1 to {LARGEST_GROUP:,}: "
            "give the most samples that one group has"
        )
