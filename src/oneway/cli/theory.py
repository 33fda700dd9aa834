"""`oneway theory`: constants, step sizes and bounds of the paper's theorems for a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from oneway.cli.options import option
from oneway.cli.output import (
    AsJson,
    make_table,
    note,
    on_interrupt,
    print_facts,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from oneway.display.terminal_table import TerminalTable
    from oneway.paper.theorem import Evaluation

SETTINGS = (
    "graph", "nodes", "max_receivers", "density", "largest_component", "seed", "rounds",
    "learning_rate", "data", "label", "owner", "adversarial", "model", "l2",
)  # fmt: skip


def theory(
    given: Mapping[str, Any],
    gradient_bound: Annotated[
        float | None, option("G", "Largest norm of an expected gradient.", "1", panel="Losses")
    ] = None,
    noise: Annotated[
        float | None,
        option("SIGMA", "Root mean square distance of a gradient from that.", "1", panel="Losses"),
    ] = None,
    radius: Annotated[
        float | None, option("R", "Distance of the best model from the start.", "1", panel="Losses")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What the paper's theorems promise for a graph and, with --data, what is measured.

    The table has a row for each step size: as printed in the paper; best for the bound as printed;
    best for the tight bound, which keeps the factors that the printed proof gives away; and the
    one you give.

    Without data, G, sigma and R are what you say, and T is 1000 unless you say otherwise. With data
    they are measured: R is the norm of the best fixed model in hindsight, G and sigma are the
    largest expected gradient and noise of any node at five rounds of the run, where a node's
    samples count as draws from one distribution.
    """
    losses = {"gradient_bound": gradient_bound, "noise": noise, "radius": radius}
    stated = dict(given) | {name: value for name, value in losses.items() if value is not None}
    from oneway.paper.theorem import theorems

    with on_interrupt("Interrupted: nothing was measured."):
        result = theorems(stated)
    if as_json:
        print_json(result.as_dict())
        return
    print_facts("The paper's theorems on this graph", result.as_facts())
    print_table(_table(result))
    note("Where these formulas differ from the printed ones, and why: docs/errata.md")


def _table(result: Evaluation) -> TerminalTable:
    numbers = ["gamma", "printed", "tight", *["certain", "measured"] * result.is_measured]
    title = "Bounds on the regret" + ", and what it was" * result.is_measured
    table = make_table("step size", *numbers, right=numbers, title=title)
    for step in result.steps:
        values = [step.learning_rate, step.printed_bound, step.tight_bound]
        if step.measured is not None:
            values += [step.measured.certain_bound, step.measured.regret]
        table.add_row(step.name, *(f"{value:.4g}" for value in values))
    return table
