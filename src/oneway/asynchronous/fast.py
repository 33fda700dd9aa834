"""Fast level: the running sums of the peers in a compiled event loop, for 100,000 nodes."""

from __future__ import annotations

import math
import time
from types import NoneType

import numpy as np

from oneway.asynchronous import event_world as columns
from oneway.asynchronous.conditions import Conditions
from oneway.asynchronous.event_kernel import DIVERGED, DONE, NO_ROOM, compiled
from oneway.asynchronous.event_setup import (
    KINDS,
    first_world,
    founding,
    margin_of,
    numbers_of,
    with_room,
)
from oneway.asynchronous.event_world import Numbers, Samples, World, seen
from oneway.asynchronous.exact_task import task_for
from oneway.asynchronous.outcome import Outcome, Traffic
from oneway.display.progress import progress_bar
from oneway.errors import ConfigError, DivergenceError
from oneway.files.memory import require_memory
from oneway.methods import Batches, Isolated, Method, OnlinePushSum, Pull, Relay
from oneway.methods.step_rules import Capped, Curvature, Mass, Paper
from oneway.models import LinearModel, Model, typical_sample
from oneway.simulator.driver import classifies
from oneway.simulator.run_loop import stoppable
from oneway.simulator.snapshots import InOneProcess
from oneway.streams import Stream
from oneway.topology import TrustGraph

_METHODS = (OnlinePushSum, Relay, Pull, Isolated)
_STEPS = (Paper, Capped, Mass, Curvature)
_MOST_PARAMETERS = 1000
"""Above, peers push compactly, which this level does not."""
_FIRST_STRETCH = 20_000
"""Events before the first look at the clock."""


def supports(method: Method, model: Model, stream: Stream) -> bool:
    """Whether there is a loop for this; if not, the exact level may do it."""
    return _objection(method, model, stream) is None


def _objection(method: Method, model: Model, stream: Stream) -> str | None:
    """What of a run the loop does not know; None if it knows all of it."""
    if type(method) not in _METHODS:
        known = ", ".join(it.__name__ for it in _METHODS)
        return f"the method {type(method).__name__}; it knows {known}"
    if type(method.rule) not in _STEPS:
        return f"the step rule {type(method.rule).__name__}; it knows the built-in ones"
    if method.transforms or (isinstance(method, Relay) and method.deposit_transforms):
        return "transforms"
    if type(method.batches) not in (Batches, NoneType):
        return f"batches of the class {type(method.batches).__name__}"
    if type(model) not in KINDS:
        known = ", ".join(it.__name__ for it in KINDS)
        return f"the model {type(model).__name__}; it knows {known}"
    if model.dim(stream.dim) > _MOST_PARAMETERS:
        return (
            f"models of {model.dim(stream.dim):,} parameters, since peers push compactly above "
            f"{_MOST_PARAMETERS:,}"
        )
    if stream.late is not None:
        return "labels that come later than their samples"
    return None


def run_fast(
    method: Method,
    model: Model,
    stream: Stream,
    graph: TrustGraph | None,
    conditions: Conditions,
    seed: int,
    *,
    bins: int,
    progress: bool | None = None,
) -> Outcome:
    """Run peers through their samples in virtual time, in floating point.

    What a peer does when is as in `peer` and `protocol`, to the retries and accounts of inflow. The
    differences, all of them small:

    - Numbers are float64, so that books are exact to rounding only, and `radius` is no limit.
    - No epochs: an edge whose receiver was presumed dead goes on with the same running sum once
      the receiver has told what it heard; closing it and asking for it are one message.
    - Who has left for good is known to have heard what it heard once it is presumed dead, as the
      receipts that its neighbours keep make it.
    - A commit that is under way when a node crashes still ends. What follows from answers about
      the dead is durable at once.
    - Ticks never pause. With noise, a node that restarts does not wait for its receivers to tell
      how far its stream had come.

    Raises:
        ConfigError: The loop does not know the method, the model or the stream; or they do not fit
            into memory.
        DivergenceError: The numbers left the finite range.
    """
    objection = _objection(method, model, stream)
    if objection is not None:
        task_for(method, model, stream)  # says what neither level can run
        raise ConfigError(
            f"level='fast' does not know {objection}; choose level='exact', which runs the peers' "
            "own state machine"
        )
    assert isinstance(model, LinearModel)
    method = method.suited(*typical_sample(model, stream.dim))
    mixing = None if graph is None or not method.payload else method.shares(graph)
    numbers = numbers_of(method, model, model.dim(stream.dim), conditions)
    _require_memory(stream.num_nodes, 0 if mixing is None else mixing.nnz, numbers)
    world, samples, first = first_world(method, model, stream, mixing, conditions, numbers, seed)
    compiled()[1](seen(world), *first)
    seconds = conditions.duration(stream.num_rounds)
    watch, begin = _Watch(bins), founding(conditions)
    with stoppable() as stop, progress_bar(f"{method.name}, bins", bins, progress) as bar:
        while watch.done < bins and not stop.requested:
            until = begin + seconds * (watch.done + 1) / bins
            reason, world = _stretch(world, numbers, samples, until, watch)
            if reason == DIVERGED:
                raise _diverged(world, numbers, watch.done)
            if reason == DONE:
                watch.note(world, numbers)
                bar.update(watch.done)
    covered = seconds * watch.done / bins
    return _outcome(world, numbers, watch, covered, watch.done == bins, classifies(model, stream))


