"""Heart Disease: does a patient have a narrowed coronary artery? The files of four hospitals.

Janosi, Steinbrunn, Pfisterer and Detrano, UCI Heart Disease, CC BY 4.0; 920 rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.errors import DataError
from oneway.tables.encoder import Encoder
from oneway.tables.features import Feature
from oneway.tables.owners import encode_column
from oneway.tables.scaling import Moments
from oneway.tables.table import Table

if TYPE_CHECKING:
    import polars as pl

HOSPITALS = ("Cleveland", "Hungarian", "Switzerland", "VA")
"""The Cleveland Clinic, the Hungarian Institute of Cardiology, those of Zurich and Basel, and the
Veterans Affairs hospital in Long Beach."""
COLUMNS = (
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak"),
    *("slope", "ca", "thal", "num"),
)
NUMBERS = ("age", "trestbps", "chol", "thalach", "oldpeak", "ca")
BOOLEANS = ("sex", "fbs", "exang")
CATEGORIES = {
    "cp": ("1", "2", "3", "4"),
    "restecg": ("0", "1", "2"),
    "slope": ("1", "2", "3"),
    "thal": ("3", "6", "7"),
}
# Where these are empty, disease is more frequent or less so by over three standard errors.
TELLING_GAPS = ("chol", "fbs", "slope", "ca")
# No patient alive has a serum cholesterol or a blood pressure of 0: there, 0 is a gap.
NEVER_ZERO = ("trestbps", "chol")
LABEL = "disease"
CLASSES = ("no", "yes")


def load_heart(folder: Path | None = None) -> Table:
    """Load UCI's four processed files; hospitals take turns, each until it has no more patients.

    The order of a file is not that of time: the Hungarian one has those without disease first. So
    the patients of a hospital come in a random order, always the same.

    The label is whether the diameter of an artery is narrowed by more than half (num > 0).
    Numbers are standardised; a gap is their centre. Whether cholesterol, blood sugar, the slope of
    the ST segment and the vessels were looked at are features of their own: that differs between
    hospitals, and so do their patients. `table.deal_by("hospital")` gives each hospital its own.

    Raises:
        MissingDataError: If a file is missing; says where to put it and how to download it.
        DataError: If a file is not what UCI published.
    """
    import polars as pl

    paths = HEART.find(folder)
    rng, parts = np.random.default_rng(0), []
    for hospital, path in zip(HOSPITALS, paths, strict=True):
        patients = _read(path)
        turns = pl.Series("turn", rng.permutation(len(patients)))
        parts.append(patients.with_columns(turns, hospital=pl.lit(hospital)))
    rows = pl.concat(parts).sort("turn", maintain_order=True)
    raw = rows.select(*NUMBERS, *BOOLEANS).to_numpy()
    moments = Moments(len(NUMBERS))
    moments.add(raw[:, : len(NUMBERS)])
    scaling = moments.scaling(NUMBERS)
    features = (
        *(
            Feature(name, float(mean), float(scale), gaps=name in TELLING_GAPS)
            for name, mean, scale in zip(NUMBERS, scaling.means, scaling.scales, strict=True)
        ),
        *(Feature(name, kind="boolean", gaps=name in TELLING_GAPS) for name in BOOLEANS),
        *(
            Feature(name, values=values, gaps=name in TELLING_GAPS)
            for name, values in CATEGORIES.items()
        ),
    )
    encoder = Encoder(features, LABEL, "binary", CLASSES)
    text = {name: rows[name].cast(pl.Int64).cast(pl.String) for name in CATEGORIES}
    return Table(
        features=encoder.matrix(raw, text),
        labels=np.where(rows["num"].to_numpy() > 0, 1.0, -1.0).astype(np.float32),
        feature_names=encoder.outputs,
        name="heart",
        columns={
            "hospital": encode_column(rows["hospital"]),
            **{name: encode_column(cells) for name, cells in text.items()},
        },
        means=encoder.scaling.means,
        scales=encoder.scaling.scales,
        label_values=CLASSES,
        origin={
            "kind": "heart",
            "files": [str(path.resolve()) for path in paths],
            "rows": len(rows),
            "features": encoder.width,
            "label": LABEL,
            "task": "binary",
        },
        encoding=features,
        gaps={
            name: np.flatnonzero(np.isnan(cells))
            for name, cells in zip((*NUMBERS, *BOOLEANS), raw.T, strict=True)
        },
    )


def _read(path: Path) -> pl.DataFrame:
    """The patients of a hospital as numbers; null where the file has "?"."""
    import polars as pl

    try:
        rows = pl.read_csv(
            path, has_header=False, new_columns=COLUMNS, null_values="?", infer_schema=False
        ).with_columns(pl.all().str.strip_chars().cast(pl.Float64))
        rows = rows.with_columns(pl.col(NEVER_ZERO).replace(0.0, None))
        if tuple(rows.columns) == COLUMNS and rows["num"].is_between(0, 4).all() and len(rows):
            return rows
        reason = "its rows are not 14 numbers, the last of them 0 to 4"
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
    raise DataError(
        f"{path} is not UCI's original file ({reason}); download it again with "
        "oneway data fetch heart"
    )


HEART = DATASETS.register(
    DataSet(
        name="heart",
        about="Heart Disease: patients of four hospitals, is an artery narrowed?",
        rows=920,
        licence="CC BY 4.0",
        load=load_heart,
        url="https://archive.ics.uci.edu/static/public/45/heart+disease.zip",
        files=tuple(
            DataFile(f"heart/processed.{name}.data", f"processed.{name}.data", sha256)
            for name, sha256 in (
                ("cleveland", "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8"),
                ("hungarian", "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796"),
                ("switzerland", "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314"),
                ("va", "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f"),
            )
        ),
    )
)
