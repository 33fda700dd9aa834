"""Who is slow, asleep, late or a liar: drawn once from the seed, the same for both levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneway.asynchronous.conditions import Conditions
from oneway.records import Bools, Vector


@dataclass(frozen=True, eq=False)
class Roles:
    """What each node is, `[node]`.

    Attributes:
        speeds: Factor of the rate.
        sleepers: Who sleeps now and then.
        liars: Who pushes a model of its own.
        joins: When a node comes; 0 for most.
        leaves: When a node begins to leave; infinite for most.
    """

    speeds: Vector
    sleepers: Bools
    liars: Bools
    joins: Vector
    leaves: Vector

    @classmethod
    def draw(cls, conditions: Conditions, num_nodes: int, seconds: float, seed: int) -> Roles:
        """Exactly so many of each as the shares say; one at least if the share is not 0.

        Joins and leaves are uniform over the run; nobody leaves before it came, and liars neither
        sleep, come nor leave.
        """
        rng = np.random.default_rng([seed, 0x20135])
        speeds = np.exp(conditions.unequal * rng.standard_normal(num_nodes))
        liars = _some(conditions.liars, np.ones(num_nodes, np.bool_), rng)
        sleepers = _some(conditions.sleepers, ~liars, rng)
        joins, leaves = np.zeros(num_nodes), np.full(num_nodes, np.inf)
        joining = _some(conditions.joining, ~liars, rng)
        joins[joining] = seconds * rng.random(joining.sum())
        leaving = _some(conditions.leaving, ~liars, rng)
        begin = joins[leaving]
        leaves[leaving] = begin + (seconds - begin) * rng.random(leaving.sum())
        return cls(speeds, sleepers, liars, joins, leaves)


def _some(share: float, among: Bools, rng: np.random.Generator) -> Bools:
    """So many nodes as a share of all stands for, of those that come into question."""
    chosen = np.zeros(len(among), np.bool_)
    candidates = np.flatnonzero(among)
    count = min(max(round(share * len(among)), int(share > 0)), len(candidates))
    chosen[rng.permutation(candidates)[:count]] = True
    return chosen


def lies(roles: Roles, dim: int, norm: float, seed: int) -> dict[int, Vector]:
    """The model that each liar pushes: of this norm, in a direction of its own."""
    rng = np.random.default_rng([seed, 0x11E5])
    found = {}
    for node in np.flatnonzero(roles.liars).tolist():
        direction = rng.standard_normal(dim)
        found[node] = norm * direction / np.linalg.norm(direction)
    return found
