"""Who may send to whom, and in what shares."""

from oneway.topology.generators import GRAPHS, Generator
from oneway.topology.graph import TrustGraph
from oneway.topology.mixing import check_mixing, metropolis, row_stochastic
from oneway.topology.stationary import stationary_masses

__all__ = [
    "GRAPHS",
    "Generator",
    "TrustGraph",
    "check_mixing",
    "metropolis",
    "row_stochastic",
    "stationary_masses",
]
