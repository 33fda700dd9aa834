"""SUSY: does a collision produce supersymmetric particles? 5,000,000 simulated collisions.

Whiteson, UCI SUSY, CC BY 4.0. The first eight features are measured, the others computed from
them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.tables.inference import Choices
from oneway.tables.source import Wish
from oneway.tables.table import Table

LABEL = "signal"
FEATURES = (
    "lepton 1 pT",
    "lepton 1 eta",
    "lepton 1 phi",
    "lepton 2 pT",
    "lepton 2 eta",
    "lepton 2 phi",
    "missing energy magnitude",
    "missing energy phi",
    "MET_rel",
    "axial MET",
    "M_R",
    "M_TR_2",
    "R",
    "MT2",
    "S_R",
    "M_Delta_R",
    "dPhi_r_b",
    "cos(theta_r1)",
)
SAMPLE = "SUSY-10k.csv.gz"


def load_susy(folder: Path | None = None) -> Table:
    """Load SUSY from UCI's CSV or the LIBSVM format, whichever is there.

    Looked for in this order: SUSY.csv.gz, SUSY.csv, SUSY, SUSY.xz, SUSY.bz2 (the last three in
    LIBSVM format), and the sample of 10,000 rows, SUSY-10k.csv.gz; the table's name says if it is
    the sample.

    Raises:
        MissingDataError: If no file is there; says where to put it and how to download it.
        DataError: If the file is cut off or damaged.
    """
    from oneway.tables import csv_source, libsvm_source
    from oneway.tables.assemble import read_table

    (path,) = SUSY.find(folder)
    wish = Wish(kind="binary")
    if ".csv" in path.suffixes:
        choices = Choices(features=FEATURES, numeric=FEATURES)
        wish = replace(wish, label=LABEL, choices=choices)
        source = csv_source.open_file(path, wish, names=(LABEL, *FEATURES))
    else:
        source = libsvm_source.open_file(path, wish, names=FEATURES)
    is_sample = path.name == SAMPLE
    name = "susy (10,000-row sample)" if is_sample else "susy"
    return read_table(source, wish, name, {"kind": "susy", "sample": is_sample})


SUSY = DATASETS.register(
    DataSet(
        name="susy",
        about="SUSY: simulated particle collisions, are supersymmetric particles produced?",
        rows=5_000_000,
        licence="CC BY 4.0",
        load=load_susy,
        url="https://archive.ics.uci.edu/static/public/279/susy.zip",
        # Its digest is not known: the download is checked only by TLS.
        files=(DataFile("susy/SUSY.csv.gz", "SUSY.csv.gz"),),
        alternatives=tuple(
            f"susy/{name}" for name in ("SUSY.csv", "SUSY", "SUSY.xz", "SUSY.bz2", SAMPLE)
        ),
    )
)
