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

from oneway.errors import MissingExtraError, OnewayError, install_hint

if TYPE_CHECKING:
    from oneway import (
        datasets,
        methods,
        metrics,
        models,
        streams,
        tables,
        testing,
        topology,
    )
    from oneway.asynchronous.conditions import Conditions, Delay
    from oneway.asynchronous.simulate import simulate_async
    from oneway.estimators import (
        OnewayClassifier,
        OnewayRegressor,
        RiverClassifier,
        RiverRegressor,
    )
    from oneway.methods import (
        Batches,
        Centralised,
        InverseSqrt,
        Isolated,
        MutualGossip,
        NaiveGossip,
        OnlinePushSum,
        Pull,
        Relay,
        Tracking,
    )
    from oneway.peer.peer import Peer
    from oneway.report.run_comparison import compare
    from oneway.simulator import Run, simulate
    from oneway.simulator.sweep import sweep
    from oneway.streams import Stream
    from oneway.tables import Table
    from oneway.task.privacy import Privacy
    from oneway.task.task import Task
    from oneway.topology import TrustGraph

__version__ = "0.2.0"

__all__ = [
    "Batches",
    "Centralised",
    "Conditions",
    "Delay",
    "InverseSqrt",
    "Isolated",
    "MutualGossip",
    "NaiveGossip",
    "OnewayClassifier",
    "OnewayError",
    "OnewayRegressor",
    "OnlinePushSum",
    "Peer",
    "Privacy",
    "Pull",
    "Relay",
    "RiverClassifier",
    "RiverRegressor",
    "Run",
    "Stream",
    "Table",
    "Task",
    "Tracking",
    "TrustGraph",
    "compare",
    "datasets",
    "methods",
    "metrics",
    "models",
    "simulate",
    "simulate_async",
    "streams",
    "sweep",
    "tables",
    "testing",
    "topology",
]

_HOME = {
    "Batches": "methods",
    "Centralised": "methods",
    "InverseSqrt": "methods",
    "Isolated": "methods",
    "MutualGossip": "methods",
    "NaiveGossip": "methods",
    "OnlinePushSum": "methods",
    "Pull": "methods",
    "Relay": "methods",
    "Tracking": "methods",
    "OnewayClassifier": "estimators",
    "OnewayRegressor": "estimators",
    "RiverClassifier": "estimators",
    "RiverRegressor": "estimators",
    "Peer": "peer.peer",
    "Privacy": "task.privacy",
    "Run": "simulator",
    "Stream": "streams",
    "Table": "tables",
    "Task": "task.task",
    "TrustGraph": "topology",
    "compare": "report.run_comparison",
    "Conditions": "asynchronous.conditions",
    "Delay": "asynchronous.conditions",
    "simulate": "simulator",
    "simulate_async": "asynchronous.simulate",
    "sweep": "simulator.sweep",
}


def __getattr__(name: str) -> Any:
    """Import a public name.

    Raises:
        MissingExtraError: If it needs a package that is not installed.
    """
    if name not in __all__:
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
