"""Room Occupancy: is somebody in the office? Five sensors, about one reading a minute.

Candanedo and Feldheim, UCI Occupancy Detection, CC BY 4.0; three files, 20,560 rows.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from oneway.datasets.base import require
from oneway.errors import DataError
from oneway.tables.assemble import encode_column
from oneway.tables.table import Table

# In the order of time: 2 to 4, 4 to 10 and 11 to 18 February 2015.
FILES = ("datatest.txt", "datatraining.txt", "datatest2.txt")
FEATURES = ("Temperature", "Humidity", "Light", "CO2", "HumidityRatio")
LABEL = "Occupancy"


def load_occupancy(folder: Path | None = None, *, standardise: bool = True) -> Table:
    """Load UCI's three original files as one table, in the order of time.

    The label is whether the room is occupied. The date is not a feature: it is kept in
    `table.columns["date"]`.

    Args:
        folder: The data folder; `data_folder()` if not given.
        standardise: Whether each feature is brought to zero mean and unit variance.

    Raises:
        MissingDataError: If a file is missing; says where to put it and how to download it.
        DataError: If a file is not what UCI published.
    """
    paths = [require("occupancy", f"occupancy/{file}", folder) for file in FILES]
    frame = pl.concat([_read(path) for path in paths])
    return Table.from_arrays(
        frame.select(FEATURES).to_numpy(),
        frame[LABEL].to_numpy(),
        feature_names=FEATURES,
        name="occupancy",
        columns={"date": encode_column(frame["date"])},
        label_name=LABEL,
        standardise=standardise,
        origin={"kind": "occupancy", "files": [str(path.resolve()) for path in paths]},
    )


def _read(path: Path) -> pl.DataFrame:
    # The header is one name short: the first column, a row number, has none.
    schema = {"row": pl.String, "date": pl.String} | dict.fromkeys((*FEATURES, LABEL), pl.Float64)
    reason = "it has no rows"
    try:
        frame = pl.read_csv(path, has_header=False, skip_rows=1, schema=schema)
        if len(frame):
            return frame
    except pl.exceptions.PolarsError as error:
        reason = str(error).split("\n")[0]
    raise DataError(
        f"{path} is not UCI's original file ({reason}); download it again with "
        "oneway data fetch occupancy"
    )
