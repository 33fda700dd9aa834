"""Step sizes and bounds of the paper's theorems, evaluated for a given graph."""

from oneway.theory.bounds import (
    Problem,
    RegretBound,
    disagreement_bound,
    printed_bound,
    printed_learning_rate,
    tight_bound,
)
from oneway.theory.constants import GraphConstants, graph_constants, smallest_mass
from oneway.theory.decay import Ergodicity, ergodicity

__all__ = [
    "Ergodicity",
    "GraphConstants",
    "Problem",
    "RegretBound",
    "disagreement_bound",
    "ergodicity",
    "graph_constants",
    "printed_bound",
    "printed_learning_rate",
    "smallest_mass",
    "tight_bound",
]
