"""Parquet files, block by block, with polars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from oneway.errors import DataError, MissingDataError
from oneway.tables.source import Block, Kind, Source, choose_columns

BLOCK_ROWS = 262_144


def open_file(path: Path, *, label: str | None, features: Sequence[str] | None = None) -> Source:
    """Open a Parquet file as `open_source` says; columns of lists and the like are ignored."""
    if not path.is_file():
        raise MissingDataError(f"{path} does not exist; check the path")
    lazy = pl.scan_parquet(path)
    try:
        schema = lazy.collect_schema()
        num_rows = int(lazy.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from None
    kinds: dict[str, Kind] = {
        name: "number" if dtype.is_numeric() or dtype == pl.Boolean else "text"
        for name, dtype in schema.items()
        if not dtype.is_nested() and dtype not in (pl.Binary, pl.Object)
    }
    chosen = choose_columns(path, kinds, label, features)
    label_type = pl.Float64 if schema[chosen.label].is_numeric() else pl.String
    wanted = [
        *(pl.col(name).cast(pl.Float64) for name in chosen.features),
        pl.col(chosen.label).cast(label_type),
        *(pl.col(name).cast(pl.String) for name in chosen.others),
    ]

    def blocks() -> Iterator[Block]:
        for start in range(0, num_rows, BLOCK_ROWS):
            try:
                frame = lazy.slice(start, BLOCK_ROWS).select(wanted).collect()
            except (pl.exceptions.PolarsError, OSError) as error:
                raise _damaged(path, error) from None
            yield Block.of(frame, chosen)

    return Source(path, chosen, blocks)


def _damaged(path: Path, error: Exception) -> DataError:
    reason = str(error).split("\n")[0]
    return DataError(
        f"{path} is not a readable Parquet file ({reason}); write or download it again"
    )
