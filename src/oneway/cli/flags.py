"""Flags that several commands have, each a setting of `oneway.task.settings.Settings`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer


def setting(panel: str, metavar: str, default: str, text: str) -> Any:
    """A flag for a setting; the default is shown only, it is `Settings` that has it."""
    return typer.Option(
        metavar=metavar, help=text, show_default=default or False, rich_help_panel=panel
    )


def switch(panel: str, name: str, text: str) -> Any:
    """A flag that is on or off."""
    return typer.Option(name, metavar="", help=text, show_default=False, rich_help_panel=panel)


Label: TypeAlias = Annotated[
    str | None, setting("Data", "COLUMN", "", "What to predict, in a CSV or Parquet file.")
]
Owner: TypeAlias = Annotated[
    str | None,
    setting("Data", "COLUMN", "", "Every value of this column is a node and owns its rows."),
]
Adversarial: TypeAlias = Annotated[
    float | None,
    setting("Data", "SHARE", "0", "Share of the rows dealt by cluster, not at random: 0..1."),
]
Graph: TypeAlias = Annotated[
    str | None,
    setting(
        "Graph",
        "NAME",
        "random",
        "random, ring, complete, erdos-renyi, scale-free, advogato, epinions, or an edge list.",
    ),
]
Nodes: TypeAlias = Annotated[
    int | None, setting("Graph", "N", "20, or as the graph file says", "Number of nodes.")
]
MaxReceivers: TypeAlias = Annotated[
    int | None,
    setting("Graph", "N", "10, or all", "Random graph: every node sends to 1 up to this many."),
]
Density: TypeAlias = Annotated[
    float | None, setting("Graph", "P", "0.1", "Erdos-Renyi graph: probability of an edge.")
]
LargestComponent: TypeAlias = Annotated[
    bool | None, switch("Graph", "--largest-component", "Keep only the largest strong component.")
]
Model: TypeAlias = Annotated[
    str | None, setting("Method", "NAME", "logistic", "logistic, ridge, hinge or softmax.")
]
L2: TypeAlias = Annotated[
    float | None, setting("Method", "X", "0.0001", "Weight of the squared norm in the loss.")
]
Seed: TypeAlias = Annotated[int | None, setting("Run", "N", "0", "Of the graph and the dealing.")]
