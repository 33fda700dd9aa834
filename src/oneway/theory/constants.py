"""The constants of the paper's theorems, computed for a given graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from oneway.theory.decay import Ergodicity, ergodicity
from oneway.topology import stationary_masses
from oneway.topology.mixing import Mixing, MixingLike, check_mixing

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
