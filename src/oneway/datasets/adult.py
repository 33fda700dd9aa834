"""Adult: does a person earn more than 50,000 dollars a year? The census of 1994, one row each.

Becker and Kohavi, UCI Adult, CC BY 4.0; the file adult.data, 32,561 rows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.errors import DataError
from oneway.tables.table import Table

if TYPE_CHECKING:
    import polars as pl

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
# Not fnlwgt, which says how many people the census takes a row to stand for.
NUMBERS = ("age", "education-num", "hours-per-week")
# Most have none and a few have 99,999: of the amounts themselves those few would be outliers.
AMOUNTS = ("capital-gain", "capital-loss")
# The others have fewer than 1 % of the rows each: all of them are "other".
CATEGORIES = {
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
INCOMES = ("<=50K", ">50K")


def load_adult(folder: Path | None = None) -> Table:
    """Load UCI's file adult.data in its own order.

    The label is whether the income is above 50,000 dollars. Features are age, years of education,
    hours of work a week, the logarithm of 1 + capital gain and of 1 + capital loss, and seven
    categories, each with the values that at least 1 % of the rows have. "?" is a gap; where nobody
    wrote down what somebody works, incomes are lower, so that those gaps have a column of their
    own. The text is kept in `table.columns`, for `deal_by`.

    Raises:
        MissingDataError: If the file is missing; says where to put it and how to download it.
        DataError: If the file is not what UCI published.
    """
    import polars as pl

    (path,) = ADULT.find(folder)
    rows = _read(path).with_columns(pl.col(AMOUNTS).log1p(), pl.col(*CATEGORIES).replace("?", None))
    table = Table.from_frame(
        rows,
        label="income",
        name="adult",
        task="binary",
        features=(*NUMBERS, *AMOUNTS, *CATEGORIES),
        numeric=(*NUMBERS, *AMOUNTS),
        category=CATEGORIES,
    )
    about = {"kind": "adult", "file": str(path.resolve())}
    return replace(table, origin={**table.origin, **about}, notes=())


def _read(path: Path) -> pl.DataFrame:
    """All rows; text without the blanks before it, numbers as numbers."""
    import polars as pl

    numbers = [pl.col(name).cast(pl.Int64) for name in (*NUMBERS, *AMOUNTS)]
    try:
        text = pl.read_csv(
            path, has_header=False, new_columns=COLUMNS, infer_schema=False, quote_char=None
        )
        # UCI's file ends with an empty line.
        filled = text.filter(~pl.all_horizontal(pl.all().is_null()))
        rows = filled.with_columns(pl.all().str.strip_chars()).with_columns(numbers)
        wrong = rows.filter(
            ~pl.col("income").is_in(INCOMES) | pl.any_horizontal(pl.all().is_null())
        )
        if tuple(rows.columns) == COLUMNS and wrong.is_empty() and not rows.is_empty():
            return rows
        reason = "its rows are not 15 fields, the last of them <=50K or >50K"
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
    raise DataError(
        f"{path} is not UCI's original file ({reason}); download it again with "
        "oneway data fetch adult"
    )


ADULT = DATASETS.register(
    DataSet(
        name="adult",
        about="Adult: the census of 1994, does a person earn more than 50,000 dollars a year?",
        rows=32_561,
        licence="CC BY 4.0",
        load=load_adult,
        url="https://archive.ics.uci.edu/static/public/2/adult.zip",
        files=(
            DataFile(
                "adult/adult.data",
                "adult.data",
                "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            ),
        ),
    )
)
