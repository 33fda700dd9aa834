"""One network in 1, 2 and 4 parts: seconds and bytes a round, memory; 8 machines by calculation.

    python benchmarks/parts.py [NODES] [ROUNDS]

Needs the extra `ray`. All parts are actors on this machine, so they share its cores: what is
measured is the cost of being in parts, not what more machines would bring. The last table is
calculated from what was measured, and says so.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack

import numpy as np

import oneway as ow
from engines import samples
from oneway.simulator.engine_choice import EngineChoice
from oneway.simulator.fast_engine import FastEngine, routes_of
from oneway.simulator.measurements import Measurements
from oneway.simulator.network import Network
from oneway.simulator.part_routes import Partition, split_routes
from oneway.simulator.ray_cluster import connected
from oneway.topology.partition import partition_graph, share_cut

MODEL = ow.models.LogisticRegression()
METHOD = ow.OnlinePushSum(0.01, cap_step=True)
FEATURES = 20
RECEIVERS = 8
COMMUNITIES = 64
LEAVES = 0.05
"""The share of edges that lead out of a community."""
NETWORK_BYTES = 10e9 / 8
MACHINES = 8


def with_communities(num_nodes: int, seed: int) -> ow.TrustGraph:
    """Nodes in communities, numbered at random, each with one receiver for sure and some more."""
    rng = np.random.default_rng(seed)
    community = rng.integers(0, COMMUNITIES, num_nodes)
    order = np.argsort(community, kind="stable")
    starts = np.searchsorted(community[order], np.arange(COMMUNITIES + 1))
    senders = np.repeat(np.arange(num_nodes), rng.integers(0, RECEIVERS, num_nodes))
    into = community[senders]
    leaves = rng.random(len(senders)) < LEAVES
    into[leaves] = rng.integers(0, COMMUNITIES, leaves.sum())
    places = starts[into] + rng.random(len(senders)) * (starts[into + 1] - starts[into])
    around = np.stack([order, np.roll(order, -1)], axis=1)
    pairs = np.concatenate([around, np.stack([senders, order[places.astype(np.int64)]], axis=1)])
    return ow.TrustGraph.from_edges(pairs[pairs[:, 0] != pairs[:, 1]], num_nodes)


def stream_of(
    features: np.ndarray, labels: np.ndarray, num_nodes: int, num_rounds: int
) -> ow.Stream:
    """Rows of a table dealt at random, as many as it takes."""
    table = ow.Table.from_arrays(features, labels)
    return table.deal(num_nodes, seed=1, resample=num_nodes * num_rounds)


def sent_bytes(graph: ow.TrustGraph, part_of: np.ndarray) -> tuple[int, float]:
    """Bytes that all parts send in a round, and the share of all rows that they send."""
    split = split_routes(routes_of(METHOD, graph.mixing()), Partition.of(part_of))
    rows = sum(len(places) for own in split for places in own.sends)
    needed = np.zeros(graph.num_nodes, np.bool_)
    for own, nodes in zip(split, Partition.of(part_of).nodes, strict=True):
        for places in own.sends:
            needed[nodes[places]] = True
    return rows * 8 * (FEATURES + 2), float(needed.mean())


def in_one_process(stream: ow.Stream, graph: ow.TrustGraph) -> tuple[float, float]:
    """Seconds, and seconds of all cores, of a round."""
    measurements = Measurements.blank(stream.num_rounds)
    model = MODEL.told(stream.dim, stream.labels)
    engine = FastEngine(METHOD, model, stream, measurements, 0)
    network = Network(METHOD, graph, stream)
    [(_, _, mixing)] = network.stretches(0, 1)
    engine.advance(0, 1, mixing)
    began, cpu = time.perf_counter(), time.process_time()
    engine.advance(1, stream.num_rounds, mixing)
    rounds = stream.num_rounds - 1
    return (time.perf_counter() - began) / rounds, (time.process_time() - cpu) / rounds


def in_parts(
    stream: ow.Stream, graph: ow.TrustGraph, part_of: np.ndarray
) -> tuple[float, float, float]:
    """Seconds and seconds of all cores of a round, and bytes at the peak of the largest part."""
    num_parts = int(part_of.max()) + 1
    with ExitStack() as stack:
        measurements = Measurements.blank(stream.num_rounds)
        network = Network(METHOD, graph, stream)
        choice = EngineChoice("ray", parts=part_of, disagreement_every=stream.num_rounds)
        model = MODEL.told(stream.dim, stream.labels)
        engine, _ = choice.begin(METHOD, model, stream, network, measurements, 0, stack)
        [(_, _, mixing)] = network.stretches(0, 1)
        engine.advance(0, 1, mixing)

        def used() -> list[tuple[float, int]]:
            hands = engine._hands
            return [hands.get(hands.call(part, "used"))[0] for part in range(num_parts)]

        before, began, cpu = used(), time.perf_counter(), time.process_time()
        engine.advance(1, stream.num_rounds - 1, mixing)
        took, own = time.perf_counter() - began, time.process_time() - cpu
        after, rounds = used(), stream.num_rounds - 2
        cores = sum(it[0] for it in after) - sum(it[0] for it in before) + own
        return took / rounds, cores / rounds, max(it[1] for it in after)


def main() -> None:
    """Measure and print."""
    num_nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    num_rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    features, labels = samples(50_000, FEATURES)
    stream = stream_of(features, labels, num_nodes, num_rounds)
    graphs = {
        "communities": with_communities(num_nodes, 1),
        "random": ow.TrustGraph.random(num_nodes, RECEIVERS, seed=1),
    }
    few = stream_of(features, labels, 100, 3)
    _, _, process = in_parts(few, ow.TrustGraph.random(100, RECEIVERS, seed=1), np.zeros(100, int))
    print(f"an actor without a network: {process / 1e6:,.0f} MB, taken off below")
    calculated = []
    for name, graph in graphs.items():
        print(f"{name}: {num_nodes:,} nodes, {graph.num_edges:,} edges, {FEATURES} features")
        seconds, cores = in_one_process(stream, graph)
        print(f"  one process: {seconds:6.3f} s a round, {cores:6.3f} s of all cores")
        for num_parts in (1, 2, 4):
            began = time.process_time()
            part_of = partition_graph(graph, num_parts)
            found = time.process_time() - began
            volume, share = sent_bytes(graph, part_of)
            took, used, peak = in_parts(stream, graph, part_of)
            print(
                f"  {num_parts} parts: {took:6.3f} s a round, {used:6.3f} s of all cores, "
                f"{volume / 1e6:7.1f} MB a round, {share:6.1%} of the rows, "
                f"{share_cut(graph, part_of):6.1%} of the edges cut; found in {found:.1f} s; "
                f"{(peak - process) / 1e6:,.0f} MB the largest part, "
                f"{(peak - process) / 1e3 / max(np.bincount(part_of)):,.2f} GB a million nodes"
            )
        anyhow = np.random.default_rng(99).integers(0, 2, num_nodes)
        print(f"  2 parts at random would send {sent_bytes(graph, anyhow)[1]:.1%} of the rows")
        volume, share = sent_bytes(graph, partition_graph(graph, MACHINES))
        scale = 1e7 / num_nodes
        # As much as four parts take here, serialisation included.
        compute = used * scale / MACHINES
        network = volume * scale / MACHINES / NETWORK_BYTES
        calculated.append(
            f"  {name}: {share:.1%} of the rows sent; on each machine {compute:.2f} s of cores and "
            f"{volume * scale / MACHINES / 1e6:,.0f} MB, {network:.2f} s on the wire"
        )
    print(f"CALCULATED, not measured: 10,000,000 nodes, {MACHINES} machines on 10 GbE, a round:")
    print("\n".join(calculated))


if __name__ == "__main__":
    with connected("local"):
        main()
