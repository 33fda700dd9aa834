"""How nodes learn, alone or together.

A method is found by name in `METHODS`; a new one is a class and one registration.
"""

from oneway.methods.auto_rate import AUTO, SCHEDULES, AutoRate, InverseSqrt, Rate, Schedule
from oneway.methods.base import METHODS, Gradients, Method, State
from oneway.methods.batches import Batches
from oneway.methods.methods import (
    Centralised,
    Isolated,
    MutualGossip,
    NaiveGossip,
    OnlinePushSum,
    Pull,
    Tracking,
)
from oneway.methods.relay import Relay
from oneway.methods.step_rules import DEFAULT_STEP, STEP_RULES, StepRule
from oneway.methods.transforms import TRANSFORMS, Transform
from oneway.records import Segment

for _method in (
    OnlinePushSum,
    Relay,
    Tracking,
    Pull,
    MutualGossip,
    NaiveGossip,
    Centralised,
    Isolated,
):
    METHODS.register(_method)

DEFAULT_METHOD = Relay.name
"""What a specification (task, command line, lab, peer) takes by default: on one-way
graphs as skewed as real ones, asynchronous and with batches and noise, the nearest to a server that
is not biased (`studies/beyond.py`)."""

__all__ = [
    "AUTO",
    "DEFAULT_METHOD",
    "DEFAULT_STEP",
    "METHODS",
    "SCHEDULES",
    "STEP_RULES",
    "TRANSFORMS",
    "AutoRate",
    "Batches",
    "Centralised",
    "Gradients",
    "InverseSqrt",
    "Isolated",
    "Method",
    "MutualGossip",
    "NaiveGossip",
    "OnlinePushSum",
    "Pull",
    "Rate",
    "Relay",
    "Schedule",
    "Segment",
    "State",
    "StepRule",
    "Tracking",
    "Transform",
]
