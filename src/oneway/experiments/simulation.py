"""One simulation described by plain settings: what `oneway simulate` and its TOML files say."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from oneway.algorithms import BY_NAME, Algorithm, InverseSqrt, OnlinePushSum
from oneway.errors import ConfigError
from oneway.models import Hinge, LogisticRegression, Model, RidgeRegression, SoftmaxRegression
from oneway.simulator import Run, simulate
from oneway.streams import Stream, Table, load, synthetic
from oneway.streams.data_sets import DATA_SETS, require_any
from oneway.streams.labels import Task
from oneway.topology import TrustGraph

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


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that determines one simulation. A TOML file holds these names as keys."""

    data: str = "flights"
    """flights, occupancy, susy, synthetic, or a CSV, Parquet or LIBSVM file."""
    label: str | None = None
    """Label column of a file."""
    owner: str | None = None
    """Column whose values are the nodes; otherwise rows are dealt to `nodes` nodes."""
    nodes: int | None = None
    """Number of nodes; by default what the graph or the owners say, or 20."""
    adversarial: float = 0.0
    """Fraction of the rows that is clustered, one cluster per node, instead of dealt at random."""
    resample: int | None = None
    """Draw this many rows with replacement."""
    rounds: int | None = None
    """Run only the first rounds."""
    graph: str = "random"
    """random, ring, complete, erdos-renyi, scale-free, advogato, epinions, or an edge list."""
    max_receivers: int = 10
    """Of the random graph: every node sends to between 1 and this many others."""
    density: float = 0.1
    """Of the Erdos-Renyi graph: probability of an edge."""
    largest_component: bool = False
    """Keep only the largest strong component of the graph."""
    algorithm: Literal["ops", "dol-symm", "dol-asymm", "col", "local"] = "ops"
    learning_rate: float = 0.1
    schedule: Literal["constant", "inverse-sqrt"] = "constant"
    cap_step: bool = False
    """Of ops: shorten the steps of nodes with little mass."""
    model: Literal["logistic", "ridge", "hinge", "softmax"] = "logistic"
    l2: float = 1e-4
    intercept: bool = True
    seed: int = 0
    """Of the graph and of the dealing."""
    engine: Literal["auto", "reference", "fast"] = "auto"


@dataclass(frozen=True)
class Simulation:
    """The parts that settings describe, ready to run."""

    algorithm: Algorithm
    model: Model
    stream: Stream
    graph: TrustGraph | None


def read_settings(path: Path | None, overrides: Mapping[str, Any]) -> Settings:
    """Settings from a TOML file (if any), with `overrides` on top.

    Raises:
        ConfigError: If the file cannot be read, or a setting is unknown or has a wrong value.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text())
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not valid TOML: {error}") from error
    known = Settings.__struct_fields__
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}" if near else f"the settings are {', '.join(known)}"
            raise ConfigError(f"{key!r} in {path} is not a setting; {hint}")
    try:
        return msgspec.convert(values | dict(overrides), Settings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"a setting has a wrong value: {error}") from error


def assemble(settings: Settings) -> Simulation:
    """Load the data, make the graph, choose algorithm and model.

    Raises:
        OnewayError: If a setting does not fit the data or another setting.
    """
    table = _table(settings)
    graph: TrustGraph | None = None
    if settings.owner is not None:
        if settings.nodes is not None:
            raise ConfigError(
                f"owner = {settings.owner!r} says who the nodes are, so nodes = {settings.nodes} "
                "cannot be set as well; leave one out"
            )
        stream = table.deal_by(settings.owner)
        graph = _graph(settings, stream.num_nodes)
    else:
        graph = _graph(settings, settings.nodes or 20)
        stream = table.deal(
            settings.nodes or graph.num_nodes,
            adversarial=settings.adversarial,
            seed=settings.seed,
            resample=settings.resample,
        )
    if settings.rounds is not None:
        stream = stream.head(settings.rounds)
    return Simulation(_algorithm(settings), _model(settings, table), stream, graph)


def run_settings(settings: Settings, progress: bool | None = None) -> Run:
    """Assemble and simulate.

    Raises:
        OnewayError: If a setting does not fit, or the run diverges.
    """
    parts = assemble(settings)
    return simulate(
        parts.algorithm,
        parts.model,
        parts.stream,
        parts.graph,
        engine=settings.engine,
        progress=progress,
    )


def named_graph(name: str) -> TrustGraph:
    """A graph from a file, or one of the catalogue's trust networks.

    Raises:
        OnewayError: If there is no such file, or it is no edge list.
    """
    known = [data_set.name for data_set in DATA_SETS if data_set.kind == "graph"]
    return TrustGraph.read(require_any(name) if name in known else name)


def _table(settings: Settings) -> Table:
    if settings.data == "synthetic":
        return synthetic(SYNTHETIC_SAMPLES, SYNTHETIC_FEATURES, seed=settings.seed).table
    if settings.data in [data_set.name for data_set in DATA_SETS]:
        return load(settings.data)
    return load(settings.data, label=settings.label, task=_TASKS[settings.model])


def _graph(settings: Settings, num_nodes: int) -> TrustGraph:
    seed = settings.seed
    if settings.graph == "random":
        receivers = min(settings.max_receivers, num_nodes - 1)
        graph = TrustGraph.random(num_nodes, receivers, seed)
    elif settings.graph == "ring":
        graph = TrustGraph.ring(num_nodes)
    elif settings.graph == "complete":
        graph = TrustGraph.complete(num_nodes)
    elif settings.graph == "erdos-renyi":
        graph = TrustGraph.erdos_renyi(num_nodes, settings.density, seed)
    elif settings.graph == "scale-free":
        graph = TrustGraph.scale_free(num_nodes, seed)
    else:
        graph = named_graph(settings.graph)
    return graph.largest_strong_component() if settings.largest_component else graph


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
