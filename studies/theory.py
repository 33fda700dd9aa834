"""The paper's two theorems as numbers: constants of a graph, step sizes, and bounds.

The constants start with (C, q) of the paper's lemma 6: how fast mixing forgets where something came
from. With W the mixing and psi its stationary distribution, the lemma says

    | [(W^T)^k]_ij - psi_i |  <=  C q^k    for all receivers i, senders j and k >= 1.

The paper takes C = 4 and q = 1 - n^-n for every graph; here both are computed for the one given.
(The paper's statement has the exponent k - 1 for k factors, its proof uses k; this is the proof's.)
`docs/errata.md` has the algebra, and says where what is printed differs from what follows.
`theorem.py` evaluates all of it for a graph, beside the measured regret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigs
from threadpoolctl import threadpool_limits

from oneway.errors import ConfigError, MixingError
from oneway.records import Ints, Matrix, Vector
from oneway.topology import stationary_masses
from oneway.topology.mixing import Mixing, MixingLike, check_mixing

DENSE_NODES = 2000
"""Up to this many nodes, the powers of the mixing are computed whole."""
SAMPLED_SENDERS = 256
"""In larger networks, so many columns of the powers stand for all."""
MAX_POWERS = 50_000
MAX_WORK = 4e9
"""Multiplications spent on powers, some seconds."""

_MARGIN = 0.05
_MAX_SQUARINGS = 40
_TRAVEL = 8
_NOTHING = 1e-12
_SETTLED = 1e-100


@dataclass(frozen=True)
class Ergodicity:
    """After k rounds of mixing, nobody's share of anything is off by more than factor * rate^k.

    Attributes:
        factor: C, the smallest number for which that holds with this rate.
        rate: q, from 0 to below 1.
        num_powers: For k up to this the inequality was tested.
        proven: Whether it then follows for every larger k. Otherwise the two are estimates.
    """

    factor: float
    rate: float
    num_powers: int
    proven: bool

    @property
    def total(self) -> float:
        """The sum of factor * rate^k over k >= 1, the only way the pair enters the theorems."""
        return self.factor * self.rate / (1 - self.rate)


def ergodicity(mixing: MixingLike, dense_nodes: int = DENSE_NODES) -> Ergodicity:
    """Fit (C, q) to the powers of a mixing.

    Any q above the second largest eigenvalue modulus has its own smallest C. The theorems only use
    C q / (1 - q), so of all q that keep 5 % of the spectral gap away from that modulus, the one is
    taken that makes this smallest. The distance is what makes a proof for all k possible: with
    E_k = W^k - 1 psi^T, E_(k+m) = E_m E_k, hence

        max |E_(k+m)|  <=  (largest absolute row sum of E_m) * max |E_k|,

    and once that row sum is at most q^m, an inequality that holds for k = 1..m holds for ever.

    Up to `dense_nodes` nodes the powers are computed whole, and tested until the proof is complete
    (or too much work). Beyond, the modulus comes from an eigenvalue solver, only a sample of their
    columns is followed, and the result is an estimate.

    Args:
        mixing: Shares as `mixing[sender, receiver]`, of a strongly connected graph.
        dense_nodes: How many nodes a network may have for an n x n array to be affordable.

    Raises:
        GraphError: If the graph is not strongly connected.
        MixingError: If the mixing is not valid, periodic, so that its powers never settle, or
            large and so slow that its second eigenvalue cannot be found.
    """
    shares = check_mixing(mixing)
    num_nodes = shares.shape[0]
    stationary = stationary_masses(shares) / num_nodes
    if num_nodes > dense_nodes:
        return _fit(shares, stationary, _senders(shares), _second_eigenvalue(shares))
    deviation = shares.toarray() - stationary
    if _row_sum(deviation) <= _NOTHING:
        return Ergodicity(0.0, 0.0, 1, proven=True)
    return _fit(shares, stationary, np.arange(num_nodes), _spectral_radius(deviation))


def _fit(shares: Mixing, stationary: Vector, senders: Ints, radius: float) -> Ergodicity:
    """Follow what some senders hand out from power to power; with all of them, to a proof.

    Args:
        shares: The mixing.
        stationary: psi.
        senders: Whose rows of E_k are followed.
        radius: The second largest eigenvalue modulus.
    """
    lowest = radius + _MARGIN * (1 - radius)
    incoming: Mixing = sparse.csr_array(shares.T)
    handed_out = np.zeros((len(stationary), len(senders)))
    handed_out[senders, np.arange(len(senders))] = 1.0
    errors: list[float] = []  # the logarithms of max |E_k|
    proven = False
    for power in range(1, 1 + max(2, min(MAX_POWERS, int(MAX_WORK / (shares.nnz * len(senders)))))):
        handed_out = np.asarray(incoming @ handed_out)
        # At first this leaves the deviation from psi; later only rounding errors that do not decay.
        handed_out -= stationary[:, None] * handed_out.sum(axis=0)
        errors.append(_log(float(np.abs(handed_out).max())))
        if len(senders) == len(stationary):
            proven = _log(_row_sum(handed_out.T)) <= power * math.log(lowest)
        if proven or errors[-1] < math.log(_SETTLED):
            break
    return _best_pair(errors, lowest, proven)


def _second_eigenvalue(shares: Mixing) -> float:
    """The second largest eigenvalue modulus of a large mixing.

    Raises:
        MixingError: If it is 1, or too many are near it to tell them apart.
    """
    start = np.random.default_rng(0).random(shares.shape[0])
    try:
        # One thread, so that the digits do not depend on the number of cores.
        with threadpool_limits(1, user_api="blas"):
            values = eigs(
                shares, k=6, ncv=60, maxiter=200, tol=1e-6, v0=start, return_eigenvectors=False
            )
    except ArpackNoConvergence as error:
        raise MixingError(
            f"the second eigenvalue of the mixing of {shares.shape[0]:,} nodes was not found, "
            f"because information spreads too slowly; up to {DENSE_NODES:,} nodes it is not needed"
            ", use a smaller graph"
        ) from error
    modulus = float(np.sort(np.abs(values))[-2])
    if modulus >= 1 - _NOTHING:
        raise _never_settles()
    return modulus


def _senders(shares: Mixing) -> Ints:
    """Those from whom the largest piece travels some rounds undivided, and some spread evenly."""
    piece = np.ones(shares.shape[0])
    for _ in range(_TRAVEL):
        piece = np.maximum.reduceat(shares.data * piece[shares.indices], shares.indptr[:-1])
    half = SAMPLED_SENDERS // 2
    slowest = np.argsort(-piece, kind="stable")[:half]
    return np.union1d(slowest, np.linspace(0, shares.shape[0] - 1, half).astype(slowest.dtype))


def _best_pair(errors: list[float], lowest: float, proven: bool) -> Ergodicity:
    """Of all rates from the lowest on, the one with the smallest C q / (1 - q)."""
    rates = lowest + (1 - lowest) * np.linspace(0, 1, 500, endpoint=False)
    powers = np.arange(1, len(errors) + 1)
    log_factors = np.array([np.max(np.asarray(errors) - powers * math.log(rate)) for rate in rates])
    best = int(np.argmin(log_factors + np.log(rates) - np.log1p(-rates)))
    factor, rate = math.exp(log_factors[best]), float(rates[best])
    return Ergodicity(factor, rate, len(errors), proven)


def _spectral_radius(deviation: Matrix) -> float:
    """The largest eigenvalue modulus, from above: ||E^m||^(1/m) for m = 1, 2, 4, ...

    Raises:
        MixingError: If it is 1.
    """
    log_norm, exponent, before, still = 0.0, 1, math.inf, 0
    for _ in range(_MAX_SQUARINGS):
        norm = _row_sum(deviation)
        if norm == 0:
            return 0.0
        deviation = deviation / norm
        log_norm += math.log(norm)
        radius = math.exp(log_norm / exponent)
        # Twice in a row: complex eigenvalues turn, and a norm may stand still for once.
        still = still + 1 if radius < 1 and before - radius <= 0.01 * (1 - radius) else 0
        if still == 2:
            return radius
        deviation = deviation @ deviation
        log_norm, exponent, before = 2 * log_norm, 2 * exponent, radius
    raise _never_settles()


def _row_sum(deviation: Matrix) -> float:
    return float(np.abs(deviation).sum(axis=1).max())


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _never_settles() -> MixingError:
    return MixingError(
        "the powers of the mixing do not settle, because the graph is periodic or nearly so; let "
        "nodes keep a share of what they have, for example graph.mixing(kept_share=0.5)"
    )


_MAX_ROUNDS = 5000
_CLOSE = 1e-9


@dataclass(frozen=True)
class GraphConstants:
    """What the bounds know about a graph.

    Attributes:
        num_nodes: n.
        ergodicity: (C, q).
        smallest_mass: The smallest omega that any node holds in any round after the first; the
            masses sum to n.
    """

    num_nodes: int
    ergodicity: Ergodicity
    smallest_mass: float

    @property
    def mass_share(self) -> float:
        """delta_min: the smallest mass as a fraction of all mass.

        The paper's lemma 5 defines it without the division by n, its proof of lemma 8 needs
        omega >= n * delta_min; this is the definition under which that is true.
        """
        return self.smallest_mass / self.num_nodes

    @property
    def amplification(self) -> float:
        """C q / (delta_min (1 - q)): how far gradients drive the estimates apart."""
        return self.ergodicity.total / self.mass_share

    @property
    def gradient_constant(self) -> float:
        """C_1 = 8 C q / (delta_min (1 - q)) + 1."""
        return 8 * self.amplification + 1

    @property
    def noise_constant(self) -> float:
        """C_2 = 2 C q / (delta_min (1 - q))."""
        return 2 * self.amplification

    @property
    def worst_case_digits(self) -> float:
        """log10 of C_1 with the paper's constants for any graph: 4, 1 - n^-n and n^-n."""
        if self.num_nodes == 1:
            return 0.0
        return math.log10(32) + 2 * self.num_nodes * math.log10(self.num_nodes)


