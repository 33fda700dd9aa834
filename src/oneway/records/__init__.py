"""Frozen values that cross package borders: arrays and runs, a peer's status, a lab's frames."""

from oneway.records.values import (
    FRACTION_BITS,
    MASS_UNITS,
    Batch,
    Bools,
    Floats,
    Ints,
    Matrix,
    NetworkState,
    Origin,
    PersonalRecord,
    RunRecord,
    Segment,
    Vector,
    checksum,
)

__all__ = [
    "FRACTION_BITS",
    "MASS_UNITS",
    "Batch",
    "Bools",
    "Floats",
    "Ints",
    "Matrix",
    "NetworkState",
    "Origin",
    "PersonalRecord",
    "RunRecord",
    "Segment",
    "Vector",
    "checksum",
]
