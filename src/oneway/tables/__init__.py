"""From a user's table to numbers: read, encode, scale, label; one way for peer and simulator."""

from oneway.tables.encoder import Encoder, Feature
from oneway.tables.owners import Column
from oneway.tables.table import Table

__all__ = ["Column", "Encoder", "Feature", "Table"]
