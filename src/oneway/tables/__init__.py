"""From a user's table to numbers: read, infer, encode; one way for peer and simulator."""

from oneway.tables.encoder import Encoder
from oneway.tables.features import Array, Boolean, Category, Feature, Number, Time
from oneway.tables.table import Table

__all__ = ["Array", "Boolean", "Category", "Encoder", "Feature", "Number", "Table", "Time"]
