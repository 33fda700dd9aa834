"""Learn together over one-way trust, without a server.

>>> import oneway as ow
>>> graph = ow.TrustGraph.random(num_nodes=20, max_receivers=10, seed=7)
>>> stream = ow.streams.synthetic(num_samples=2000, num_features=5, seed=7).table.deal(num_nodes=20)
>>> run = ow.simulate(ow.OnlinePushSum(0.3), ow.models.LogisticRegression(), stream, graph)
>>> run.estimates.shape
(20, 6)

Names are looked up when they are first used, so that a small installation without the `lab` extra
imports quickly and only asks for packages it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oneway.errors import MissingExtraError, install_hint

if TYPE_CHECKING:
    from oneway import datasets as datasets
    from oneway import methods as methods
    from oneway import metrics as metrics
    from oneway import models as models
    from oneway import streams as streams
    from oneway import tables as tables
    from oneway import testing as testing
    from oneway import topology as topology
    from oneway.datasets import load as load
    from oneway.errors import OnewayError as OnewayError
    from oneway.estimators import OnewayClassifier as OnewayClassifier
    from oneway.estimators import OnewayRegressor as OnewayRegressor
    from oneway.estimators import RiverClassifier as RiverClassifier
    from oneway.estimators import RiverRegressor as RiverRegressor
    from oneway.lab.virtual.run import virtual_lab as virtual_lab
    from oneway.methods import Batches as Batches
    from oneway.methods import Centralised as Centralised
    from oneway.methods import InverseSqrt as InverseSqrt
    from oneway.methods import Isolated as Isolated
    from oneway.methods import MutualGossip as MutualGossip
    from oneway.methods import NaiveGossip as NaiveGossip
    from oneway.methods import OnlinePushSum as OnlinePushSum
    from oneway.methods import Pull as Pull
    from oneway.methods import Relay as Relay
    from oneway.methods import Tracking as Tracking
    from oneway.peer.peer import Peer as Peer
    from oneway.report.run_comparison import compare as compare
    from oneway.simulator import Run as Run
    from oneway.simulator import simulate as simulate
    from oneway.simulator.sweep import sweep as sweep
    from oneway.streams import Stream as Stream
    from oneway.tables import Table as Table
    from oneway.task.conditions import Conditions as Conditions
    from oneway.task.conditions import Delay as Delay
    from oneway.task.privacy import Privacy as Privacy
    from oneway.task.task import Task as Task
    from oneway.topology import TrustGraph as TrustGraph

__version__ = "0.2.0"

_MODULES = ("datasets", "methods", "metrics", "models", "streams", "tables", "testing", "topology")
_NAMES = {
    "datasets": ("load",),
    "errors": ("OnewayError",),
    "estimators": ("OnewayClassifier", "OnewayRegressor", "RiverClassifier", "RiverRegressor"),
    "lab.virtual.run": ("virtual_lab",),
    "methods": (
        *("Batches", "Centralised", "InverseSqrt", "Isolated", "MutualGossip", "NaiveGossip"),
        *("OnlinePushSum", "Pull", "Relay", "Tracking"),
    ),
    "peer.peer": ("Peer",),
    "report.run_comparison": ("compare",),
    "simulator": ("Run", "simulate"),
    "simulator.sweep": ("sweep",),
    "streams": ("Stream",),
    "tables": ("Table",),
    "task.conditions": ("Conditions", "Delay"),
    "task.privacy": ("Privacy",),
    "task.task": ("Task",),
    "topology": ("TrustGraph",),
}
"""The public names, by the module that has them."""
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_MODULES, *_HOME])


def __getattr__(name: str) -> Any:
    """Import a public name.

    Raises:
        MissingExtraError: If it needs a package that is not installed.
    """
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(f"module 'oneway' has no attribute {name!r}")
    try:
        module = import_module(f"oneway.{_HOME.get(name, name)}")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"oneway.{name} needs {error.name}, which is not installed; {install_hint('lab')}"
        ) from error
    return getattr(module, name) if name in _HOME else module


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
