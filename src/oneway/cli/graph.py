"""`oneway graph`: what an edge list looks like."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from oneway.cli.options import argument
from oneway.cli.output import AsJson, print_facts, print_json


def graph(
    edges: Annotated[
        str,
        argument(
            "EDGES",
            "Edge list (SNAP, KONECT or CSV, optionally .gz; a line `A B` or `A,B` means: A "
            "sends to B), or a known one such as advogato; oneway data list says which.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Statistics of a trust graph: who can learn from whom, and how little mass a node may hold."""
    from oneway.task.assembly import named_graph
    from oneway.topology.views import graph_statistics

    statistics = graph_statistics(named_graph(edges))
    if as_json:
        print_json(asdict(statistics))
    else:
        print_facts(edges, statistics.as_facts())
