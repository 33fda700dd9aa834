"""The paper's two theorems as numbers: bounds on regret and disagreement, and step sizes.

`docs/errata.md` has the algebra, and says where what is printed differs from what follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from oneway.errors import ConfigError
from oneway.theory.constants import GraphConstants


@dataclass(frozen=True)
class Problem:
    """What the bounds know about the losses.

    Attributes:
        num_rounds: T.
        gradient_bound: G, the largest norm of an expected gradient at an estimate.
        noise: sigma, the largest root mean square distance of a gradient from its expectation.
        radius: R, a distance. The proof uses it once: the comparator is at most this far from the
            start, x = 0.

    Raises:
        ConfigError: If a number is out of range, or gradients and noise are both 0.
    """

    num_rounds: int
    gradient_bound: float
    noise: float
    radius: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and value >= 0):
                raise ConfigError(
                    f"{field.name} is {value}; the bounds need a finite number, 0 or more"
                )
        if self.num_rounds < 1 or self.radius == 0:
            raise ConfigError(
                f"num_rounds is {self.num_rounds} and radius is {self.radius}; the bounds need at "
                "least one round and a comparator away from the start"
            )
        if self.gradient_bound == self.noise == 0:
            raise ConfigError(
                "gradient_bound and noise are both 0, so every model is as good as any other; "
                "one of them must be positive"
            )


@dataclass(frozen=True)
class RegretBound:
    """Regret <= growth * gamma + start / gamma, for every learning rate gamma.

    Attributes:
        growth: What gradients and noise cost over all rounds, per unit of the learning rate.
        start: What the way from 0 to the comparator costs.
    """

    growth: float
    start: float

    def at(self, learning_rate: float) -> float:
        """The bound for this learning rate.

        Raises:
            ConfigError: If the rate is not positive.
        """
        _check_rate(learning_rate)
        return self.growth * learning_rate + self.start / learning_rate

    @property
    def best_learning_rate(self) -> float:
        """The rate with the smallest bound."""
        return math.sqrt(self.start / self.growth)

    @property
    def smallest(self) -> float:
        """The bound at the best learning rate."""
        return 2 * math.sqrt(self.growth * self.start)


def printed_bound(constants: GraphConstants, problem: Problem) -> RegretBound:
    """Theorem 4 as printed: G^2 T n gamma C_1 + sigma^2 T gamma (1 + n C_2) + n R^2 / (2 gamma)."""
    n = constants.num_nodes
    per_noise = 1 + n * constants.noise_constant
    return _bound(problem, n, n * constants.gradient_constant, per_noise)


def tight_bound(constants: GraphConstants, problem: Problem) -> RegretBound:
    """What the same proof gives if no factor is lost on the way.

    With k = C q / (delta_min (1 - q)), C_1 = 8 k + 1 becomes 2 k + 1/2 and 1 + n C_2 = 1 + 2 n k
    becomes 1/2 + n k. For one node without noise that is the classical bound:

    >>> from oneway.theory.constants import graph_constants
    >>> problem = Problem(num_rounds=100, gradient_bound=2.0, noise=0.0, radius=3.0)
    >>> tight_bound(graph_constants([[1.0]]), problem).smallest  # G R sqrt(T)
    60.0
    """
    n, k = constants.num_nodes, constants.amplification
    return _bound(problem, n, n * (2 * k + 0.5), 0.5 + n * k)


def _bound(problem: Problem, n: int, per_gradient: float, per_noise: float) -> RegretBound:
    """T (G^2 per_gradient + sigma^2 per_noise) gamma + n R^2 / (2 gamma)."""
    costs = problem.gradient_bound**2 * per_gradient + problem.noise**2 * per_noise
    return RegretBound(growth=problem.num_rounds * costs, start=n * problem.radius**2 / 2)


def printed_learning_rate(constants: GraphConstants, problem: Problem) -> float:
    """The step size of theorem 2 as printed.

    gamma = sqrt(n) R / (sigma sqrt(1 + n C_2) + G sqrt(n C_1 T)); the first term lacks sqrt(T).
    """
    n = constants.num_nodes
    noise = problem.noise * math.sqrt(1 + n * constants.noise_constant)
    drift = problem.gradient_bound * math.sqrt(n * constants.gradient_constant * problem.num_rounds)
    return math.sqrt(n) * problem.radius / (noise + drift)


def disagreement_bound(
    constants: GraphConstants, learning_rate: float, mean_squared_gradients: float
) -> float:
    """Lemma 8: how far the estimates may be from the network's mean, summed over the nodes.

        (1/T) sum_t sum_i ||x_i - z-bar||^2  <=  (2 gamma C q / (delta_min (1 - q)))^2 * S

    Args:
        constants: Of the graph.
        learning_rate: gamma.
        mean_squared_gradients: S, the mean over the rounds of the squared gradient norms, summed
            over the nodes; at most n (G^2 + sigma^2) in expectation.

    Raises:
        ConfigError: If the rate is not positive.
    """
    _check_rate(learning_rate)
    return (2 * learning_rate * constants.amplification) ** 2 * mean_squared_gradients


def _check_rate(learning_rate: float) -> None:
    if not (math.isfinite(learning_rate) and learning_rate > 0):
        raise ConfigError(
            f"learning_rate is {learning_rate}; the bounds need a finite number above 0"
        )
