"""How nodes learn: Online Push-Sum and the methods it is compared with, one file each.

A method is found by name in `METHODS`; one more is one file with one registration.
"""

from oneway.methods.base import METHODS, Gradients, Method, State
from oneway.methods.batches import Batches
from oneway.methods.centralised import Centralised
from oneway.methods.gossip import MutualGossip, NaiveGossip
from oneway.methods.isolated import Isolated
from oneway.methods.push_sum import OnlinePushSum
from oneway.methods.rate_schedules import SCHEDULES, InverseSqrt, Schedule
from oneway.methods.step_rules import DEFAULT_STEP, STEP_RULES, StepRule
from oneway.methods.transforms import TRANSFORMS, Transform
from oneway.records import Segment

for _method in (OnlinePushSum, MutualGossip, NaiveGossip, Centralised, Isolated):
    METHODS.register(_method)

Algorithm = Method
"""The name of `Method` in earlier versions."""

__all__ = [
    "DEFAULT_STEP",
    "METHODS",
    "SCHEDULES",
    "STEP_RULES",
    "TRANSFORMS",
    "Algorithm",
    "Batches",
    "Centralised",
    "Gradients",
    "InverseSqrt",
    "Isolated",
    "Method",
    "MutualGossip",
    "NaiveGossip",
    "OnlinePushSum",
    "Schedule",
    "Segment",
    "State",
    "StepRule",
    "Transform",
]
