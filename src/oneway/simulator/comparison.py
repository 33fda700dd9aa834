"""Several methods on the same data and graph, each at its own best learning rate."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from oneway.errors import DivergenceError
from oneway.methods import Method
from oneway.models import Model
from oneway.simulator import Run, simulate
from oneway.streams import Stream
from oneway.topology import TrustGraph

Maker = Callable[[float], Method]
"""A method that still lacks its learning rate."""


@dataclass(frozen=True)
class Tuned:
    """A method at the learning rate with the smallest average loss.

    Attributes:
        run: The run at that rate.
        learning_rate: The rate.
        tried: Average loss at every rate of the grid; infinite where the run diverged.
        late_loss: Average loss at that rate where labels come later; None if it was not run.
    """

    run: Run
    learning_rate: float
    tried: Mapping[float, float]
    late_loss: float | None = None

    @property
    def at_edge(self) -> bool:
        """Whether the best rate is the smallest or largest tried: a better one may lie beyond."""
        return self.learning_rate in (min(self.tried), max(self.tried))

    @property
    def roc_auc(self) -> float | None:
        """The area under the ROC curve, if the predictions were measured."""
        measures = self.run.measures if self.run.was_asked_for("measures") else None
        return None if measures is None else measures.roc_auc

    @property
    def numbers(self) -> dict[str, float | None]:
        """A line of a table of results, for programs and pages."""
        return {
            "average_loss": self.run.average_loss,
            "late_loss": self.late_loss,
            "accuracy": self.run.accuracy,
            "roc_auc": self.roc_auc,
            "disagreement": float(self.run.disagreement[-1]),
            "learning_rate": self.learning_rate,
            "at_edge": self.at_edge,
            "seconds": self.run.record.seconds,
        }


def compare(
    methods: Mapping[str, Maker],
    rates: Sequence[float],
    model: Model,
    stream: Stream,
    graph: TrustGraph,
    on_run: Callable[[], None] = lambda: None,
) -> dict[str, Tuned]:
    """Tune every method on a grid of learning rates; runs share the cores.

    Args:
        methods: What to compare, by name.
        rates: The grid, the same for all.
        model: What is learned.
        stream: What it is learned from.
        graph: Who sends to whom.
        on_run: Called after every run, for a progress bar.

    Raises:
        DivergenceError: If a method diverges at every rate.
    """

    def attempt(job: tuple[str, float]) -> Run | DivergenceError:
        name, rate = job
        try:
            return simulate(methods[name](rate), model, stream, graph, progress=False)
        except DivergenceError as error:
            return error
        finally:
            on_run()

    jobs = [(name, rate) for name in methods for rate in rates]
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        outcomes = dict(zip(jobs, pool.map(attempt, jobs), strict=True))
    finally:
        pool.shutdown(cancel_futures=True)
    return {name: _best({rate: outcomes[name, rate] for rate in rates}) for name in methods}


def _best(outcomes: Mapping[float, Run | DivergenceError]) -> Tuned:
    runs = {rate: run for rate, run in outcomes.items() if isinstance(run, Run)}
    if not runs:
        raise next(iter(outcomes.values()))  # type: ignore[misc]
    tried = {rate: runs[rate].average_loss if rate in runs else math.inf for rate in outcomes}
    best = min(runs, key=lambda rate: tried[rate])
    return Tuned(runs[best], best, tried)
