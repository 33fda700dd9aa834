"""Room Occupancy: is somebody in the office? Five sensors, about one reading a minute.

Candanedo and Feldheim, UCI Occupancy Detection, CC BY 4.0; three files, 20,560 rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.errors import DataError
from oneway.tables.inference import Choices
from oneway.tables.owners import encode_column
from oneway.tables.source import Block, Wish
from oneway.tables.table import Table

FEATURES = ("Temperature", "Humidity", "Light", "CO2", "HumidityRatio")
LABEL = "Occupancy"


def load_occupancy(folder: Path | None = None) -> Table:
    """Load UCI's three original files as one table, in the order of time.

    The label is whether the room is occupied. The date is not a feature: it is kept in
    `table.columns["date"]`.

    Raises:
        MissingDataError: If a file is missing; says where to put it and how to download it.
        DataError: If a file is not what UCI published.
    """
    import polars as pl

    paths = OCCUPANCY.find(folder)
    blocks = [block for path in paths for block in _blocks(path)]
    return Table.from_arrays(
        np.concatenate([block.numbers for block in blocks]),
        np.concatenate([block.labels.to_numpy() for block in blocks]),
        feature_names=FEATURES,
        name="occupancy",
        columns={"date": encode_column(pl.concat([block.columns["date"] for block in blocks]))},
        label_name=LABEL,
        origin={"kind": "occupancy", "files": [str(path.resolve()) for path in paths]},
    )


def _blocks(path: Path) -> list[Block]:
    from oneway.tables import csv_source

    try:
        columns = Choices(features=FEATURES, numeric=FEATURES)
        wish = Wish(LABEL, "number", columns)
        return list(csv_source.open_file(path, wish).blocks())
    except DataError as error:
        raise DataError(
            f"{path} is not UCI's original file ({error}); download it again with "
            "oneway data fetch occupancy"
        ) from None


OCCUPANCY = DATASETS.register(
    DataSet(
        name="occupancy",
        about="Room Occupancy: five sensors in an office, is somebody there?",
        rows=20_560,
        licence="CC BY 4.0",
        load=load_occupancy,
        url="https://archive.ics.uci.edu/static/public/357/occupancy+detection.zip",
        # In the order of time: 2 to 4, 4 to 10 and 11 to 18 February 2015.
        files=(
            DataFile(
                "occupancy/datatest.txt",
                "datatest.txt",
                "1b92c7c1b2838963464fa891a610cf3c5db4becb7189189b29b330107a584c7f",
            ),
            DataFile(
                "occupancy/datatraining.txt",
                "datatraining.txt",
                "b2c4d0ce2b9e4e453c476f7125ef31aeec2d1f5c7f5572d0e80de3df6521ab56",
            ),
            DataFile(
                "occupancy/datatest2.txt",
                "datatest2.txt",
                "d026d1bd5aeccd4aff4f3b3710d48e40613bd5fc370db7e61bbdcaa50d985095",
            ),
        ),
    )
)
