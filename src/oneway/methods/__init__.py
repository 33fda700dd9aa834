"""The equations of Online Push-Sum and of the four methods it is compared with, one file each."""

from oneway.methods.base import Algorithm, InverseSqrt, Schedule
from oneway.methods.centralised import Centralised
from oneway.methods.gossip import MutualGossip, NaiveGossip
from oneway.methods.isolated import Isolated
from oneway.methods.push_sum import OnlinePushSum

BY_NAME: dict[str, type[Algorithm]] = {
    method.name: method
    for method in (OnlinePushSum, MutualGossip, NaiveGossip, Centralised, Isolated)
}
"""The five methods by their names on the command line."""

__all__ = [
    "BY_NAME",
    "Algorithm",
    "Centralised",
    "InverseSqrt",
    "Isolated",
    "MutualGossip",
    "NaiveGossip",
    "OnlinePushSum",
    "Schedule",
]
