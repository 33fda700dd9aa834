"""Numbers about what the nodes hold at one moment."""

from __future__ import annotations

import numpy as np

from oneway.records import NetworkState, Vector


def total_mass(state: NetworkState) -> float:
    """Return the sum of omega over the nodes, which push-sum never changes."""
    return float(state.masses.sum())


def network_mean(state: NetworkState) -> Vector:
    """Return the model the network agrees on in the end: z-bar, total numerator / total mass."""
    mean: Vector = state.numerators.sum(axis=0) / total_mass(state)
    return mean


def disagreement(state: NetworkState) -> float:
    """Return the mean over the nodes of ||x_i - z-bar||^2, the paper's Theorem 3 without its sums.

    >>> import numpy as np
    >>> disagreement(NetworkState(numerators=np.array([[1.0], [3.0]]), masses=np.ones(2)))
    1.0
    """
    distances = state.estimates - network_mean(state)
    return float(np.einsum("nd,nd->", distances, distances) / len(distances))


def disagreement_of_holders(state: NetworkState) -> float | None:
    """Return the disagreement of the nodes that have mass; None if there is none.

    A real peer that has just been started, or has left, holds nothing: it has no model.
    """
    held = state.masses > 0
    if not held.any():
        return None
    return disagreement(NetworkState(state.numerators[held], state.masses[held]))
