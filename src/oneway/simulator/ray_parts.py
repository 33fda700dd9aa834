"""Parts of a network as Ray actors, spread over the machines of a cluster."""

from __future__ import annotations

import importlib
import resource
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numba
import numpy as np

from oneway.errors import ClusterError, GraphError
from oneway.records import Ints, checksum
from oneway.simulator.kernels import row_width
from oneway.simulator.network import Network
from oneway.simulator.part import Part, PartSetup
from oneway.simulator.part_routes import Partition
from oneway.simulator.parts_engine import DISAGREEMENT_EVERY, PartsEngine
from oneway.simulator.ray_cluster import Cluster, Machine, connected
from oneway.simulator.snapshots import LostPartError
from oneway.streams import Stream
from oneway.topology.partition import partition_edges

_START_SECONDS = 300.0
"""A part that has not started by then is waiting for a core that somebody else has."""


def begin_on_ray(
    given: Any,
    network: Network,
    address: str | None,
    part_of: Ints | None,
    num_parts: int | None,
    every: int | None,
    stack: ExitStack,
) -> tuple[PartsEngine, dict[str, Any]]:
    """An engine whose parts are actors of a cluster, and what is to be said about it.

    Args:
        given: Method, model, stream, measurements and seed.
        network: The graph.
        address: Of the cluster, as `connected` takes it.
        part_of: The part of each node; found here if it is None.
        num_parts: How many to find; one for each machine if it is None.
        every: After so many rounds disagreement is measured.
        stack: Ends the session and the actors.

    Raises:
        ClusterError: The cluster does not answer, or has no room.
        GraphError: There are more parts than nodes.
    """
    method, model, stream, *_ = given
    if num_parts is not None and num_parts > stream.num_nodes:
        raise GraphError(
            f"parts is {num_parts} and the network has {stream.num_nodes} nodes, so that part "
            f"{stream.num_nodes} would be empty; choose at most {stream.num_nodes} parts"
        )
    cluster = stack.enter_context(connected(address))
    if part_of is None:
        count = num_parts or min(len(cluster.machines), stream.num_nodes)
        part_of = _found(network, stream.num_nodes, count)
    partition = Partition.of(part_of)
    noisy = method.batches is not None and bool(method.batches.noise)
    cluster.require_store(*_needs(partition, stream, row_width(model.dim(stream.dim)), noisy))
    hands = RayHands(cluster)
    stack.callback(hands.end)
    every = every or DISAGREEMENT_EVERY
    try:
        engine = PartsEngine(*given, partition=partition, hands=hands, every=every)
    except LostPartError as error:
        raise ClusterError(
            f"{error}; see that its machine has memory, or use more parts"
        ) from error
    about = {
        "parts": partition.num_parts,
        "partition": checksum(partition.part_of),
        "disagreement_every": every,
    }
    return engine, about


class RayHands:
    """Calls parts that are actors, part i on machine i, and on from the first one again."""

    def __init__(self, cluster: Cluster) -> None:
        import ray

        self._ray, self._cluster = ray, cluster
        self._actors: list[Any] = []

    def begin(self, setups: Iterator[PartSetup], num_parts: int) -> None:
        """Start the actors one after the other, so that their samples pass through in turn.

        Raises:
            ClusterError: One does not start.
        """
        self.end()
        affinity = importlib.import_module("ray.util.scheduling_strategies")
        machines = self._alive()
        remote = self._ray.remote(_RayPart)
        on_each = -(-num_parts // len(machines))
        for place, setup in enumerate(setups):
            machine = machines[place % len(machines)]
            cores = int(machine.cores) // on_each
            options = remote.options(
                num_cpus=cores,
                max_restarts=0,
                scheduling_strategy=affinity.NodeAffinitySchedulingStrategy(machine.id, soft=False),
            )
            self._actors.append(self._started(options, setup, place, machine, cores))

    def _started(
        self, options: Any, setup: PartSetup, place: int, machine: Machine, cores: int
    ) -> Any:
        """An actor that has answered."""
        errors = self._ray.exceptions
        actor = options.remote(self._ray.put(setup), max(1, cores))
        try:
            self._ray.get(actor.ready.remote(), timeout=_START_SECONDS)
        except errors.GetTimeoutError:
            self._ray.kill(actor)
            raise ClusterError(
                f"part {place} did not start on {machine.host} within {_START_SECONDS:.0f} "
                f"seconds; it needs {cores} cores there that nobody else uses"
            ) from None
        except errors.RayError as error:
            raise LostPartError(f"part {place} was lost as it started") from error
        return actor

    def call(self, part: int, name: str, *given: Any, returns: int = 1) -> list[Any]:
        """Call a method of an actor; references to what it will return."""
        promised = getattr(self._actors[part], name).options(num_returns=returns).remote(*given)
        return promised if returns > 1 else [promised]

    def get(self, promises: list[Any]) -> list[Any]:
        """Wait for what was promised.

        Raises:
            LostPartError: An actor, or what it has promised, is gone.
        """
        errors = self._ray.exceptions
        try:
            found: list[Any] = self._ray.get(promises)
        except errors.RayTaskError as error:
            if isinstance(error.cause, errors.RayError):
                raise LostPartError(self._lost()) from error
            raise error.cause from None
        except errors.RayError as error:
            raise LostPartError(self._lost()) from error
        return found

    def end(self) -> None:
        """End all actors."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []

    def _lost(self) -> str:
        """Which part is gone, as the beginning of a sentence."""
        for place, actor in enumerate(self._actors):
            try:
                self._ray.get(actor.ready.remote(), timeout=10.0)
            except self._ray.exceptions.RayError:
                return f"part {place} was lost"
        return "what a part had to say was lost"

    def _alive(self) -> list[Any]:
        """The machines that are still there."""
        there = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
        machines = [it for it in self._cluster.machines if it.id in there]
        if not machines:
            raise ClusterError(
                "all machines of the Ray cluster are gone; start them again, and the run with the "
                "same checkpoint"
            )
        return machines


class _RayPart(Part):
    """A part that uses as many cores as it was given."""

    def __init__(self, setup: PartSetup, cores: int) -> None:
        numba.set_num_threads(min(cores, numba.get_num_threads()))
        super().__init__(setup)

    def ready(self) -> bool:
        """Whether it has started."""
        return True

    def used(self) -> tuple[float, int]:
        """Seconds of all cores, and bytes of memory at the peak, that its process has used."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss


def _found(network: Network, num_nodes: int, num_parts: int) -> Ints:
    """Parts with few edges between them in the graph of the first round; equal parts without."""
    [(_, _, mixing)] = network.stretches(0, 1)
    if mixing is None:
        even: Ints = (np.arange(num_nodes) * num_parts // num_nodes).astype(np.int32)
        return even
    return partition_edges(mixing.indptr.astype(np.int64), mixing.indices, num_parts)


def _needs(partition: Partition, stream: Stream, width: int, noisy: bool) -> tuple[float, str]:
    """About how much one object may take: what a part sees, or rows of all its nodes."""
    largest = max(len(nodes) for nodes in partition.nodes)
    share = largest / stream.num_nodes
    rows = share * stream.rows.nbytes * (1 if stream.late is None else 2)
    seen = min(1.0, stream.num_rounds * largest / len(stream.labels))
    table = seen * (stream.features.nbytes + stream.labels.nbytes)
    drawn_for = float(stream.rows.size) if noisy else 0.0
    needed = max(rows + table + drawn_for, 2 * 8.0 * width * largest)
    return needed, f"a part of {largest:,} nodes"
