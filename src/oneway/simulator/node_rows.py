"""Layout of a node's row in compiled rounds: parameters, mass, padding.

In single precision a row is float32. Its mass is two numbers that add up to it: rounded to one, the
masses of a network at rest would be rounded the same way in every round, and their sum would drift.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from oneway.records import Matrix

_ROW_UNIT = 32
"""Bytes; rows of whole units that begin at a cache line lie in as few lines as they can."""
_CACHE_LINE = 64


def mass_column(dim: int, single: bool = False) -> int:
    """Where a row has the mass; in single precision its other part is in the next column."""
    return dim + dim % 2 if single else dim


def row_width(dim: int, single: bool = False) -> int:
    """Length of a node's row: `dim` parameters and the mass, padded to whole vectors."""
    length = mass_column(dim, single) + (2 if single else 1)
    unit = _ROW_UNIT // (4 if single else 8)
    return -(-length // unit) * unit


def empty_rows(num_nodes: int, dim: int, single: bool = False) -> Matrix:
    """Rows of zeros that begin at a cache line, as none of NumPy's own of this size does."""
    dtype = np.dtype(np.float32 if single else np.float64)
    width = row_width(dim, single)
    spare = np.zeros(num_nodes * width + _CACHE_LINE // dtype.itemsize, dtype)
    begin = -spare.ctypes.data % _CACHE_LINE // dtype.itemsize
    rows: Matrix = spare[begin : begin + num_nodes * width].reshape(num_nodes, width)
    return rows


@njit(inline="always")
def mass_in(rows: Any, node: int, column: int, single: bool) -> float:
    """What a row has in its mass column: of a model's the mass, of a parcel's the count."""
    mass = np.float64(rows[node, column])
    if single:
        mass += np.float64(rows[node, column + 1])
    return mass
