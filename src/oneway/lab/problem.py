"""What a lab is about: the samples of every peer, who sends to whom, and the task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from oneway.datasets.loader import TABLES, load
from oneway.datasets.synthetic import synthetic
from oneway.errors import ConfigError, DataError
from oneway.peer.identity.card import check_name
from oneway.records import Ints
from oneway.streams.stream import Stream
from oneway.tables.labels import LabelValue
from oneway.tables.labels import Task as LabelTask
from oneway.tables.table import Table
from oneway.task.task import Feature, ModelName, Task
from oneway.topology import TrustGraph

SYNTHETIC_FEATURES = 10
_SYNTHETIC_TASKS: dict[str, Literal["binary", "number"]] = {
    "logistic": "binary",
    "hinge": "binary",
    "ridge": "number",
}
_TASKS: dict[str, LabelTask] = {**_SYNTHETIC_TASKS, "softmax": "classes"}


@dataclass(frozen=True, eq=False)
class Problem:
    """What there is to learn, for peers and simulator alike.

    Attributes:
        table: Where the samples come from.
        stream: `rows[k, i]` is the k-th sample of peer i; -1 where it has no more.
        graph: Who sends to whom.
        task: What all peers are told.
        names: What the peers are called.
    """

    table: Table
    stream: Stream
    graph: TrustGraph
    task: Task
    names: tuple[str, ...]

    @classmethod
    def deal(
        cls,
        table: Table,
        graph: TrustGraph,
        *,
        samples: int,
        seed: int = 0,
        owner: str | None = None,
        model: ModelName = "logistic",
        learning_rate: float = 0.1,
    ) -> Problem:
        """Deal a table to the nodes of a graph.

        Args:
            table: Samples with labels that suit the model.
            graph: Strongly connected, so that everybody can learn from everybody.
            samples: At most so many for each peer.
            seed: Of the dealing.
            owner: A column of the table: the owners with the most samples are the peers, and get
                theirs in the order of the table. Without, rows are dealt at random.
            model: What is learned.
            learning_rate: How far one sample moves the model.

        Raises:
            DataError: If there are too few rows or owners.
            GraphError: If the graph is not strongly connected.
            TaskError: If the task breaks a rule.
        """
        if samples < 1:
            raise ConfigError(f"samples is {samples}; every peer needs at least 1")
        graph.require_strongly_connected()
        if owner is None:
            stream = table.deal(graph.num_nodes, seed=seed).head(samples)
        else:
            stream = _by_owner(table, owner, graph.num_nodes, samples)
        return cls(
            table=table,
            stream=stream,
            graph=graph,
            task=task_for(table, model, learning_rate),
            names=_names(stream.node_names or graph.names, graph.num_nodes),
        )

    def rows_of(self, node: int) -> Ints:
        """The rows of the table that a peer learns from, in order."""
        rows: Ints = self.stream.rows[:, node]
        return rows[rows >= 0]


def read_table(
    data: str, *, label: str | None, model: ModelName, num_samples: int, seed: int
) -> Table:
    """Load a known data set or a file, or make samples up.

    Args:
        data: As `oneway.streams.load` knows it, or "synthetic".
        label: The column to predict, in a file.
        model: What the labels must suit.
        num_samples: How many samples to make up.
        seed: Of those.

    Raises:
        DataError: If there is no such data, or it does not suit the model.
    """
    if data == "synthetic":
        if label is not None:
            raise DataError(
                f"label {label!r} is for files, and synthetic has its own; leave it out"
            )
        kind = _SYNTHETIC_TASKS.get(model)
        if kind is None:
            raise DataError(
                f"model {model!r} needs a file whose label is a class, and synthetic has two "
                "labels; use logistic, ridge or hinge"
            )
        return synthetic(num_samples, SYNTHETIC_FEATURES, seed, task=kind).table
    if data in TABLES and model == "ridge":
        return load(data, label=label)  # the numbers -1 and +1 are as good as any
    return load(data, label=label, task=_TASKS[model])


def task_for(table: Table, model: ModelName, learning_rate: float) -> Task:
    """The task that a table is for: its features with their scaling, its label, its classes."""
    label = table.origin.get("label")
    taken = set(table.feature_names)
    return Task(
        model=model,
        label=label if isinstance(label, str) and label not in taken else "label",
        features=tuple(
            Feature(name, float(mean), float(scale))
            for name, mean, scale in zip(
                table.feature_names, table.means, table.scales, strict=True
            )
        ),
        classes=()
        if model == "ridge"
        else tuple(_class_name(value) for value in table.label_values),
        learning_rate=learning_rate,
    )


def _by_owner(table: Table, column: str, num_nodes: int, samples: int) -> Stream:
    """Every owner's first samples side by side: peers begin together and keep the same pace."""
    dealt = table.deal_by(column)
    counts = (dealt.rows >= 0).sum(axis=0)
    if dealt.num_nodes < num_nodes:
        raise DataError(
            f"column {column!r} of {table.name} names {dealt.num_nodes} owners, and there are to "
            f"be {num_nodes} peers; choose at most {dealt.num_nodes}, or another column"
        )
    most = np.sort(np.argsort(-counts, kind="stable")[:num_nodes])
    rows = np.full((min(samples, int(counts[most].max())), num_nodes), -1, dtype=dealt.rows.dtype)
    for node, dealt_node in enumerate(most):
        own = dealt.rows[:, dealt_node]
        first = own[own >= 0][:samples]
        rows[: len(first), node] = first
    names = dealt.node_names
    return Stream(
        features=table.features,
        labels=table.labels,
        rows=rows,
        node_names=None if names is None else tuple(names[node] for node in most),
        origin={**dealt.origin, "owners": num_nodes, "head": len(rows), "side_by_side": True},
    )


def _names(wanted: tuple[str, ...] | None, num_nodes: int) -> tuple[str, ...]:
    """The names that nodes have already, if peers can have them: they become folders too."""
    numbered = tuple(f"peer{node}" for node in range(num_nodes))
    if wanted is None or len({name.lower() for name in wanted}) < num_nodes:
        return numbered
    try:
        return tuple(check_name(name) for name in wanted)
    except ConfigError:
        return numbered


def _class_name(value: LabelValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.strip() if isinstance(value, str) else repr(value)
