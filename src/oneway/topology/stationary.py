"""Stationary distribution: where masses settle if only mixing goes on."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import bicgstab, splu
from threadpoolctl import threadpool_limits

from oneway.errors import MixingError
from oneway.records import Ints, Vector
from oneway.topology.connectivity import require_one_component
from oneway.topology.mixing import Mixing, MixingLike, check_mixing

WARM_UP_STEPS = 200
SOLVER_STEPS = 500
LARGE = 100_000
"""From this number of nodes on convergence is checked on the way."""


def stationary_masses(mixing: MixingLike, tolerance: float = 1e-12) -> Vector:
    """The masses that mixing leaves as they are: mixing.T @ masses = masses, summing to n.

    Whatever masses of sum n a network starts with, they settle there (on average over rounds, if
    the graph is periodic). The smallest one says how much push-sum amplifies a node's steps.

    The masses may span many orders of magnitude, and the small ones matter most. So rough masses
    from a few lazy mixing rounds rescale the unknowns to about 1 each before the linear system is
    solved iteratively. That takes few steps where information spreads fast; where it does not, the
    graph has narrow cuts, sparse elimination fills in little, and the direct solver takes over.

    Args:
        mixing: Shares as `mixing[sender, receiver]`, of a strongly connected graph.
        tolerance: How far what a node receives may differ from its mass, relative to that mass.

    Raises:
        GraphError: If the graph is not strongly connected.
        MixingError: If the mixing is not valid, or the tolerance cannot be reached.
    """
    shares = check_mixing(mixing)
    require_one_component(shares)
    num_nodes = shares.shape[0]
    if num_nodes == 1:
        return np.ones(1)
    incoming: Mixing = sparse.csr_array(shares.T)
    rough = np.ones(num_nodes)
    for step in range(WARM_UP_STEPS):
        rough = (rough + incoming @ rough) / 2
        # Where information spreads fast, as in most large graphs, nothing is left to be solved.
        if num_nodes >= LARGE and step % 20 == 19 and _imbalance(incoming, rough) <= tolerance:
            settled: Vector = rough * (num_nodes / rough.sum())
            return settled

    anchor = int(np.argmax(rough))
    masses = _solve_iteratively(incoming, rough, anchor)
    if masses is None or _imbalance(incoming, masses) > tolerance:
        masses = _solve_directly(incoming, anchor)
    imbalance = _imbalance(incoming, masses)
    if not imbalance <= tolerance:
        raise MixingError(
            f"the stationary masses were found to {imbalance:.1e} only; the tolerance is "
            f"{tolerance:g}, raise it"
        )
    return masses


def _solve_iteratively(incoming: Mixing, rough: Vector, anchor: int) -> Vector | None:
    """Krylov iterations on masses / rough; None if they do not converge."""
    system, inflow, others = _anchored_system(incoming, anchor)
    scale = rough[others]
    row_scale = 1 / (scale * system.diagonal())
    scaled = sparse.csr_array(
        sparse.diags_array(row_scale) @ system @ sparse.diags_array(scale, format="csc")
    )
    # A breakdown shows in what comes back. Dot products over several threads depend, in the last
    # digits, on how many there are, and are slower at this size.
    with np.errstate(all="ignore"), threadpool_limits(1, user_api="blas"):
        ratios, failure = bicgstab(
            scaled,
            rough[anchor] * inflow * row_scale,
            x0=np.ones(len(others)),
            rtol=1e-14,
            maxiter=SOLVER_STEPS,
        )
    if failure or not np.all(ratios > 0) or not np.all(np.isfinite(ratios)):
        return None
    return _with_anchor(ratios * scale, anchor, rough[anchor])


def _solve_directly(incoming: Mixing, anchor: int) -> Vector:
    """Sparse elimination on the diagonal, which only ever adds what is positive."""
    system, inflow, _ = _anchored_system(incoming, anchor)
    factors = splu(
        system,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    masses = factors.solve(inflow)
    masses += factors.solve(inflow - system @ masses)  # wins back digits lost in the elimination
    return _with_anchor(masses, anchor, 1.0)


def _anchored_system(
    incoming: Mixing, anchor: int
) -> tuple[sparse.csc_array[np.float64], Vector, Ints]:
    """The balance of every node but the anchor, which has mass 1; what it gives; the others."""
    others = np.delete(np.arange(incoming.shape[0]), anchor)
    passed_on = incoming - sparse.diags_array(incoming.diagonal(), format="csr")
    # What a node gives away, as a sum: 1 - kept share would lose digits when it keeps nearly all.
    given_away: Vector = np.asarray(passed_on.sum(axis=0))
    balance = sparse.csc_array(sparse.diags_array(given_away) - passed_on)
    inflow: Vector = -balance[:, [anchor]].toarray().ravel()[others]
    return sparse.csc_array(balance[others][:, others]), inflow, others


def _with_anchor(others: Vector, anchor: int, anchor_mass: float) -> Vector:
    """All masses in order, in the same proportions, with a sum of n."""
    masses = np.insert(others, anchor, anchor_mass)
    scaled: Vector = masses * (len(masses) / masses.sum())
    return scaled


def _imbalance(incoming: Mixing, masses: Vector) -> float:
    """The largest gap between what a node receives and its mass, relative to the mass."""
    gaps = np.abs(incoming @ masses - masses)
    return float(np.max(gaps / np.maximum(masses, np.finfo(np.float64).tiny)))
