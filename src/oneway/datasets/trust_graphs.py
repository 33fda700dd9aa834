"""Real trust graphs, as edge lists: Advogato and Epinions.

Their archives are packed anew now and then, and copies differ in comments and line ends: what is
known, and checked after a download, is the digest of the graph itself.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from oneway.datasets.data_set import DATASETS, DataFile, DataSet

if TYPE_CHECKING:
    from oneway.topology import TrustGraph

MOST_TEXT_BYTES = 1 << 26
"""Far longer edge lists than these are not read to be checked."""


def load_advogato(folder: Path | None = None) -> TrustGraph:
    """Who certifies whom as a free software developer, weights as shares."""
    return _read("advogato", folder)


def load_epinions(folder: Path | None = None) -> TrustGraph:
    """Who trusts whose product reviews."""
    return _read("epinions", folder)


def _read(name: str, folder: Path | None) -> TrustGraph:
    from oneway.topology import TrustGraph

    return TrustGraph.read(DATASETS[name].find(folder)[0])


def graph_sha256(path: Path) -> str:
    """The SHA-256 of the graph in an edge list: nodes, edges and weights as they are loaded.

    Raises:
        DataError: If it cannot be read.
        GraphError: If it is no edge list.
    """
    from oneway.topology import TrustGraph

    graph = TrustGraph.read(path, MOST_TEXT_BYTES)
    sizes = [graph.num_nodes, graph.num_edges, graph.weights is not None]
    digest = hashlib.sha256("\n".join([*map(str, sizes), *(graph.names or ())]).encode())
    digest.update(graph.indptr.astype("<i8").tobytes())
    digest.update(graph.receivers.astype("<i8").tobytes())
    if graph.weights is not None:
        digest.update(graph.weights.astype("<f8").tobytes())
    return digest.hexdigest()


DATASETS.register(
    DataSet(
        name="advogato",
        kind="graph",
        about="Advogato: who certifies whom as a free software developer, with a weight",
        rows=51_127,
        licence="research use",
        load=load_advogato,
        # A mirror that is published with TLS; konect.cc gives its own addresses without.
        url="https://downloads.skewed.de/mirror/konect.cc/files/download.tsv.advogato.tar.bz2",
        files=(
            DataFile(
                "trust/out.advogato",
                "out.advogato",
                "000cd463b8a507d275763cc9ef576141b0fdd1996ff5c16f593d25e0210e83a0",
                graph_sha256,
            ),
        ),
    )
)
DATASETS.register(
    DataSet(
        name="epinions",
        kind="graph",
        about="Epinions: who trusts whose product reviews",
        rows=508_837,
        licence="research use",
        load=load_epinions,
        url="https://snap.stanford.edu/data/soc-Epinions1.txt.gz",
        files=(
            DataFile(
                "trust/soc-Epinions1.txt.gz",
                "soc-Epinions1.txt.gz",
                "732b1b2fc7d85dce707396886bc6bceab853402581a78a847704d2f9f4b9366e",
                graph_sha256,
            ),
        ),
    )
)
