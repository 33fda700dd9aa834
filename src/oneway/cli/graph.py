"""`oneway graph`: what an edge list looks like."""

from __future__ import annotations

from typing import Annotated

import typer

from oneway.cli.output import AsJson, print_facts, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("graph", epilog="Example: oneway graph edges.csv --json")(graph)


def graph(
    edges: Annotated[
        str,
        typer.Argument(
            metavar="EDGES",
            help="Edge list (SNAP, KONECT or CSV, optionally .gz; a line `A B` or `A,B` means: A "
            "sends to B), or advogato or epinions.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Statistics of a trust graph: who can learn from whom, and how little mass a node may hold."""
    from oneway.paper.statistics import graph_statistics
    from oneway.task.assembly import named_graph

    statistics = graph_statistics(named_graph(edges))
    if as_json:
        print_json(statistics.as_dict())
    else:
        print_facts(edges, statistics.as_facts())
