"""Exact level: the peers' own state machine and wire format, over the memory transport."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from oneway.asynchronous.conditions import Conditions
from oneway.asynchronous.exact_network import ExactNetwork
from oneway.asynchronous.exact_task import task_for
from oneway.asynchronous.outcome import Outcome, Traffic
from oneway.display.progress import progress_bar
from oneway.errors import ConfigError, DivergenceError
from oneway.files.memory import require_memory
from oneway.methods import Method
from oneway.models import Model
from oneway.simulator.driver import classifies
from oneway.simulator.run_loop import stoppable
from oneway.streams import Stream
from oneway.topology import TrustGraph

DRAIN_SECONDS = 120.0
"""How long to wait at least, in virtual time, until nothing is under way after the end."""

_BYTES_PER_PEER = 1e5
_BYTES_PER_EDGE = 1e4
"""What a peer, and each of its edges, takes at least; and so many numbers of the model's size."""
_MODELS_PER_EDGE = 6


_COUNTED = (
    "pushes",
    "acknowledgements",
    "repeats",
    "commits",
    "presumed_dead",
    "rejected",
    "clipped",
    "waited",
    "crashes",
    "sleeps",
    "joined",
)


def run_exact(
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
    """Run every peer of a network through its samples, in virtual time.

    The same arguments give the same bits. After the end the network is paused until nothing is
    under way, and audited.

    Raises:
        ConfigError: Peers cannot run the method or the model, or they do not fit into memory.
        DivergenceError: Peers refused more samples than they learned from.
        TaskError: The method needs a server.
    """
    task = task_for(method, model, stream)
    mixing = None if graph is None or not method.payload else method.shares(graph)
    num_edges = 0 if mixing is None else mixing.nnz
    require_memory(
        _BYTES_PER_PEER * stream.num_nodes
        + (_BYTES_PER_EDGE + 8.0 * _MODELS_PER_EDGE * task.layout.width) * num_edges,
        f"{stream.num_nodes:,} peers with {num_edges:,} edges in the exact level: they",
        ConfigError,
        remedy="use fewer nodes or receivers, or level='fast'",
    )
    seconds = conditions.duration(stream.num_rounds)
    with _silently():
        network = ExactNetwork(task, model, stream, mixing, conditions, seed)
    disagreement = np.zeros(bins)
    done = 0
    what = f"{method.name}, exact, bins of virtual time"
    with _silently(), stoppable() as stop, progress_bar(what, bins, progress) as bar:
        while done < bins and not stop.requested:
            network.queue.run_until(seconds * (done + 1) / bins)
            disagreement[done] = network.disagreement()
            done += 1
            bar.update(done)
    covered = seconds * done / bins
    losses, samples, right = network.recorder.binned(covered or seconds, done or 1)
    numerators, masses = network.holdings()
    refused = network.counts["skipped"]
    if refused > samples.sum():
        raise DivergenceError(
            f"peers refused {refused:,} of {refused + int(samples.sum()):,} samples: their loss, "
            "gradient or step is not finite or too long; use a smaller learning rate, say a tenth "
            "of it",
            round_index=0,
            node=int(np.argmin(masses)),
            smallest_mass=float(masses.min()),
        )
    in_flight, learned = network.mass_in_flight, network.recorder.learned()
    traffic = _traffic(network, int(samples.sum()))
    drained = None
    if done == bins:
        with _silently():
            drained = _drain(network, DRAIN_SECONDS + 2.0 * conditions.presume_dead_after)
    return Outcome(
        seconds=covered,
        loss_sums=losses[:done],
        sample_counts=samples[:done],
        correct_counts=right[:done] if classifies(model, stream) else None,
        disagreement=disagreement[:done],
        numerators=numerators,
        masses=masses,
        mass_in_flight=in_flight,
        complete=done == bins,
        traffic=traffic,
        exact_books=not network.discrepancy().any() if done == bins else None,
        drained_after=drained,
        learned=learned,
    )


@contextmanager
def _silently() -> Iterator[None]:
    """Peers log what each of them should know; of a thousand of them nobody reads it."""
    log = logging.getLogger("oneway.peer")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _drain(network: ExactNetwork, longest: float) -> float | None:
    """Let all that is under way arrive; how long that took, None if it did not end."""
    began = network.queue.now
    network.pause()
    while network.queue.now - began < longest:
        network.queue.run_until(network.queue.now + 1.0)
        if network.is_quiet and not network.discrepancy().any():
            return network.queue.now - began
    return None


def _traffic(network: ExactNetwork, samples: int) -> Traffic:
    counts, links = network.counts, network.links
    for peer in network.peers:
        network.count_life(peer)
    return Traffic(
        events=network.queue.done,
        samples=samples,
        messages=links.messages,
        messages_lost=network.lost,
        bytes_sent=links.bytes_sent,
        **{name: counts[name] for name in _COUNTED},
        left=sum(peer.runtime is not None and peer.runtime.drained for peer in network.peers),
        mean_round_trip=counts.trip_seconds / counts["trips"] if counts["trips"] else math.nan,
    )