def graph_constants(mixing: MixingLike) -> GraphConstants:
    """Compute the constants of the theorems for a mixing.

    Args:
        mixing: Shares as `mixing[sender, receiver]`, of a strongly connected graph.

    Raises:
        GraphError: If the graph is not strongly connected.
        MixingError: If the mixing is not valid, or periodic.

    >>> constants = graph_constants([[0.5, 0.5], [0.25, 0.75]])
    >>> round(constants.smallest_mass, 6), round(constants.gradient_constant, 2)
    (0.666667, 6.63)
    """
    shares = check_mixing(mixing)
    return GraphConstants(shares.shape[0], ergodicity(shares), smallest_mass(shares))


def smallest_mass(mixing: MixingLike) -> float:
    """Return the smallest mass that any node holds in any round, if all start with 1.

    Masses that are everywhere at least a times the stationary ones stay so for ever, because
    mixing is linear and adds up nonnegative shares. So the rounds need to be followed only until
    no later mass can be smaller than those already seen (to a relative 1e-9). If that takes more
    than some thousand rounds, what is returned is a lower bound, with which the theorems hold too.

    Args:
        mixing: Shares as `mixing[sender, receiver]`, of a strongly connected graph.

    Raises:
        GraphError: If the graph is not strongly connected.
        MixingError: If the mixing is not valid.
    """
    shares = check_mixing(mixing)
    incoming: Mixing = sparse.csr_array(shares.T)
    settled = stationary_masses(shares)
    masses = np.ones(len(settled))
    smallest, never_below = math.inf, 0.0
    for _ in range(_MAX_ROUNDS):
        masses = np.asarray(incoming @ masses)
        smallest = min(smallest, float(masses.min()))
        never_below = float((masses / settled).min() * settled.min())
        if smallest <= never_below * (1 + _CLOSE):
            break
    return min(smallest, never_below)


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
