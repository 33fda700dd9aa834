"""From settings to the parts of a run: table, stream, graph, model and method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oneway.datasets import DATASETS
from oneway.datasets.data_set import names_of
from oneway.datasets.loader import load, load_for
from oneway.errors import ConfigError, GraphError
from oneway.files.validation import nearest_of
from oneway.methods import Method
from oneway.models import Model, typical_sample
from oneway.streams import Stream
from oneway.tables import Table
from oneway.task.learning import start_options
from oneway.task.settings import COLUMN_KEYS, Settings
from oneway.topology import GRAPHS, TrustGraph

DEFAULT_NODES = 20
DEFAULT_RECEIVERS = 10


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a run.

    Attributes:
        settings: With what comes from the data: the model, and the options that suit its labels.
    """

    method: Method
    model: Model
    table: Table
    stream: Stream
    graph: TrustGraph
    settings: Settings


def assemble(settings: Settings, table: Table | None = None) -> Parts:
    """Load the data, deal it, make the graph, choose method and model.

    Args:
        settings: What to run.
        table: The data, if it is in memory already; that of the settings is then not read.

    Raises:
        OnewayError: If a setting does not fit the data or another setting.
    """
    if settings.owner is not None:
        for name in ("nodes", "resample", "adversarial", "classes_per_node"):
            value = getattr(settings, name)
            if value:
                raise ConfigError(
                    f"owner = {settings.owner!r} deals every row to its owner, so {name} = {value} "
                    "cannot be set as well; leave one of them out"
                )
    # First: a graph that is too large is refused at once, not after its data was read.
    graph = None if settings.owner else chosen_graph(settings, settings.nodes or DEFAULT_NODES)
    table = read_table(settings) if table is None else table
    if settings.owner is not None:
        stream = table.deal_by(settings.owner)
        graph = chosen_graph(settings, stream.num_nodes)
        if graph.num_nodes != stream.num_nodes:
            raise GraphError(
                f"the graph has {graph.num_nodes} nodes and column {settings.owner!r} has "
                f"{stream.num_nodes} owners; use a graph with one node for each owner"
            )
    else:
        assert graph is not None
        stream = table.deal(
            graph.num_nodes,
            adversarial=settings.adversarial,
            seed=settings.seed,
            resample=settings.resample,
            classes_per_node=settings.classes_per_node,
        )
    if settings.rounds is not None:
        stream = stream.head(settings.rounds)
    privacy = settings.privacy
    if privacy.unit == "group":
        stream = stream.at_most(privacy.records_per_group, table.owners(privacy.group).codes)
    privacy.check_samples(stream.num_rounds)
    settings = started(settings, table)
    model = settings.model_for(len(table.encoder.classes)).for_samples(table.shape)
    method = settings.build_method(model.dim(stream.dim))
    method = method.suited(*typical_sample(model, stream.dim))
    return Parts(method, model, table, stream, graph, settings)


def started(settings: Settings, table: Table) -> Settings:
    """Return the settings with the model for the labels of a table, and options that suit them.

    Settings that come from a task stay as they are.
    """
    settings = settings.with_model_for(table.label_kind)
    if settings.encoder is not None:
        return settings
    options = start_options(settings, len(table.encoder.classes), table.labels)
    return replace(settings, options=options)


def read_table(settings: Settings, **offered: Any) -> Table:
    """Return the table that settings name, encoded by their task if there is one.

    Args:
        settings: Data, label, features and model.
        offered: Parameters of a data set, such as `samples`, for those that take them.

    Raises:
        OnewayError: If there is no such data, or it does not suit the task or the model.
    """
    encoder = settings.encoder
    kind = settings.label_kind if encoder else settings.model_label_kind()
    if settings.data not in names_of("table"):
        if encoder is not None:
            return load(settings.data, encoder=encoder)
        choices = settings.choices
        if settings.privacy.unit == "group":  # a group is an owner, not a feature
            choices["exclude"] = tuple({*choices.get("exclude", ()), settings.privacy.group})
        return load_for(settings.data, kind, label=settings.label, columns=choices)
    for name in COLUMN_KEYS:
        if getattr(settings, name):
            raise ConfigError(
                f"{name} is for files, and {settings.data} has its own features; leave it out"
            )
    if settings.label is not None and encoder is None:
        raise ConfigError(
            f"label = {settings.label!r} is for files, and {settings.data} has its own label; "
            "leave it out"
        )
    table = load_for(settings.data, kind, seed=settings.seed, **offered)
    return table if encoder is None else table.recoded(encoder)


def named_graph(name: str) -> TrustGraph:
    """Return a graph from a file, or one of the known trust networks.

    Raises:
        OnewayError: If there is no such file, or it is no edge list.
    """
    if name in names_of("graph"):
        graph: TrustGraph = DATASETS[name].load()
        return graph
    return TrustGraph.read(name)


def chosen_graph(settings: Settings, num_nodes: int) -> TrustGraph:
    """Return the graph that settings name: generated for `num_nodes` nodes, or read from a file.

    Raises:
        OnewayError: If there is no such graph, or it cannot be made.
    """
    name = settings.graph
    if name in GRAPHS:
        parameters: dict[str, Any] = {
            "num_nodes": num_nodes,
            "max_receivers": settings.max_receivers
            or max(1, min(DEFAULT_RECEIVERS, num_nodes - 1)),
            "density": settings.density,
            "seed": settings.seed,
        }
        takes = GRAPHS[name].parameters
        graph = TrustGraph.generate(
            name, **{key: parameters[key] for key in takes if key in parameters}
        )
        return graph.largest_strong_component() if settings.largest_component else graph
    known = (*GRAPHS, *names_of("graph"))
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
