"""What a lab is about: the samples of every peer, who sends to whom, and the task."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from oneway.errors import ConfigError, DataError
from oneway.files.memory import require_memory
from oneway.peer.identity.card import check_name
from oneway.records import Ints
from oneway.streams.stream import Stream
from oneway.tables.table import Table
from oneway.task.assembly import chosen_graph, read_table
from oneway.task.learning import Learning
from oneway.task.settings import Settings
from oneway.task.task import Task
from oneway.topology import TrustGraph

DEFAULT_NODES = 8
DEFAULT_RECEIVERS = 3
DEFAULT_SAMPLES = 500
WATCHED_SAMPLES = 12_000
"""With a page there is somebody to watch, for four minutes at the usual rate."""
MOST_WATCHED = 240_000
"""Of all peers together: they are dealt and written before the first peer starts."""

_PEER_BYTES = 5e7
"""What a process of a peer takes at least."""


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
        classes_per_node: int | None = None,
        **learning: Any,
    ) -> Problem:
        """Deal a table to the nodes of a graph.

        Args:
            table: Samples with labels that suit the model.
            graph: Who sends to whom.
            samples: At most so many for each peer.
            seed: Of the dealing.
            owner: A column of the table: the owners with the most samples are the peers, and get
                theirs in the order of the table. Without, rows are dealt at random.
            classes_per_node: Every peer gets rows of only so many classes.
            learning: Model, method and their parameters, as a task has them.

        Raises:
            DataError: If there are too few rows or owners.
            TaskError: If the task breaks a rule.
            ConfigError: If its delta is too large for so many samples.
        """
        if samples < 1:
            raise ConfigError(f"samples is {samples}; every peer needs at least 1")
        if owner is None:
            dealt = table.deal(graph.num_nodes, seed=seed, classes_per_node=classes_per_node)
            stream = dealt.head(samples)
        else:
            stream = _by_owner(table, owner, graph.num_nodes, samples)
        task = Task.of(table, **learning)
        privacy = task.privacy
        if privacy.unit == "group":
            groups = table.owners(privacy.group).codes
            stream = stream.at_most(privacy.records_per_group, groups)
            stream = replace(stream, rows=_gaps_last(stream.rows))
        privacy.check_samples(stream.num_rounds)
        return cls(
            table=table,
            stream=stream,
            graph=graph,
            task=task,
            names=_names(stream.node_names or graph.names, graph.num_nodes),
        )

    def rows_of(self, node: int) -> Ints:
        """The rows of the table that a peer learns from, in order."""
        rows: Ints = self.stream.rows[:, node]
        return rows[rows >= 0]


def problem_of(settings: Settings, *, watched: bool) -> Problem:
    """Load the data, make the graph, deal; `rounds` is the number of samples of each peer.

    Args:
        settings: As flags and TOML files give them; a lab has defaults of its own.
        watched: Whether there is a page, and so a use for more samples.

    Raises:
        OnewayError: If a setting does not fit the data or another setting.
    """
    nodes = settings.nodes or DEFAULT_NODES
    require_memory(
        _PEER_BYTES * nodes,
        f"nodes is {nodes:,}: a lab has a process for each, and that",
        ConfigError,
        remedy="choose fewer nodes, or simulate them",
    )
    receivers = settings.max_receivers or max(1, min(DEFAULT_RECEIVERS, nodes - 1))
    graph = chosen_graph(replace(settings, max_receivers=receivers), nodes)
    most = min(WATCHED_SAMPLES, max(1, MOST_WATCHED // graph.num_nodes))
    samples = settings.rounds or (most if watched else DEFAULT_SAMPLES)
    table = read_table(settings, samples=graph.num_nodes * samples)
    settings = settings.with_model_for(table.label_kind)
    learning = {field.name: getattr(settings, field.name) for field in fields(Learning)}
    return Problem.deal(
        table,
        graph,
        samples=samples,
        seed=settings.seed,
        owner=settings.owner,
        classes_per_node=settings.classes_per_node,
        **learning,
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
    rows = _gaps_last(dealt.rows[:, most])[: min(samples, int(counts[most].max()))]
    names = dealt.node_names
    return replace(
        dealt,
        rows=rows,
        node_names=None if names is None else tuple(names[node] for node in most),
        origin={**dealt.origin, "owners": num_nodes, "head": len(rows), "side_by_side": True},
    )


def _gaps_last(rows: Ints) -> Ints:
    """Every node's rows in their order, without the rounds in which it has none."""
    moved: Ints = np.take_along_axis(rows, np.argsort(rows < 0, axis=0, kind="stable"), axis=0)
    return moved


def _names(wanted: tuple[str, ...] | None, num_nodes: int) -> tuple[str, ...]:
    """The names that nodes have already, if peers can have them: they become folders too."""
    numbered = tuple(f"peer{node}" for node in range(num_nodes))
    if wanted is None or len(set(map(str.lower, wanted))) < num_nodes:
        return numbered
    try:
        return tuple(check_name(name) for name in wanted)
    except ConfigError:
        return numbered
