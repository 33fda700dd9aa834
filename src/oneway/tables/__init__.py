"""From a user's table to numbers: read, encode, scale, label; one way for peer and simulator."""

from oneway.tables.column import Column
from oneway.tables.table import Table

__all__ = ["Column", "Table"]
