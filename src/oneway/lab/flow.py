"""Where mass gathers: with one-way trust it flows on, and ends where nobody sends it back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import networkx as nx

from oneway.lab.wiring import Edge
from oneway.sentences import listed

CONNECTED = "everybody who runs reaches everybody again, so mass flows back"
FEW = "fewer than two peers run, so nothing flows"


def dead_ends(peers: Iterable[str], edges: Iterable[Edge]) -> list[tuple[str, ...]]:
    """The groups of peers that hear from others and send nothing back to them.

    Args:
        peers: Those that run.
        edges: Who sends to whom, whether they run or not.

    Returns:
        Nothing if everybody reaches everybody.

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
    """What dead ends mean for those who watch.

    Args:
        ends: As `dead_ends` found them.
        num_running: How many peers run.

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
