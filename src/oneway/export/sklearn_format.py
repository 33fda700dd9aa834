"""scikit-learn estimator of a fitted model: predicts raw rows exactly as the peer does.

The class is oneway's own and calls the fitted model row by row, so that the numbers are the very
same, ties included. To load a pickle of it, oneway and scikit-learn must be installed.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, needs_extra
from oneway.export.fitted import FittedModel
from oneway.records import Matrix, Vector
from oneway.sentences import listed

with needs_extra("an estimator of scikit-learn", "export"):
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


def to_pickle(fitted: FittedModel) -> bytes:
    """Return the pickle of an estimator; whoever loads a pickle runs the code in it."""
    return pickle.dumps(to_estimator(fitted))


def to_estimator(fitted: FittedModel) -> FittedClassifier | FittedRegressor:
    """Return an estimator that predicts what the model does."""
    return (FittedClassifier if fitted.model.classifies else FittedRegressor)(fitted)


class _Fitted(BaseEstimator):  # type: ignore[misc]
    """An estimator that is fitted already.

    It takes a data frame with the raw columns, others are not looked at, or an array with just
    these columns in the order of `feature_names_in_`. `fit` changes nothing.
    """

    def __init__(self, model: FittedModel) -> None:
        self.model = model

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The raw columns."""
        return np.array(self.model.encoder.names, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many raw columns there are."""
        return len(self.model.encoder.names)

    def fit(self, X: object, y: object = None) -> Self:  # noqa: N803
        """Return this estimator as it is: it was learned by peers."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _rows(self, table: Any) -> Iterator[Mapping[str, object]]:
        names = self.model.encoder.names
        columns = getattr(table, "columns", None)
        if columns is not None:
            missing = [name for name in names if name not in set(columns)]
            if missing:
                raise DataError(
                    f"the data frame has no column {listed(map(repr, missing))}; it must have "
                    f"{listed(names)}"
                )
            cells = zip(*(_cells(table[name]) for name in names), strict=True)
        else:
            array = np.asarray(table, dtype=object)
            if array.ndim != 2 or array.shape[1] != len(names):
                raise DataError(
                    f"the array has the shape {array.shape}; it must be [row, column] with the "
                    f"columns {listed(names)}"
                )
            cells = iter(array.tolist())
        return (dict(zip(names, row, strict=True)) for row in cells)


class FittedClassifier(ClassifierMixin, _Fitted):  # type: ignore[misc]
    """A classifier of scikit-learn around a fitted model."""

    @property
    def classes_(self) -> NDArray[Any]:
        """What may be predicted."""
        return np.array(self.model.classes)

    def predict(self, X: object) -> NDArray[Any]:  # noqa: N803
        """The class of every row."""
        return np.array(self.model.predict_many(self._rows(X)), dtype=self.classes_.dtype)

    def predict_proba(self, X: object) -> Matrix:  # noqa: N803
        """`[row, class]`, in the order of `classes_`."""
        shares = [list(self.model.predict_proba_one(row).values()) for row in self._rows(X)]
        return np.array(shares, dtype=np.float64).reshape(-1, len(self.model.classes))


class FittedRegressor(RegressorMixin, _Fitted):  # type: ignore[misc]
    """A regressor of scikit-learn around a fitted model."""

    def predict(self, X: object) -> Vector:  # noqa: N803
        """The number expected for every row."""
        return np.array(self.model.predict_many(self._rows(X)), dtype=np.float64)


def _cells(column: Any) -> list[object]:
    """The cells of a column of pandas or polars."""
    cells: list[object] = column.to_list()
    return cells
