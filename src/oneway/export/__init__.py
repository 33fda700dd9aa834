"""A model to take home: predicts raw rows, says its coefficients, is written in several formats."""

from oneway.export.fitted import INTERCEPT, FittedModel
from oneway.export.personal import PersonalModel

__all__ = ["INTERCEPT", "FittedModel", "PersonalModel"]
