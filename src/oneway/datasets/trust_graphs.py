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


def graph_sha256(path: Path) -> str:
    """The SHA-256 of the graph in a file: nodes, edges and weights as they are loaded.

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


def _register(name: str, about: str, rows: int, url: str, sha256: str, file: str = "") -> None:
    """Make a trust graph known; its file is called as at its address unless `file` says it."""
    file = file or url.rpartition("/")[2]

    def load(folder: Path | None = None) -> TrustGraph:
        from oneway.topology import TrustGraph

        return TrustGraph.read(DATASETS[name].find(folder)[0])

    files = (DataFile(f"trust/{file}", file, sha256, graph_sha256),)
    DATASETS.register(
        DataSet(name, about, rows, "research use", load, kind="graph", url=url, files=files)
    )


_register(
    "advogato",
    "Advogato: who certifies whom as a free software developer, with a weight",
    51_127,
    # A mirror that is published with TLS; konect.cc gives its own addresses without.
    "https://downloads.skewed.de/mirror/konect.cc/files/download.tsv.advogato.tar.bz2",
    "000cd463b8a507d275763cc9ef576141b0fdd1996ff5c16f593d25e0210e83a0",
    "out.advogato",
)
_register(
    "epinions",
    "Epinions: who trusts whose product reviews",
    508_837,
    "https://snap.stanford.edu/data/soc-Epinions1.txt.gz",
    "732b1b2fc7d85dce707396886bc6bceab853402581a78a847704d2f9f4b9366e",
)
