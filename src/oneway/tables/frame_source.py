"""Data frames of pandas and polars, as a source of rows like a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from oneway.errors import DataError
from oneway.sentences import shown
from oneway.tables.cells import is_gap
from oneway.tables.planning import Planner, no_numbers
from oneway.tables.source import Block, Source, Wish


def open_frame(frame: Any, wish: Wish, name: str) -> Source:
    """Prepare to read a frame; its rows are those of a file called `name`.

    Raises:
        DataError: If it is no frame, or a column that is asked for is not there.
    """
    typed = _typed(frame)
    plan = Planner(name, typed, wish, is_whole=True).plan()
    for column in plan.chosen.numbers:
        if typed.schema[column] != pl.Float64:
            raise no_numbers(name, column, "text")

    def blocks() -> Iterator[Block]:
        yield Block.of(typed, plan.chosen)

    return Source(Path(name), plan, blocks)


def _typed(frame: Any) -> pl.DataFrame:
    """Columns of any types as Float64, where they are numbers or truth values, and String."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        names = [name for name, dtype in frame.schema.items() if not dtype.is_nested()]
        return pl.DataFrame([_numbers_or_text(frame[name]) for name in names])
    if not (hasattr(frame, "columns") and hasattr(frame, "dtypes") and hasattr(frame, "to_numpy")):
        raise DataError(
            f"the frame is {shown(frame)}; it must be a DataFrame of pandas or polars; for arrays "
            "there is Table.from_arrays"
        )
    columns = []
    for place, name in enumerate(frame.columns):
        if not isinstance(name, str):
            raise DataError(
                f"column {place} of the frame is named {shown(name)}; the name of a column must be "
                "text: rename it, for example with frame.columns = map(str, frame.columns)"
            )
        # By place: a name that is there twice would give a frame.
        columns.append(_of_pandas(name, frame.iloc[:, place]))
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"the frame has two columns named {name!r}; rename one of them")
    return pl.DataFrame(columns)


def _numbers_or_text(cells: pl.Series) -> pl.Series:
    if cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        return cells.cast(pl.Float64).fill_nan(None)
    if cells.dtype in (pl.Binary, pl.Object):
        return pl.Series(cells.name, [_text(cell) for cell in cells.to_list()], pl.String)
    return cells.cast(pl.String)


def _of_pandas(name: str, cells: Any) -> pl.Series:
    kind = getattr(cells.dtype, "kind", "O")
    if kind in "biuf":  # also those of pandas' own types, with a mask
        numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        return pl.Series(name, numbers).fill_nan(None)
    return pl.Series(name, [_text(cell) for cell in cells.tolist()], pl.String)


def _text(cell: object) -> str | None:
    """A cell as a file would spell it."""
    if is_gap(cell):
        return None
    return str(cell).lower() if isinstance(cell, bool | np.bool_) else str(cell)
