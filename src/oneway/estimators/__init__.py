"""Estimators: a simulated network for scikit-learn, a running peer for river.

Each is imported when it is first used, so that neither library is needed for the other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oneway.errors import needs_extra

if TYPE_CHECKING:
    from oneway.estimators.river import RiverClassifier, RiverRegressor
    from oneway.estimators.scikit import OnewayClassifier, OnewayRegressor

__all__ = ["OnewayClassifier", "OnewayRegressor", "RiverClassifier", "RiverRegressor"]


def __getattr__(name: str) -> Any:
    """Import an estimator.

    Raises:
        MissingExtraError: If its library is not installed.
    """
    if name not in __all__:
        raise AttributeError(f"module 'oneway.estimators' has no attribute {name!r}")
    module, extra = ("river", "river") if name.startswith("River") else ("scikit", "lab")
    with needs_extra(f"oneway.{name}", extra):
        return getattr(import_module(f"oneway.estimators.{module}"), name)
