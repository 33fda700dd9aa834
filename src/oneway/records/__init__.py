"""Frozen values that cross package borders: arrays and runs, a peer's status, a lab's frames."""

from oneway.records.values import (
    Batch,
    Bools,
    Floats,
    Ints,
    Matrix,
    NetworkState,
    Origin,
    RunRecord,
    Vector,
    checksum,
)

__all__ = [
    "Batch",
    "Bools",
    "Floats",
    "Ints",
    "Matrix",
    "NetworkState",
    "Origin",
    "RunRecord",
    "Vector",
    "checksum",
]
