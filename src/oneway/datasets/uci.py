"""Tables of UCI: Room Occupancy, SUSY, Adult and Heart Disease, all under CC BY 4.0.

- Occupancy: five sensors in an office, about one reading a minute (Candanedo and Feldheim).
- SUSY: 5,000,000 simulated collisions; the first eight features are measured, the others computed
  from them (Whiteson).
- Adult: the census of 1994, one person a row (Becker and Kohavi).
- Heart Disease: patients of four hospitals (Janosi, Steinbrunn, Pfisterer and Detrano).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.errors import DataError
from oneway.tables.features import Boolean, Feature
from oneway.tables.inference import Choices, infer
from oneway.tables.table import Table

if TYPE_CHECKING:
    import polars as pl

_URL = "https://archive.ics.uci.edu/static/public"


def _table(
    rows: pl.DataFrame,
    name: str,
    label: str,
    numbers: Sequence[str],
    *,
    booleans: Sequence[str] = (),
    category: Mapping[str, tuple[str, ...]] | None = None,
    flagged: Collection[str] = (),
    paths: Sequence[Path],
) -> Table:
    """A table of rows with a binary label; missing values of the `flagged` columns have a flag."""
    from oneway.tables.reading import typed

    frame, groups = typed(rows), category or {}
    choices = Choices((*numbers, *groups), category=groups, numeric=tuple(numbers))
    try:
        encoder, _ = infer(frame.drop(booleans), label, choices, "binary", name)
    except DataError as error:
        raise _not_original(paths[0], name, error) from None
    features: list[Feature] = list(encoder.features)
    features[len(numbers) : len(numbers)] = map(Boolean, booleans)
    flags = (msgspec.structs.replace(it, missing_indicator=it.name in flagged) for it in features)
    origin = {"kind": name, "files": [str(path.resolve()) for path in paths]}
    return Table.of(frame, replace(encoder, features=tuple(flags)), name, origin)


def _not_original(path: Path, name: str, reason: object) -> DataError:
    return DataError(
        f"{path} is not UCI's original file ({str(reason).splitlines()[0]}); download it again "
        f"with oneway data fetch {name}"
    )


def _read(path: Path, name: str, columns: Sequence[str], *, header: bool = False) -> pl.DataFrame:
    """The cells of a file without names of columns, as text without the spaces around them."""
    import polars as pl

    try:
        rows = pl.read_csv(
            path, has_header=False, skip_rows=int(header), infer_schema=False,
            new_columns=[*columns],
        )  # fmt: skip
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _not_original(path, name, error) from None
    rows = rows.with_columns(pl.all().str.strip_chars())
    rows = rows.filter(~pl.all_horizontal(pl.all().is_null()))  # Adult ends with an empty line
    if tuple(rows.columns) != tuple(columns) or rows.is_empty():
        raise _not_original(path, name, f"its rows are not {len(columns)} cells")
    return rows


# Room Occupancy.

_SENSORS = ("Temperature", "Humidity", "Light", "CO2", "HumidityRatio")


def load_occupancy(folder: Path | None = None) -> Table:
    """Load UCI's three original files as one table, in the order of time.

    The label is whether the room is occupied. The date is not a feature.

    Raises:
        MissingDataError: If a file is missing; says where to put it and how to download it.
        DataError: If a file is not what UCI published.
    """
    import polars as pl

    paths = OCCUPANCY.find(folder)
    columns = ("row", "date", *_SENSORS, "Occupancy")
    parts = [_read(path, "occupancy", columns, header=True) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        try:
            part.select(pl.col(*_SENSORS, "Occupancy").cast(pl.Float64))
        except pl.exceptions.PolarsError as error:
            raise _not_original(path, "occupancy", error) from None
    rows = pl.concat(parts).drop("row")
    return _table(rows, "occupancy", "Occupancy", _SENSORS, paths=paths)


OCCUPANCY = DATASETS.register(
    DataSet(
        name="occupancy",
        about="Room Occupancy: five sensors in an office, is somebody there?",
        rows=20_560,
        licence="CC BY 4.0",
        load=load_occupancy,
        url=f"{_URL}/357/occupancy+detection.zip",
        # In the order of time: 2 to 4, 4 to 10 and 11 to 18 February 2015.
        files=tuple(
            DataFile(f"occupancy/{name}.txt", f"{name}.txt", sha256)
            for name, sha256 in (
                ("datatest", "1b92c7c1b2838963464fa891a610cf3c5db4becb7189189b29b330107a584c7f"),
                (
                    "datatraining",
                    "b2c4d0ce2b9e4e453c476f7125ef31aeec2d1f5c7f5572d0e80de3df6521ab56",
                ),
                ("datatest2", "d026d1bd5aeccd4aff4f3b3710d48e40613bd5fc370db7e61bbdcaa50d985095"),
            )
        ),
    )
)


# SUSY.

SUSY_FEATURES = (
    *("lepton 1 pT", "lepton 1 eta", "lepton 1 phi", "lepton 2 pT", "lepton 2 eta"),
    *("lepton 2 phi", "missing energy magnitude", "missing energy phi", "MET_rel", "axial MET"),
    *("M_R", "M_TR_2", "R", "MT2", "S_R", "M_Delta_R", "dPhi_r_b", "cos(theta_r1)"),
)
_SAMPLE = "SUSY-10k.csv.gz"


def load_susy(folder: Path | None = None) -> Table:
    """Load UCI's SUSY.csv.gz (or SUSY.csv), or else the sample of 10,000 rows, SUSY-10k.csv.gz.

    The table's name says if it is the sample.

    Raises:
        MissingDataError: If no file is there; says where to put it and how to download it.
        DataError: If the file is cut off or damaged.
    """
    from oneway.tables.reading import read_frame

    (path,) = SUSY.find(folder)
    rows = read_frame(path, ("signal", *SUSY_FEATURES))
    table = _table(rows, "susy", "signal", SUSY_FEATURES, paths=(path,))
    return replace(table, name="susy (10,000-row sample)") if path.name == _SAMPLE else table


SUSY = DATASETS.register(
    DataSet(
        name="susy",
        about="SUSY: simulated particle collisions, are supersymmetric particles produced?",
        rows=5_000_000,
        licence="CC BY 4.0",
        load=load_susy,
        url=f"{_URL}/279/susy.zip",
        # Its digest is not known: the download is checked only by TLS.
        files=(DataFile("susy/SUSY.csv.gz", "SUSY.csv.gz"),),
        alternatives=("susy/SUSY.csv", f"susy/{_SAMPLE}"),
    )
)


# Adult.

_ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)
# Not fnlwgt, which says how many people the census takes a row to stand for.
_YEARS = ("age", "education-num", "hours-per-week")
# Most have none and a few have 99,999: of the amounts themselves those few would be outliers.
_AMOUNTS = ("capital-gain", "capital-loss")
ADULT_CATEGORIES: dict[str, tuple[str, ...]] = {
    "workclass": (
        *("Federal-gov", "Local-gov", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov"),
    ),
    "marital-status": (
        *("Divorced", "Married-civ-spouse", "Married-spouse-absent", "Never-married"),
        *("Separated", "Widowed"),
    ),
    "occupation": (
        *("Adm-clerical", "Craft-repair", "Exec-managerial", "Farming-fishing"),
        *("Handlers-cleaners", "Machine-op-inspct", "Other-service", "Prof-specialty"),
        *("Protective-serv", "Sales", "Tech-support", "Transport-moving"),
    ),
    "relationship": (
        *("Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"),
    ),
    "race": ("Asian-Pac-Islander", "Black", "White"),
    "sex": ("Female", "Male"),
    "native-country": ("Mexico", "United-States"),
}
"""The other values have fewer than 1 % of the rows each: all of them are "other"."""


def load_adult(folder: Path | None = None) -> Table:
    """Load UCI's file adult.data in its own order.

    The label is whether the income is above 50,000 dollars. Features are age, years of education,
    hours of work a week, the logarithm of 1 + capital gain and of 1 + capital loss, and seven
    categories, each with the values that at least 1 % of the rows have. "?" is a missing value;
    where somebody's work is not known, incomes are lower, so that this has a column of its own.

    Raises:
        MissingDataError: If the file is missing; says where to put it and how to download it.
        DataError: If the file is not what UCI published.
    """
    import polars as pl

    (path,) = ADULT.find(folder)
    rows = _read(path, "adult", _ADULT)
    try:
        rows = rows.with_columns(pl.col(*_YEARS, *_AMOUNTS).cast(pl.Int64))
    except pl.exceptions.PolarsError as error:
        raise _not_original(path, "adult", error) from None
    if not rows["income"].is_in(["<=50K", ">50K"]).all():
        raise _not_original(path, "adult", "its rows are not 15 cells, the last <=50K or >50K")
    return _table(
        rows.with_columns(pl.col(_AMOUNTS).log1p()),
        "adult",
        "income",
        (*_YEARS, *_AMOUNTS),
        category=ADULT_CATEGORIES,
        flagged=("workclass", "occupation"),
        paths=(path,),
    )


ADULT = DATASETS.register(
    DataSet(
        name="adult",
        about="Adult: the census of 1994, does a person earn more than 50,000 dollars a year?",
        rows=32_561,
        licence="CC BY 4.0",
        load=load_adult,
        url=f"{_URL}/2/adult.zip",
        files=(
            DataFile(
                "adult/adult.data",
                "adult.data",
                "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            ),
        ),
    )
)


# Heart Disease.

HOSPITALS = ("Cleveland", "Hungarian", "Switzerland", "VA")
"""The Cleveland Clinic, the Hungarian Institute of Cardiology, those of Zurich and Basel, and the
Veterans Affairs hospital in Long Beach."""
_HEART = (
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak"),
    *("slope", "ca", "thal", "num"),
)
_MEASURES = ("age", "trestbps", "chol", "thalach", "oldpeak", "ca")
_FINDINGS: dict[str, tuple[str, ...]] = {
    "cp": ("1", "2", "3", "4"),
    "restecg": ("0", "1", "2"),
    "slope": ("1", "2", "3"),
    "thal": ("3", "6", "7"),
}
# Where these are missing, disease is more frequent or less so by over three standard errors.
TELLING = ("chol", "fbs", "slope", "ca")
# No patient alive has a serum cholesterol or a blood pressure of 0: it was not measured.
_NEVER_ZERO = ("trestbps", "chol")


def load_heart(folder: Path | None = None) -> Table:
    """Load UCI's four processed files; hospitals take turns, each until it has no more patients.

    The order of a file is not that of time: the Hungarian one has those without disease first. So
    the patients of a hospital come in a random order, always the same.

    The label is whether the diameter of an artery is narrowed by more than half (num > 0). Whether
    cholesterol, blood sugar, the slope of the ST segment and the vessels were looked at are
    features of their own: that differs between hospitals, and so do their patients.
    `table.deal_by("hospital")` gives each hospital its own.

    Raises:
        MissingDataError: If a file is missing; says where to put it and how to download it.
        DataError: If a file is not what UCI published.
    """
    import polars as pl

    paths = HEART.find(folder)
    rng, parts = np.random.default_rng(0), []
    for hospital, path in zip(HOSPITALS, paths, strict=True):
        try:
            patients = _read(path, "heart", _HEART)
            patients = patients.with_columns(pl.all().replace("?", None).cast(pl.Float64))
        except pl.exceptions.PolarsError as error:
            raise _not_original(path, "heart", error) from None
        if not patients["num"].is_between(0, 4).all():
            raise _not_original(path, "heart", "its last column is not 0 to 4")
        turns = pl.Series("turn", rng.permutation(len(patients)))
        parts.append(patients.with_columns(turns, hospital=pl.lit(hospital)))
    rows = pl.concat(parts).sort("turn", maintain_order=True)
    disease = pl.when(pl.col("num") > 0).then(pl.lit("yes")).otherwise(pl.lit("no"))
    return _table(
        rows.with_columns(pl.col(_NEVER_ZERO).replace(0.0, None), disease=disease).drop(
            "turn", "num"
        ),
        "heart",
        "disease",
        _MEASURES,
        booleans=("sex", "fbs", "exang"),
        category=_FINDINGS,
        flagged=TELLING,
        paths=paths,
    )


HEART = DATASETS.register(
    DataSet(
        name="heart",
        about="Heart Disease: patients of four hospitals, is an artery narrowed?",
        rows=920,
        licence="CC BY 4.0",
        load=load_heart,
        url=f"{_URL}/45/heart+disease.zip",
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
