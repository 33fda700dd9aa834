"""Data frames of named columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from oneway.errors import needs_extra


def as_frame(columns: Mapping[str, NDArray[Any] | Sequence[Any]]) -> Any:
    """Columns of the same length as a polars frame; its `to_pandas` makes one of pandas.

    Raises:
        MissingExtraError: If polars is not installed.
    """
    with needs_extra("a frame", "lab"):
        import polars
    return polars.DataFrame(dict(columns))
