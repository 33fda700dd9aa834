"""World of a run: data, dealing and graph, everything but the method and the seed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from oneway.datasets import DATASETS, load
from oneway.records import checksum
from oneway.streams import Stream
from oneway.tables import Table
from oneway.topology import TrustGraph

ACTING = 0.5
"""Of the nodes of an asynchronous network, so many act in a round, each at random."""
DELAYS = (1, 5)
"""In an asynchronous network a push takes at least and at most so many rounds."""


@dataclass(frozen=True)
class World:
    """What a method is put into.

    Attributes:
        data: A data set's name.
        num_nodes: Nodes of the network.
        stochastic: Fraction of the rows dealt at random; the rest is dealt by cluster.
        max_receivers: Bound of the paper's random graph; None if the graph is `network`.
        rounds: Rounds to run; None for as many as the data gives.
        shuffled: Whether a node's cluster is spread over its stream, or comes first.
        overflow: Where rows of a cluster go that exceed a node's quota; see `Table.deal`.
        network: A real trust network's name; its largest strong component with equal shares.
        asynchronous: Whether nodes act at random (`ACTING`), and pushes take time (`DELAYS`).
    """

    data: str
    num_nodes: int
    stochastic: float = 1.0
    max_receivers: int | None = None
    rounds: int | None = None
    shuffled: bool = True
    overflow: Literal["pool", "next"] = "pool"
    network: str | None = None
    asynchronous: bool = False

    def run_options(self, seed: int) -> dict[str, Any]:
        """What `simulate` is told besides: the seed, of noise too, and how long pushes take."""
        return {"seed": seed} | ({"delays": DELAYS} if self.asynchronous else {})

    def stream(self, seed: int, table: Table | None = None) -> Stream:
        """The samples of the data set, which may be given. If it is too small it is resampled."""
        table = data_table(self.data) if table is None else table
        wanted = None if self.rounds is None else self.rounds * self.num_nodes
        resample = wanted if wanted is not None and wanted > len(table) else None
        stream = table.deal(
            self.num_nodes,
            adversarial=1.0 - self.stochastic,
            seed=seed,
            resample=resample,
            shuffle=self.shuffled,
            overflow=self.overflow,
        )
        if self.rounds is not None:
            stream = stream.head(self.rounds)
        return stream.at_random_rounds(ACTING, seed) if self.asynchronous else stream

    def graph(self, seed: int) -> TrustGraph:
        """Who sends to whom."""
        if self.network is not None:
            return trust_network(self.network)
        assert self.max_receivers is not None
        return TrustGraph.random(self.num_nodes, self.max_receivers, seed)

    def describe(self) -> dict[str, Any]:
        """What determines the numbers, in terms JSON can hold, the data's checksum included."""
        described = asdict(self) | _contents(self.data, self.network)
        # Not said where it does not apply: cells that were remembered before are still found.
        if described.pop("asynchronous"):
            described |= {"acting": ACTING, "delays": list(DELAYS)}
        return described


@lru_cache(maxsize=4)
def data_table(name: str) -> Table:
    """A data set, loaded once a process."""
    return load(name)


@lru_cache(maxsize=4)
def trust_network(name: str) -> TrustGraph:
    """The largest strong component of a real trust network, every share equal."""
    component = DATASETS[name].load().largest_strong_component()
    return TrustGraph.from_edges(np.stack(component.edges(), axis=1), component.num_nodes)


@lru_cache(maxsize=8)
def _contents(data: str, network: str | None) -> dict[str, str]:
    """Checksums of what a world reads from files."""
    table = data_table(data)
    contents = {"table": checksum(table.features, table.labels)}
    if network is not None:
        graph = trust_network(network)
        contents["edges"] = checksum(graph.indptr, graph.receivers)
    return contents
