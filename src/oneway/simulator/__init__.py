"""Every node of a network in one array program."""

from oneway.simulator.driver import simulate
from oneway.simulator.run import Run

__all__ = ["Run", "simulate"]
