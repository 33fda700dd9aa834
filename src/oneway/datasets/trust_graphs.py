"""Real trust graphs, as edge lists: Advogato and Epinions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oneway.datasets.data_set import DATASETS, DataFile, DataSet

if TYPE_CHECKING:
    from oneway.topology import TrustGraph


def load_advogato(folder: Path | None = None) -> TrustGraph:
    """Who certifies whom as a free software developer, weights as shares."""
    return _read("advogato", folder)


def load_epinions(folder: Path | None = None) -> TrustGraph:
    """Who trusts whose product reviews."""
    return _read("epinions", folder)


def _read(name: str, folder: Path | None) -> TrustGraph:
    from oneway.topology import TrustGraph

    return TrustGraph.read(DATASETS[name].find(folder)[0])


DATASETS.register(
    DataSet(
        name="advogato",
        kind="graph",
        about="Advogato: who certifies whom as a free software developer, with a weight",
        rows=51_127,
        licence="research use",
        load=load_advogato,
        url="http://konect.cc/files/download.tsv.advogato.tar.bz2",
        files=(DataFile("trust/out.advogato", "out.advogato"),),
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
        files=(DataFile("trust/soc-Epinions1.txt.gz", "soc-Epinions1.txt.gz"),),
    )
)
