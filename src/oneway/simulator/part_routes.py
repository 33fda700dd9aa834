"""Edges of a partitioned network: what each part sums up, sends and receives.

A part has its own nodes in the order of the network, and behind them ghosts: nodes of other parts
that send to its own, by part and then in the order of the network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneway.records import Ints
from oneway.simulator.fast_engine import NO_EDGES, Edges, Routes


@dataclass(frozen=True, eq=False)
class Partition:
    """Which part a node belongs to.

    Attributes:
        part_of: `part_of[node]`, from 0 on.
        nodes: For each part its nodes, in order.
        place_of: `place_of[node]` in its part.
    """

    part_of: Ints
    nodes: tuple[Ints, ...]
    place_of: Ints

    @classmethod
    def of(cls, part_of: Ints) -> Partition:
        """From the part of every node; no part is empty."""
        order = np.argsort(part_of, kind="stable")
        counts = np.bincount(part_of)
        nodes = tuple(np.split(order, np.cumsum(counts)[:-1]))
        place_of = np.empty(len(part_of), np.int32)
        for own in nodes:
            place_of[own] = np.arange(len(own), dtype=np.int32)
        return cls(part_of, nodes, place_of)

    @property
    def num_parts(self) -> int:
        """How many parts there are."""
        return len(self.nodes)


@dataclass(frozen=True, eq=False)
class PartRoutes:
    """The edges to the nodes of one part.

    Attributes:
        edges: Of models and masses; senders are places among own nodes and ghosts.
        parcel_edges: Of parcels, likewise.
        sends: For each part the places of own nodes whose rows it needs.
        ghosts: For each part how many ghosts are from it.
    """

    edges: Edges
    parcel_edges: Edges
    sends: tuple[Ints, ...]
    ghosts: tuple[int, ...]


def split_routes(routes: Routes, partition: Partition) -> list[PartRoutes]:
    """The edges of a network, part by part, the senders of every receiver in the same order."""
    parts = range(partition.num_parts)
    local = [[_rows_of(edges, partition.nodes[part]) for edges in routes] for part in parts]
    ghosts = [_ghosts(local[part], partition, part) for part in parts]
    place = np.zeros(len(partition.part_of), np.int32)
    split = []
    for part in parts:
        own = partition.nodes[part]
        place[own] = np.arange(len(own), dtype=np.int32)
        known = len(own)
        for behind in ghosts[part]:
            place[behind] = np.arange(known, known + len(behind), dtype=np.int32)
            known += len(behind)
        edges, parcel_edges = (
            (indptr, place[senders], shares) for indptr, senders, shares in local[part]
        )
        split.append(
            PartRoutes(
                edges,
                parcel_edges,
                tuple(partition.place_of[ghosts[to][part]] for to in parts),
                tuple(len(behind) for behind in ghosts[part]),
            )
        )
    return split


def _rows_of(edges: Edges, nodes: Ints) -> Edges:
    """The edges to some receivers."""
    indptr, senders, shares = edges
    if edges is NO_EDGES:
        return edges
    counts = np.diff(indptr)[nodes]
    begins = np.concatenate([[0], np.cumsum(counts)])
    chosen = np.arange(begins[-1]) + np.repeat(indptr[nodes] - begins[:-1], counts)
    return begins, senders[chosen], shares[chosen]


def _ghosts(local: list[Edges], partition: Partition, part: int) -> list[Ints]:
    """Nodes of each other part that send to the nodes of this one, in order."""
    is_sender = np.zeros(len(partition.part_of), np.bool_)
    for _, senders, _ in local:
        is_sender[senders] = True
    return [
        nodes[is_sender[nodes]] if other != part else nodes[:0]
        for other, nodes in enumerate(partition.nodes)
    ]
