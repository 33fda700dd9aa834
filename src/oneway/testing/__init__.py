"""Tools for testing extensions: an in-memory network and checks of custom methods and models.

from oneway.testing import MemoryNetwork, check_method, check_model
"""

from oneway.testing.checks import check_method, check_model, step_network
from oneway.testing.memory_network import MemoryEndpoint, MemoryNetwork

__all__ = [
    "MemoryEndpoint",
    "MemoryNetwork",
    "check_method",
    "check_model",
    "step_network",
]
