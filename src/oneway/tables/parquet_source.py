"""Parquet files, block by block, with polars."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from oneway.errors import DataError, MissingDataError
from oneway.tables.planning import Planner, no_numbers
from oneway.tables.source import Block, Source, Wish

BLOCK_ROWS = 262_144


def open_file(path: Path, wish: Wish) -> Source:
    """Open a Parquet file as `open_source` says; columns of lists and the like are ignored."""
    if not path.is_file():
        raise MissingDataError(f"{path} does not exist; check the path")
    lazy = pl.scan_parquet(path)
    try:
        schema = lazy.collect_schema()
        num_rows = int(lazy.select(pl.len()).collect().item())
        known = [
            name
            for name, dtype in schema.items()
            if not dtype.is_nested() and dtype not in (pl.Binary, pl.Object)
        ]
        top = typed(lazy.select(known).head(BLOCK_ROWS).collect())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from None
    planner = Planner(path.name, top, wish, is_whole=num_rows <= BLOCK_ROWS)
    if num_rows > BLOCK_ROWS and (categories := planner.found_categories):
        for start in range(BLOCK_ROWS, num_rows, BLOCK_ROWS):
            rows = lazy.select(categories).slice(start, BLOCK_ROWS).collect()
            planner.see({name: rows[name].cast(pl.String) for name in categories})
    plan = planner.plan()
    chosen = plan.chosen
    for name in chosen.numbers:
        if top.schema[name] != pl.Float64:
            raise no_numbers(path.name, name, schema[name])
    label_type = pl.Float64 if schema[chosen.label].is_numeric() else pl.String
    wanted = [
        *(pl.col(name).cast(pl.Float64) for name in chosen.numbers),
        pl.col(chosen.label).cast(label_type),
        *(pl.col(name).cast(pl.String) for name in (*chosen.texts, *chosen.others)),
    ]

    def blocks() -> Iterator[Block]:
        for start in range(0, num_rows, BLOCK_ROWS):
            try:
                frame = lazy.slice(start, BLOCK_ROWS).select(wanted).collect()
            except (pl.exceptions.PolarsError, OSError) as error:
                raise _damaged(path, error) from None
            yield Block.of(frame, chosen)

    return Source(path, plan, blocks)


def typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of any types as numbers, where they are numbers or truth values, and text."""
    return frame.select(
        pl.col(name).cast(pl.Float64 if dtype.is_numeric() or dtype == pl.Boolean else pl.String)
        for name, dtype in frame.schema.items()
    )


def _damaged(path: Path, error: Exception) -> DataError:
    reason = str(error).split("\n")[0]
    return DataError(
        f"{path} is not a readable Parquet file ({reason}); write or download it again"
    )
