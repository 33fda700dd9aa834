"""Data frames of named columns: polars, or pandas where that is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oneway.errors import ConfigError, MissingExtraError, needs_extra

FrameKind: TypeAlias = Literal["polars", "pandas"]


def as_frame(columns: Mapping[str, NDArray[Any] | Sequence[Any]], kind: FrameKind) -> Any:
    """Columns of the same length as a frame.

    Raises:
        ConfigError: If there is no such kind of frame.
        MissingExtraError: If polars or pandas is not installed.
    """
    if kind == "polars":
        with needs_extra("a frame", "lab"):
            import polars
        return polars.DataFrame({name: _plain(values) for name, values in columns.items()})
    if kind == "pandas":
        try:
            import pandas
        except ModuleNotFoundError:
            raise MissingExtraError(
                "a pandas frame needs pandas, which is not installed; run: pip install pandas, or "
                "leave kind out for polars"
            ) from None
        return pandas.DataFrame({name: _plain(values) for name, values in columns.items()})
    raise ConfigError(f"kind is {kind!r}; a frame is 'polars' or 'pandas'")


def _plain(values: NDArray[Any] | Sequence[Any]) -> Any:
    return np.asarray(values) if isinstance(values, np.ndarray) else list(values)
