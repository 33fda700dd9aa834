"""Reconstruction of a graph from what a run wrote down about how it was made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from oneway.errors import GraphError
from oneway.records import Origin
from oneway.topology.edge_files import read_bytes
from oneway.topology.generators import GRAPHS
from oneway.topology.graph import TrustGraph

MOST_EDGES = 20_000_000
"""Larger graphs are not made again: it is only to look at them."""
MOST_BYTES = 1 << 30
"""Larger edge lists are not read again."""
_BYTES_PER_EDGE = 64
_DEEPEST = 20
"""So many steps may lie between a graph and what it was derived from."""


def rebuild(origin: Origin, most_edges: int = MOST_EDGES) -> TrustGraph:
    """Make a graph again.

    Args:
        origin: `graph.origin`, or `graph.description`, which a run's config has; if there is a
            checksum, the graph must agree with it.
        most_edges: A graph that has more, or more nodes, is not made again; nor is an edge list
            read that is much longer than so many edges need.

    Raises:
        GraphError: If it cannot be made again, and why: it was made from edges that nobody wrote
            down, its file is gone or has changed, or something else came out.
        DataError: If its file cannot be read.
    """
    graph = _made(origin, most_edges, depth=0)
    found, expected = graph.description["checksum"], origin.get("checksum")
    if expected is not None and found != expected:
        raise GraphError(
            f"made again, the graph has the checksum {found} and the run's had {expected}; it was "
            "made by another version of oneway or of a package it uses"
        )
    return graph


def _made(origin: object, most_edges: int, depth: int) -> TrustGraph:
    if not isinstance(origin, Mapping) or not isinstance(origin.get("graph"), str):
        raise GraphError("nothing was written down about how the graph was made")
    kind = origin["graph"]
    try:
        if kind.replace("_", "-") in GRAPHS:
            return _generated(kind.replace("_", "-"), origin, most_edges)
        if kind == "file":
            return _read(origin, min(MOST_BYTES, most_edges * _BYTES_PER_EDGE))
        if kind in _DERIVED and depth < _DEEPEST:
            return _DERIVED[kind](_made(origin.get("of"), most_edges, depth + 1), origin)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise GraphError(
            f"what was written down about the graph ({kind[:40]}) is damaged: "
            f"{type(error).__name__} {error}"
        ) from None
    raise GraphError(
        f"the edges of the graph ({kind[:40]}) were not written down, nor a seed or a file; it "
        "cannot be made again"
    )


def _generated(kind: str, origin: Mapping[str, Any], most_edges: int) -> TrustGraph:
    generator = GRAPHS[kind]
    parameters = {name: origin[name] for name in generator.parameters}
    expected = int(origin["num_nodes"]) * max(1.0, float(generator.edges_per_node(parameters)))
    if not expected <= most_edges:
        raise GraphError(
            f"the graph has about {expected:.2g} edges, and no more than {most_edges:,} are made "
            "again to be looked at"
        )
    return TrustGraph.generate(kind, **parameters)


def _read(origin: Mapping[str, Any], most_bytes: int) -> TrustGraph:
    path = Path(str(origin["file"]))
    # Not what a pipe or a device has to say: that may never end.
    if not path.is_file():
        raise GraphError(
            f"the edge list {path} is not there any more; put it back to see the graph"
        )
    if path.stat().st_size > most_bytes:
        raise GraphError(
            f"the edge list {path} has more than {most_bytes:,} bytes, too many to be read for a "
            "look; TrustGraph.read reads it all the same"
        )
    if hashlib.sha256(read_bytes(path)).hexdigest() != origin["sha256"]:
        raise GraphError(f"the edge list {path} has changed since the run; put the old one back")
    # Once more, as a small gzip can be a huge list.
    return TrustGraph.read(path, most_bytes)


def _without(graph: TrustGraph, origin: Mapping[str, Any]) -> TrustGraph:
    ends = origin["sender"], origin["receiver"]
    return graph.without(*(ends if graph.names is not None else map(int, ends)))


_DERIVED: dict[str, Callable[[TrustGraph, Mapping[str, Any]], TrustGraph]] = {
    "largest_strong_component": lambda graph, _: graph.largest_strong_component(),
    "mutual": lambda graph, _: graph.mutual(),
    "without": _without,
}
