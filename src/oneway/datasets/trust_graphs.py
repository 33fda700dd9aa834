"""Real trust graphs, as edge lists: Advogato, Epinions, wiki-Vote and two of Bitcoin traders.

Their archives are packed anew now and then, and copies differ in comments and line ends: what is
known, and checked after a download, is the digest of the graph itself. Of the last three none is
known: their downloads are checked only by TLS.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.errors import GraphError

if TYPE_CHECKING:
    from oneway.topology import TrustGraph

MOST_TEXT_BYTES = 1 << 26
"""Far longer edge lists than these are not read to be checked."""


def read_graph(path: Path, most_bytes: float = math.inf) -> TrustGraph:
    """Read an edge list as it is: a third column is the share.

    Raises:
        DataError: If it cannot be read.
        GraphError: If it is no edge list.
    """
    from oneway.topology import TrustGraph

    return TrustGraph.read(path, most_bytes)


def read_ratings(path: Path, most_bytes: float = math.inf) -> TrustGraph:
    """Read ratings from -10 to 10 as `source,target,rating,time`: only a positive one is trust.

    Whoever is rated stays a node. Of several ratings of the same person the last one counts.

    Raises:
        DataError: If it cannot be read.
        GraphError: If it is no edge list, or has no ratings.
    """
    from oneway.topology import TrustGraph
    from oneway.topology.edge_files import read_edges
    from oneway.topology.edges import compress

    rated = read_edges(path, most_bytes)
    if rated.weights is None:
        raise GraphError(
            f"{path} has no ratings; its lines must be source,target,rating,time: download it again"
        )
    # A weight of 0 is no edge.
    trusted = replace(rated, weights=np.maximum(rated.weights, 0.0))
    return TrustGraph(*compress(trusted), None, rated.names, rated.origin)


def graph_sha256(path: Path, read: Callable[..., TrustGraph] = read_graph) -> str:
    """The SHA-256 of the graph in a file: nodes, edges and weights as they are loaded.

    Raises:
        DataError: If it cannot be read.
        GraphError: If it is no edge list.
    """
    graph = read(path, MOST_TEXT_BYTES)
    sizes = [graph.num_nodes, graph.num_edges, graph.weights is not None]
    digest = hashlib.sha256("\n".join([*map(str, sizes), *(graph.names or ())]).encode())
    digest.update(graph.indptr.astype("<i8").tobytes())
    digest.update(graph.receivers.astype("<i8").tobytes())
    if graph.weights is not None:
        digest.update(graph.weights.astype("<f8").tobytes())
    return digest.hexdigest()


def _register(
    name: str,
    about: str,
    rows: int,
    url: str,
    file: str = "",
    sha256: str | None = None,
    read: Callable[..., TrustGraph] = read_graph,
) -> None:
    """Make a trust graph known; its file is called as at its address unless `file` says it."""
    file = file or url.rpartition("/")[2]

    def load(folder: Path | None = None) -> TrustGraph:
        return read(DATASETS[name].find(folder)[0])

    digest = partial(graph_sha256, read=read)
    files = (DataFile(f"trust/{file}", file, sha256, digest),)
    DATASETS.register(
        DataSet(name, about, rows, "research use", load, kind="graph", url=url, files=files)
    )


_register(
    "advogato",
    "Advogato: who certifies whom as a free software developer, with a weight",
    51_127,
    # A mirror that is published with TLS; konect.cc gives its own addresses without.
    "https://downloads.skewed.de/mirror/konect.cc/files/download.tsv.advogato.tar.bz2",
    "out.advogato",
    "000cd463b8a507d275763cc9ef576141b0fdd1996ff5c16f593d25e0210e83a0",
)
_register(
    "epinions",
    "Epinions: who trusts whose product reviews",
    508_837,
    "https://snap.stanford.edu/data/soc-Epinions1.txt.gz",
    sha256="732b1b2fc7d85dce707396886bc6bceab853402581a78a847704d2f9f4b9366e",
)
_register(
    "wiki-vote",
    "wiki-Vote: who voted on whose request to become an administrator of Wikipedia",
    103_689,
    "https://snap.stanford.edu/data/wiki-Vote.txt.gz",
)
_register(
    "bitcoin-alpha",
    "Bitcoin Alpha: who trusts whom in trading, with a rating",
    24_186,
    "https://snap.stanford.edu/data/soc-sign-bitcoinalpha.csv.gz",
    read=read_ratings,
)
_register(
    "bitcoin-otc",
    "Bitcoin OTC: who trusts whom in trading, with a rating",
    35_592,
    "https://snap.stanford.edu/data/soc-sign-bitcoinotc.csv.gz",
    read=read_ratings,
)
