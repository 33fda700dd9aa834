"""How fast mixing forgets where something came from: the pair (C, q) of the paper's lemma 6.

With W the mixing and psi its stationary distribution, the lemma says

    | [(W^T)^k]_ij - psi_i |  <=  C q^k    for all receivers i, senders j and k >= 1.

The paper takes C = 4 and q = 1 - n^-n for every graph; here both are computed for the one given.
(The paper's statement has the exponent k - 1 for k factors, its proof uses k; this is the proof's.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigs
from threadpoolctl import threadpool_limits

from oneway.errors import MixingError
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
