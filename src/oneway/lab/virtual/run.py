"""Run a lab of virtual peers: from a method and a graph to a run whose books are audited."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from oneway.display.progress import progress_bar
from oneway.errors import ConfigError, DivergenceError
from oneway.files.memory import require_memory
from oneway.files.validation import whole_number
from oneway.lab.virtual.network import VirtualNetwork
from oneway.methods import METHODS, Method
from oneway.models import LabelKind, Model, typical_sample
from oneway.records import RunRecord
from oneway.simulator.driver import check_kinds, classifies, is_alone, stoppable, versions
from oneway.simulator.measurements import rate_remedy
from oneway.simulator.network import Network
from oneway.simulator.raw_rows import encoder_of, is_registered
from oneway.simulator.run import Run
from oneway.streams import Stream
from oneway.task.conditions import Conditions
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.task import Task
from oneway.topology import TrustGraph

DRAIN_SECONDS = 120.0
"""Virtual seconds to wait at least, after the end, until nothing is in flight."""
_BYTES_PER_PEER = 1e5
_BYTES_PER_EDGE = 1e4
"""Memory of a peer, and of each of its edges, without models."""
_MODELS_PER_EDGE = 6
_DEFAULT = Conditions()


@dataclass(frozen=True)
class Traffic:
    """What all peers together did and sent, from the start to the end of the run.

    Attributes:
        events: Events of the simulation: samples, arrivals, commits, ticks and others.
        samples: Samples learned from.
        messages: All messages: pushes, acknowledgements, repeats and the rest of the protocol.
        messages_lost: Messages lost by chance, or because the receiver was not there.
        bytes_sent: Bytes of all messages on the wire, without the transport's own.
        clipped: Pushes that would have moved their receiver too far.
        crashes: Crashes of peers.
        sleeps: How often a peer fell asleep.
        joined: Peers that joined later.
        left: Peers that have handed over all they held.
    """

    events: int
    samples: int
    messages: int
    messages_lost: int
    bytes_sent: int
    clipped: int
    crashes: int
    sleeps: int
    joined: int
    left: int


def virtual_lab(
    method: Method,
    model: Model,
    stream: Stream,
    graph: TrustGraph | None = None,
    *,
    conditions: Conditions = _DEFAULT,
    seed: int = 0,
    progress: bool | None = None,
) -> Run:
    """Run peers in virtual time: their own node, learner, protocol and runtime; nothing waits.

    The k-th sample of a node is its row in the k-th round of the stream, at a moment of its own.
    Time is cut into as many bins as the stream has rounds: a bin of the run is what a round is in
    `simulate`, about the time in which a node of ordinary speed has one sample. After the end the
    network is paused until nothing is in flight, and audited. Ctrl-C ends the run after the bin it
    is in.

    Args:
        method: How nodes learn, with its learning rate.
        model: What is learned.
        stream: The samples of every node.
        graph: Who sends to whom. `Isolated` needs none.
        conditions: Clocks, links, faults and liars, and the limits of the peers.
        seed: Seeds all randomness; the same seed gives the same bits.
        progress: Show a progress bar; by default in a terminal or a notebook, if the run is long.

    Returns:
        A run as of `simulate`, with bins in place of rounds. The losses of liars are not counted.
        Its disagreement is that of the nodes that are awake and have mass. Its config has
        `conditions`, `traffic`, `virtual_seconds`, `mass_in_flight` at the end, `drained_after`
        (seconds until nothing was in flight) and `exact_books` (whether every unit of mass was then
        where it must be); the last two are None if the run was interrupted.

    Raises:
        ConfigError: If an argument is not valid, peers cannot run the method or the model, or they
            do not fit into memory.
        DataError: If the labels do not fit the model.
        DivergenceError: Peers refused more samples than they learned from.
        GraphError: If the graph does not fit the stream.
        TaskError: If the method needs a server.

    >>> import oneway as ow
    >>> stream = ow.streams.synthetic(num_samples=200, num_features=3, seed=1).table.deal(8)
    >>> graph = ow.TrustGraph.random(num_nodes=8, max_receivers=3, seed=1)
    >>> run = ow.virtual_lab(
    ...     ow.Relay("auto"), ow.models.LogisticRegression(), stream, graph,
    ...     conditions=ow.Conditions(loss=0.1),
    ... )
    >>> run.record.config["exact_books"]
    True
    """
    check_kinds(method, model, stream)
    if not isinstance(conditions, Conditions):
        raise ConfigError(
            f"conditions are {conditions!r}; they must be Conditions, for example "
            "Conditions(loss=0.1)"
        )
    seed = whole_number("seed", seed, 0, ConfigError)
    model = model.for_samples(stream.shape, stream.labels)
    model.check_labels(stream.labels)
    shares = Network(method, graph, stream)
    if not shares.constant:
        raise ConfigError(
            "graph changes from round to round, and an asynchronous network has no rounds; give "
            "one TrustGraph"
        )
    mixing = None
    if method.exchange == "graph" and graph is not None and method.payload:
        mixing = method.shares(shares.in_order(graph))
    task = task_for(method, model, stream)
    _check_memory(task, stream.num_nodes, 0 if mixing is None else mixing.nnz)
    started = time.perf_counter()
    bins, seconds = stream.num_rounds, conditions.duration(stream.num_rounds)
    disagreement, done = np.zeros(bins), 0
    what = f"{method.name}, bins of virtual time"
    with (
        without_logs(),
        VirtualNetwork(task, model, stream, mixing, conditions, seed) as network,
        stoppable() as stop,
    ):
        with progress_bar(what, bins, progress) as bar:
            while done < bins and not stop.requested:
                network.world.run_until(seconds * (done + 1) / bins)
                disagreement[done] = network.disagreement()
                done += 1
                bar.update(done)
        numerators, masses = network.holdings()
        in_flight = network.mass_in_flight
        drained, is_exact = None, None
        if done == bins:
            drained = _drain(network, DRAIN_SECONDS + 2.0 * conditions.presume_dead_after)
            is_exact = not network.discrepancy().any()
        covered, recorder = seconds * done / bins, network.recorder
        learned = recorder.learned()
        losses, samples, right = recorder.binned(covered or seconds, done or 1)
        traffic = _traffic(network, int(samples.sum()))
    _check_refused(recorder.refused, int(samples.sum()), method, float(masses.min()))
    config = {
        **method.describe(),
        "model": model.describe(),
        "stream": stream.description,
        "graph": shares.origin,
        "engine": "virtual peers",
        "conditions": conditions.describe(),
        "num_nodes": stream.num_nodes,
        "num_rounds": stream.num_rounds,
        "seed": seed,
        "virtual_seconds": covered,
        "traffic": asdict(traffic),
        "mass_in_flight": in_flight,
        "exact_books": is_exact,
        "drained_after": drained,
    }
    # Only the samples that were learned from, so that baselines are of the same ones.
    rows = np.where(np.arange(bins)[:, None] < learned, stream.rows, -1)
    return Run(
        record=RunRecord(
            method=method.name,
            loss_sums=losses[:done],
            sample_counts=samples[:done],
            correct_counts=right[:done] if classifies(model, stream) else None,
            disagreement=disagreement[:done],
            numerators=numerators,
            masses=masses,
            complete=done == bins,
            seconds=time.perf_counter() - started,
            config=config,
            versions=versions(),
        ),
        model=model,
        stream=replace(stream, rows=rows),
        is_alone=is_alone(method),
    )


def _check_memory(task: Task, num_nodes: int, num_edges: int) -> None:
    models = 8.0 * _MODELS_PER_EDGE * task.layout.width
    require_memory(
        _BYTES_PER_PEER * num_nodes + (_BYTES_PER_EDGE + models) * num_edges,
        f"{num_nodes:,} peers with {num_edges:,} edges: a simulation of them",
        ConfigError,
        remedy="use fewer nodes or receivers",
    )


def _check_refused(
    refused: list[tuple[int, int]], learned: int, method: Method, smallest_mass: float
) -> None:
    """Refuse a run in which peers could not learn from most of their samples."""
    if len(refused) > learned:
        round_index, node = refused[0]
        raise DivergenceError(
            f"peers refused {len(refused):,} of {len(refused) + learned:,} samples, the first in "
            f"round {round_index} of node {node}: their loss, gradient or step is not finite or "
            f"too long; {rate_remedy(method, round_index)}",
            round_index=round_index,
            node=node,
            smallest_mass=smallest_mass,
        )


@contextmanager
def without_logs() -> Iterator[None]:
    """Silence the log of peers, which is for the owner of each."""
    log = logging.getLogger("oneway.peer")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _drain(network: VirtualNetwork, longest: float) -> float | None:
    """Let everything in flight arrive; return the seconds that took, None if it did not end."""
    began = network.world.now
    network.pause()
    while network.world.now - began < longest:
        network.world.run_until(network.world.now + 1.0)
        if network.is_quiet and not network.discrepancy().any():
            return network.world.now - began
    return None


def _traffic(network: VirtualNetwork, samples: int) -> Traffic:
    for peer in network.peers:
        peer.count_life()
    counts, wire = network.counts, network.wire
    return Traffic(
        events=network.world.done,
        samples=samples,
        messages=wire.messages,
        messages_lost=wire.lost,
        bytes_sent=wire.bytes_sent,
        clipped=sum(peer.clipped for peer in network.peers),
        left=sum(peer.has_left for peer in network.peers),
        **{name: counts[name] for name in ("crashes", "sleeps", "joined")},
    )


def task_for(method: Method, model: Model, stream: Stream) -> Task:
    """The task that peers would have to learn the same in the same way.

    Its method and model are the ones given, to the last option: what noise a method adds stands in
    its batches, whatever promise they follow from.

    Raises:
        ConfigError: Peers cannot: a task names methods and models, and these have no known name;
            or their labels come later than the samples.
        TaskError: Peers cannot: the method needs a server.
    """
    for what, given, is_known in (
        ("method", method, type(method) in METHODS.values()),
        ("model", model, is_registered(model)),
    ):
        if not is_known:
            raise ConfigError(
                f"{type(given).__name__} is not a registered {what}, and the task of peers names "
                f"their {what}; register it first"
            )
    if stream.late is not None:
        raise ConfigError(
            "the labels of the stream come later than its samples, which an asynchronous "
            "simulation cannot do; give a stream without `delayed`"
        )
    method = method.suited(*typical_sample(model, stream.dim))
    encoder = encoder_of(stream, model)

    # A class of its own, so that a changed copy of the task has the same method and model.
    class SimulatedTask(Task):
        """A task whose method and model were given, not built."""

        @property
        def label_kind(self) -> LabelKind:
            return model.labels

        def build_model(self) -> Model:
            return model

        def build_method(self, dim: int | None = None) -> Method:
            return method

        def fields(self) -> dict[str, Any]:
            return {"simulated": [method.describe(), model.describe(), stream.dim]}

        @cached_property
        def fingerprint(self) -> bytes:
            text = json.dumps(self.fields(), sort_keys=True, default=str)
            return blake2b(text.encode(), digest_size=16, person=b"oneway task").digest()

    batches = method.batches
    task = SimulatedTask(
        model.name,
        encoder.label,
        encoder.features,
        encoder.classes,
        method=method.name,
        samples_per_push=batches.samples if batches else 1,
        privacy=Privacy() if batches and batches.noise else NO_PRIVACY,
    )
    task.require_without_server()
    return task
