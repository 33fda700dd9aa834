"""How SQLite holds the values of one type: codecs of a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from enum import StrEnum
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
import numpy as np
from numpy.typing import NDArray


class Codec(NamedTuple):
    """How SQLite holds values of a type.

    Attributes:
        affinity: Of their column.
        write: Makes of a value what is stored; None if it is stored as it is.
        read: Makes the value of what is stored, given the number of parameters.
    """

    affinity: str
    write: Callable[[Any], Any] | None
    read: Callable[[Any, int], Any]


@cache
def codec(kind: Any) -> Codec:
    """The codec of a type."""
    if get_origin(kind) is np.ndarray:
        [number] = get_args(get_args(kind)[1])
        dtype: np.dtype[Any] = np.dtype(number).newbyteorder("<")
        return Codec("BLOB", partial(_blob, dtype), partial(_array, dtype))
    if is_dataclass(kind) or get_origin(kind) in (tuple, dict):
        # As MessagePack, since SQLite has no NaN, and a sum of losses may be one.
        return Codec(
            "", msgspec.msgpack.encode, lambda stored, _: msgspec.msgpack.decode(stored, type=kind)
        )
    return Codec(
        "BLOB" if kind is bytes else "TEXT" if issubclass(kind, str) else "",
        attrgetter("value") if issubclass(kind, StrEnum) else None,
        lambda stored, _: msgspec.convert(stored, kind, strict=kind is not bool),
    )


def _blob(dtype: np.dtype[Any], array: NDArray[Any]) -> memoryview | bytes:
    flat = np.ascontiguousarray(array, dtype).reshape(-1)
    return flat.data if len(flat) else b""


def _array(dtype: np.dtype[Any], stored: bytes, dim: int) -> NDArray[Any]:
    # Of what is exact, every array is a vector and a mass; an empty one is stored elsewhere.
    if dtype.kind == "i" and len(stored) not in (0, 8 * (dim + 1)):
        raise ValueError(f"an array has {len(stored)} bytes instead of {8 * (dim + 1)}")
    return np.frombuffer(stored, dtype).astype(dtype.newbyteorder("="), copy=False)
