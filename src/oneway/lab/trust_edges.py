"""The trust graph as the peers are told it now: edges, cut lines, and where mass gathers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import networkx as nx

from oneway.lab.peer_folders import PeerFolder
from oneway.sentences import listed

Edge = tuple[str, str]
"""A sender and a receiver, by name."""

CONNECTED = "everybody who runs reaches everybody again, so mass flows back"
FEW = "fewer than two peers run, so nothing flows"


@dataclass(frozen=True)
class TrustEdges:
    """What the configurations of the peers say.

    Attributes:
        edges: Who sends to whom.
        cuts: The lines that are cut at either end, each a pair of names.
    """

    edges: Sequence[Edge]
    cuts: frozenset[frozenset[str]]

    @classmethod
    def of(cls, peers: Sequence[PeerFolder]) -> TrustEdges:
        """As they are told at this moment; edges out of the lab are left out."""
        names = {peer.key: peer.name for peer in peers}
        configs = {peer.name: peer.config for peer in peers}
        return cls(
            edges=[
                (name, names[receiver.key])
                for name, config in configs.items()
                for receiver in config.receivers
                if receiver.key in names
            ],
            cuts=frozenset(
                frozenset((name, other))
                for name, config in configs.items()
                for other in config.faults.cut
            ),
        )

    def is_cut(self, one: str, other: str) -> bool:
        """Whether the line between two peers is cut, at either end."""
        return frozenset((one, other)) in self.cuts


def dead_ends(peers: Iterable[str], edges: Iterable[Edge]) -> list[tuple[str, ...]]:
    """Sink components: the groups of peers that hear from others and send nothing back to them.

    Only of peers that run, and only if not everybody reaches everybody.

    >>> dead_ends("abc", [("a", "b"), ("b", "a"), ("b", "c")])
    [('c',)]
    """
    graph = nx.DiGraph()
    graph.add_nodes_from(peers)
    graph.add_edges_from(edge for edge in edges if edge[0] in graph and edge[1] in graph)
    parts = nx.condensation(graph)
    if len(parts) <= 1:
        return []
    ends = (part for part in parts if parts.out_degree(part) == 0)
    return sorted(tuple(sorted(parts.nodes[part]["members"])) for part in ends)


def flow_sentence(ends: Sequence[tuple[str, ...]], num_running: int = 2) -> str:
    """What the dead ends among so many running peers mean for those who watch.

    >>> flow_sentence([("c",)])
    'mass now gathers at c, which sends to nobody else that runs'
    >>> flow_sentence([("a", "b"), ("c",)])
    'mass now gathers in 2 places that send nothing to each other: a, b; c'
    """
    if num_running < 2:
        return FEW
    if not ends:
        return CONNECTED
    if len(ends) > 1:
        places = "; ".join(listed(end) for end in ends)
        return f"mass now gathers in {len(ends)} places that send nothing to each other: {places}"
    [end] = ends
    who = "which sends" if len(end) == 1 else "which send"
    return f"mass now gathers at {listed(end)}, {who} to nobody else that runs"
