"""Trust networks that were not looked at while methods were chosen: wiki-Vote and Bitcoin traders.

`held()` registers them as data sets, so that `oneway.datasets.fetch` downloads them into the data
folder. Their digests are not known: the downloads are checked only by TLS.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from oneway.datasets import DATASETS, DataFile, DataSet
from oneway.errors import GraphError
from oneway.topology import TrustGraph
from oneway.topology.edge_files import read_edges
from oneway.topology.edges import compress

_TITLES = {"wiki-vote": "wiki-Vote", "bitcoin-alpha": "Bitcoin Alpha", "bitcoin-otc": "Bitcoin OTC"}
_SNAP = "https://snap.stanford.edu/data/"
_FILES = {
    "wiki-vote": ("wiki-Vote.txt.gz", 103_689),
    "bitcoin-alpha": ("soc-sign-bitcoinalpha.csv.gz", 24_186),
    "bitcoin-otc": ("soc-sign-bitcoinotc.csv.gz", 35_592),
}


def read_ratings(path: Path) -> TrustGraph:
    """Read ratings from -10 to 10 as `source,target,rating,time`: only a positive one is trust.

    Whoever is rated stays a node. Of several ratings of the same person the last one counts.

    Raises:
        DataError: If it cannot be read.
        GraphError: If it is no edge list, or has no ratings.
    """
    rated = read_edges(path)
    if rated.weights is None:
        raise GraphError(
            f"{path} has no ratings; its lines must be source,target,rating,time: download it again"
        )
    # A weight of 0 is no edge.
    trusted = replace(rated, weights=np.maximum(rated.weights, 0.0))
    return TrustGraph(*compress(trusted), None, rated.names, rated.origin)


def held() -> dict[str, str]:
    """The names and titles of the networks, which are data sets from now on."""
    for name in _FILES:
        if name not in DATASETS:
            _register(name, *_FILES[name])
    return _TITLES


def _register(name: str, file: str, rows: int) -> None:
    def load(folder: Path | None = None) -> TrustGraph:
        path = DATASETS[name].find(folder)[0]
        return TrustGraph.read(path) if name == "wiki-vote" else read_ratings(path)

    files = (DataFile(f"trust/{file}", file),)
    DATASETS.register(
        DataSet(
            name, _TITLES[name], rows, "research use", load, "graph", url=_SNAP + file, files=files
        )
    )