def _stretch(
    world: World, numbers: Numbers, samples: Samples, until: float, watch: _Watch
) -> tuple[int, World]:
    """Run events for about a tenth of a second; why they ended."""
    began = time.perf_counter()
    reason = compiled()[0](
        seen(world), seen(numbers), samples, until, watch.stretch, margin_of(world)
    )
    if reason == NO_ROOM:
        return reason, with_room(world)
    took = time.perf_counter() - began
    factor = min(2.0, max(0.5, InOneProcess.pace / max(took, 1e-6)))
    if reason != DONE or factor < 1:  # a bin that ended early does not say that more would fit
        watch.stretch = max(1, round(watch.stretch * factor))
    return reason, world


class _Watch:
    """What is measured at the end of every bin.

    Attributes:
        done: How many bins are over.
        stretch: How many events are run before the next look at the clock.
    """

    def __init__(self, bins: int) -> None:
        self.done, self.stretch = 0, _FIRST_STRETCH
        self.losses, self.disagreement = np.zeros(bins), np.zeros(bins)
        self.samples, self.right = np.zeros(bins, np.int64), np.zeros(bins, np.int64)

    def note(self, world: World, numbers: Numbers) -> None:
        """A bin is over."""
        at = self.done
        self.losses[at] = world.sums[columns.LOSS_SUM]
        self.samples[at] = world.tally[columns.LOSSES]
        self.right[at] = world.tally[columns.CORRECT]
        world.sums[columns.LOSS_SUM] = 0.0
        world.tally[[columns.LOSSES, columns.CORRECT]] = 0
        self.disagreement[at] = _disagreement(world, numbers)
        self.done += 1


def _disagreement(world: World, numbers: Numbers) -> float:
    facts = world.node_facts
    held = world.held[:: numbers.parts]
    masses = held[:, numbers.dim]
    here = (facts[:, columns.STATUS] == columns.UP) & (facts[:, columns.LIAR] == 0) & (masses > 0)
    if not here.any():
        return 0.0
    totals, masses = held[here, : numbers.dim], masses[here, None]
    if numbers.copied:
        totals = totals * masses
    mean = totals.sum(axis=0) / masses.sum()
    return float(((totals / masses - mean) ** 2).sum(axis=1).mean())


def _outcome(
    world: World, numbers: Numbers, watch: _Watch, seconds: float, complete: bool, classifies: bool
) -> Outcome:
    held, owed = world.held[:: numbers.parts], world.owed[:: numbers.parts, numbers.dim]
    masses = held[:, numbers.dim].copy()
    numerators = held[:, : numbers.dim].copy()
    if numbers.copied:
        numerators *= masses[:, None]
    numerators[masses <= 0] = 0.0
    done, learned = slice(0, watch.done), world.node_facts[:, columns.LEARNED]
    return Outcome(
        seconds=seconds,
        loss_sums=watch.losses[done],
        sample_counts=watch.samples[done],
        correct_counts=watch.right[done] if classifies else None,
        disagreement=watch.disagreement[done],
        numerators=numerators,
        masses=masses,
        mass_in_flight=float(in_flight(world, numbers) - owed.sum()),
        complete=complete,
        traffic=_traffic(world),
        learned=np.where(world.node_facts[:, columns.LIAR] > 0, 0, learned).astype(np.int64),
    )


def in_flight(world: World, numbers: Numbers) -> float:
    """The mass that was handed over and not taken in, by the books of both ends of every edge."""
    facts, masses = world.edge_facts, world.pool[:: numbers.parts, numbers.dim]
    is_dead = facts[:, columns.PHASE] == columns.DEAD
    counted = np.where(is_dead, facts[:, columns.OLDEST], facts[:, columns.NEWEST])
    return float((masses[counted] - masses[facts[:, columns.HEARD]]).sum())


def _traffic(world: World) -> Traffic:
    tally = world.tally
    trips = float(tally[columns.TRIPS])
    return Traffic(
        events=int(tally[columns.EVENTS]),
        samples=int(tally[columns.SAMPLES]),
        pushes=int(tally[columns.PUSHES]),
        acknowledgements=int(tally[columns.ACKNOWLEDGEMENTS]),
        messages=int(tally[columns.MESSAGES]),
        messages_lost=int(tally[columns.LOST]),
        bytes_sent=int(tally[columns.BYTES]),
        repeats=int(tally[columns.REPEATS]),
        commits=int(tally[columns.COMMITS]),
        presumed_dead=int(tally[columns.PRESUMED_DEAD]),
        clipped=int(tally[columns.CLIPPED]),
        waited=int(tally[columns.WAITED]),
        crashes=int(tally[columns.CRASHES]),
        sleeps=int(tally[columns.SLEEPS]),
        joined=int(tally[columns.JOINED]),
        left=int(tally[columns.LEFT_FOR_GOOD]),
        mean_round_trip=float(world.sums[columns.TRIP_SUM]) / trips if trips else math.nan,
    )


def _require_memory(num_nodes: int, num_edges: int, numbers: Numbers) -> None:
    row = 8.0 * numbers.parts * (numbers.dim + 4)
    require_memory(
        num_nodes * (4 * row + 500) + num_edges * (3 * row + 500),
        f"{num_nodes:,} nodes with {num_edges:,} edges: an asynchronous simulation of them",
        ConfigError,
        remedy="use fewer nodes, receivers or features",
    )


def _diverged(world: World, numbers: Numbers, bin_index: int) -> DivergenceError:
    node = int(world.tally[columns.BAD_NODE])
    smallest = float(world.held[:: numbers.parts, numbers.dim].min())
    return DivergenceError(
        f"the run diverged in bin {bin_index} of virtual time at node {node} (the smallest mass in "
        f"the network is {smallest:.3g}); use a smaller learning rate, say a tenth of it",
        round_index=bin_index,
        node=node,
        smallest_mass=smallest,
    )
