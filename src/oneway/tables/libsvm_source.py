"""LIBSVM files (`label index:value ...`, absent entries are 0), block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import polars as pl

from oneway.errors import DataError
from oneway.tables.lines import line_blocks
from oneway.tables.source import Block, Kind, Source, choose_columns

DENSE_NUMBERS_AT_A_TIME = 8 * 2**20
LABEL = "label"


def open_file(
    path: Path,
    *,
    label: str | None = None,
    features: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> Source:
    """Open a LIBSVM file as a dense table, as `open_source` says; its label needs no name.

    Without the features' `names`, the file is read once more to find the largest index, and they
    are "feature 1", "feature 2" and so on.
    """
    if label is not None:
        raise DataError(
            f"label={label!r} does not apply to {path.name}: a LIBSVM file has its label first "
            "in every line; leave label out"
        )
    if names is None:
        names = [f"feature {index + 1}" for index in range(_largest_index(path))]
    kinds: dict[str, Kind] = dict.fromkeys(names, "number")
    chosen = choose_columns(path, {**kinds, LABEL: "number"}, LABEL, features)
    chosen = replace(chosen, others=())
    picked = [list(names).index(name) for name in chosen.features]

    def blocks() -> Iterator[Block]:
        from sklearn.datasets import load_svmlight_file

        for block in line_blocks(path, quoted=False):
            try:
                sparse, labels = load_svmlight_file(
                    BytesIO(block), n_features=len(names), zero_based=False
                )
            except ValueError as error:
                raise _malformed(path, str(error)) from None
            step = max(1, DENSE_NUMBERS_AT_A_TIME // len(names))
            for start in range(0, len(labels), step):
                dense = sparse[start : start + step].toarray()
                part = pl.Series(LABEL, labels[start : start + step])
                yield Block(features=dense[:, picked], labels=part, columns={})

    return Source(path, chosen, blocks)


def _largest_index(path: Path) -> int:
    largest = 0
    for block in line_blocks(path, quoted=False):
        for line in block.splitlines():
            # Indices ascend within a line, so the last one is the largest.
            before_value = line.partition(b"#")[0].rpartition(b":")[0]
            if before_value:
                try:
                    largest = max(largest, int(before_value.rpartition(b" ")[2]))
                except ValueError:
                    raise _malformed(path, repr(line[:60].decode("utf-8", "replace"))) from None
    if largest == 0:
        raise _malformed(path, "no index:value in it")
    return largest


def _malformed(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} is not in LIBSVM format ({reason}); every line must be `label index:value ...` "
        "with indices that ascend from 1"
    )
