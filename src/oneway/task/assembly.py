"""From settings to a run: load the data, make the graph, choose algorithm and model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oneway.datasets import load, synthetic
from oneway.datasets.base import DATA_SETS, require_any
from oneway.datasets.loader import TABLES
from oneway.errors import ConfigError, GraphError
from oneway.methods import BY_NAME, Algorithm, InverseSqrt, OnlinePushSum
from oneway.models import Hinge, LogisticRegression, Model, RidgeRegression, SoftmaxRegression
from oneway.streams import Stream
from oneway.tables import Table
from oneway.tables.labels import Task
from oneway.task.settings import Settings, nearest_of
from oneway.topology import TrustGraph

DEFAULT_NODES = 20
DEFAULT_RECEIVERS = 10
SYNTHETIC_SAMPLES, SYNTHETIC_FEATURES = 20_000, 10
_TASKS: dict[str, Task] = {
    "logistic": "binary",
    "hinge": "binary",
    "ridge": "number",
    "softmax": "classes",
}
_LINEAR: dict[str, type[LogisticRegression | Hinge | RidgeRegression]] = {
    "logistic": LogisticRegression,
    "hinge": Hinge,
    "ridge": RidgeRegression,
}
_GENERATED: dict[str, Callable[[Settings, int], TrustGraph]] = {
    "random": lambda settings, num_nodes: TrustGraph.random(
        num_nodes,
        settings.max_receivers or max(1, min(DEFAULT_RECEIVERS, num_nodes - 1)),
        settings.seed,
    ),
    "ring": lambda _, num_nodes: TrustGraph.ring(num_nodes),
    "complete": lambda _, num_nodes: TrustGraph.complete(num_nodes),
    "erdos-renyi": lambda settings, num_nodes: TrustGraph.erdos_renyi(
        num_nodes, settings.density, settings.seed
    ),
    "scale-free": lambda settings, num_nodes: TrustGraph.scale_free(num_nodes, settings.seed),
}
_NETWORKS = tuple(data_set.name for data_set in DATA_SETS if data_set.kind == "graph")


@dataclass(frozen=True)
class Simulation:
    """The parts that settings describe, ready to run."""

    algorithm: Algorithm
    model: Model
    stream: Stream
    graph: TrustGraph


def assemble(settings: Settings) -> Simulation:
    """Load the data, make the graph, choose algorithm and model.

    Raises:
        OnewayError: If a setting does not fit the data or another setting.
    """
    _check_fit(settings)
    algorithm = _algorithm(settings)
    table = _table(settings)
    if settings.owner is not None:
        stream = table.deal_by(settings.owner)
        graph = chosen_graph(settings, stream.num_nodes)
        if graph.num_nodes != stream.num_nodes:
            raise GraphError(
                f"the graph has {graph.num_nodes} nodes and column {settings.owner!r} has "
                f"{stream.num_nodes} owners; use a graph with one node for each owner"
            )
    else:
        graph = chosen_graph(settings, settings.nodes or DEFAULT_NODES)
        stream = table.deal(
            graph.num_nodes,
            adversarial=settings.adversarial,
            seed=settings.seed,
            resample=settings.resample,
        )
    if settings.rounds is not None:
        stream = stream.head(settings.rounds)
    return Simulation(algorithm, _model(settings, table), stream, graph)


def named_graph(name: str) -> TrustGraph:
    """A graph from a file, or one of the catalogue's trust networks.

    Raises:
        OnewayError: If there is no such file, or it is no edge list.
    """
    return TrustGraph.read(require_any(name) if name in _NETWORKS else name)


def _check_fit(settings: Settings) -> None:
    """Refuse settings that contradict each other: ignoring one would surprise somebody."""
    if settings.owner is not None:
        for name in ("nodes", "resample", "adversarial"):
            value = getattr(settings, name)
            if value:
                raise ConfigError(
                    f"owner = {settings.owner!r} says whose every row is, so {name} = {value} "
                    "cannot be set as well; leave one of them out"
                )
    if settings.data not in ("synthetic", *TABLES):
        return
    if settings.label is not None:
        raise ConfigError(
            f"label = {settings.label!r} is for files, and {settings.data} has its own label; "
            "leave it out"
        )
    if settings.model == "softmax":
        raise ConfigError(
            f"model = 'softmax' needs a file whose label is a class, and {settings.data} has two "
            "labels; use logistic, ridge or hinge"
        )


def _table(settings: Settings) -> Table:
    if settings.data == "synthetic":
        return synthetic(
            SYNTHETIC_SAMPLES,
            SYNTHETIC_FEATURES,
            settings.seed,
            task="number" if settings.model == "ridge" else "binary",
        ).table
    if settings.data in TABLES:
        return load(settings.data)
    return load(settings.data, label=settings.label, task=_TASKS[settings.model])


def chosen_graph(settings: Settings, num_nodes: int) -> TrustGraph:
    """The graph that settings name: generated for so many nodes, or read from a file.

    Raises:
        OnewayError: If there is no such graph, or it cannot be made.
    """
    name = settings.graph
    if name in _GENERATED:
        graph = _GENERATED[name](settings, num_nodes)
        return graph.largest_strong_component() if settings.largest_component else graph
    known = (*_GENERATED, *_NETWORKS)
    if name not in known and not Path(name).suffix and not Path(name).exists():
        raise ConfigError(f"there is no graph {name!r}; {nearest_of(name, known)} or an edge list")
    graph = named_graph(name)
    if settings.largest_component:
        graph = graph.largest_strong_component()
    if settings.nodes not in (None, graph.num_nodes):
        raise GraphError(
            f"the graph {name} has {graph.num_nodes} nodes and nodes is {settings.nodes}; leave "
            f"nodes out, or choose {graph.num_nodes}"
        )
    return graph


def _algorithm(settings: Settings) -> Algorithm:
    rate = settings.learning_rate
    schedule = InverseSqrt(rate) if settings.schedule == "inverse-sqrt" else rate
    if settings.algorithm == "ops":
        return OnlinePushSum(schedule, cap_step=settings.cap_step)
    if settings.cap_step:
        raise ConfigError(
            f"cap_step shortens the steps of ops by a node's mass; {settings.algorithm} has no "
            "mass, so leave it out"
        )
    return BY_NAME[settings.algorithm](schedule)


def _model(settings: Settings, table: Table) -> Model:
    if settings.model == "softmax":
        num_classes = int(table.labels.max()) + 1
        return SoftmaxRegression(num_classes, l2=settings.l2, intercept=settings.intercept)
    return _LINEAR[settings.model](l2=settings.l2, intercept=settings.intercept)
