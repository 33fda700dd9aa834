"""Fitted model: encoder, model and parameters together, a pure value that predicts raw rows.

Every prediction that anybody gets from a peer, its API, its page, its store, a run or an exported
file is made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from oneway.errors import ConfigError
from oneway.models import HasCoefficients, HasProbabilities, Model
from oneway.records import Matrix, Origin, Vector
from oneway.tables.encoder import Encoder
from oneway.tables.labels import ClassName, class_names

INTERCEPT = "(intercept)"
"""What the constant of a score is called among the coefficients, as in R."""


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel:
    """A model as it stands at one moment, for rows in the units of the data.

    Attributes:
        encoder: From raw cells to the numbers of the model, and back.
        model: What was learned.
        params: Its parameters; not to be changed.
        origin: Where it comes from, in terms JSON can hold: peer, samples, task, privacy.

    Raises:
        ConfigError: The parameters are not as many as the encoder and the model need.

    >>> import numpy as np
    >>> from oneway.models import RidgeRegression
    >>> from oneway.tables import Feature
    >>> encoder = Encoder((Feature("size", center=50, scale=10),), "price", "number")
    >>> house = FittedModel(encoder, RidgeRegression(), np.array([30.0, 200.0]))
    >>> house.predict_one({"size": 60}), house.coefficients
    (230.0, {'(intercept)': 50.0, 'size': 3.0})
    """

    encoder: Encoder
    model: Model
    params: Vector
    origin: Origin = field(default_factory=dict)

    def __post_init__(self) -> None:
        needed = self.model.dim(len(self.outputs))
        if self.params.shape != (needed,):
            raise ConfigError(
                f"{self.model.name} on {len(self.outputs)} columns has {needed} parameters, and "
                f"{self.params.shape} are given; give those that were learned from these features"
            )

    def __repr__(self) -> str:
        return (
            f"<FittedModel: {self.model.name}, {self.encoder.label} from "
            f"{len(self.encoder.names)} features>"
        )

    @property
    def outputs(self) -> Sequence[str]:
        """The numbers that the model sees, by name, in the order of its parameters."""
        return self.encoder.outputs

    @cached_property
    def classes(self) -> tuple[ClassName, ...]:
        """What may be predicted, in order; nothing if numbers are."""
        return class_names(self.encoder.classes)

    def predict_one(self, x: Mapping[str, object]) -> ClassName | float:
        """The label expected for a raw row: a class, True or False, or a number.

        Raises:
            DataError: The row lacks a feature or has one that is no number.
        """
        value = float(self.model.predict(self.params, self.encoder.vector(x)[None, :])[0])
        if not self.model.classifies:
            return value
        return self.classes[self.encoder.classes.index(self.encoder.label_name(value))]

    def predict_proba_one(self, x: Mapping[str, object]) -> dict[ClassName, float]:
        """How probable each class is for a raw row.

        Raises:
            DataError: As `predict_one`.
            ConfigError: The model does not say how probable a class is.
        """
        features = self.encoder.vector(x)[None, :]
        if not isinstance(self.model, HasProbabilities):
            raise ConfigError(
                f"a {self.model.name} model does not say how probable a class is; ask it for the "
                "label, or use a logistic or softmax model"
            )
        shares = self.model.probabilities(self.params, features)[0].tolist()
        return dict(zip(self.classes, shares, strict=True))

    def predict_many(self, rows: Iterable[Mapping[str, object]]) -> list[ClassName | float]:
        """What `predict_one` says to each of several raw rows."""
        return [self.predict_one(row) for row in rows]

    @property
    def says_probabilities(self) -> bool:
        """Whether `predict_proba_one` has an answer."""
        return isinstance(self.model, HasProbabilities)

    @property
    def coefficients(self) -> dict[str, float] | dict[ClassName, dict[str, float]]:
        """What one unit of each feature adds to the score, and the intercept, in the data's units.

        By the names of `outputs`; of a model with one score per class, for every class. For two
        classes the score is that of the second against the first.

        Raises:
            ConfigError: The model has no coefficients, or a feature is called as the intercept is.
        """
        factors, constants = self.in_data_units()
        if INTERCEPT in self.outputs:
            raise ConfigError(
                f"a feature is called {INTERCEPT}, as the intercept is among the coefficients; "
                "use in_data_units(), or give that column another name"
            )
        names = (INTERCEPT, *self.outputs)
        by_score = [
            dict(zip(names, (constant, *row), strict=True))
            for row, constant in zip(factors.tolist(), constants.tolist(), strict=True)
        ]
        if self.model.labels != "classes":
            return by_score[0]
        return dict(zip(self.classes, by_score, strict=True))

    def save(self, path: Path | str, format: str = "", *, force: bool = False) -> Path:  # noqa: A002
        """Write the model into a file, in the format that its ending names; see `formats.save`.

        Raises:
            ConfigError: The format is unknown, the model cannot be written so, there is a file
                already, or it cannot be written.
            MissingExtraError: The format needs a package that is not installed.
        """
        from oneway.export.formats import save

        return save(self, path, format, force=force)

    def in_data_units(self) -> tuple[Matrix, Vector]:
        """Coefficients `[score, output]` and constants of the scores, scaling undone.

        Raises:
            ConfigError: The model has no coefficients.
        """
        factors, constants = self.in_model_units()
        scaling = self.encoder.scaling
        slopes = factors / scaling.scales
        return slopes, constants - slopes @ scaling.means

    def in_model_units(self) -> tuple[Matrix, Vector]:
        """Coefficients `[score, output]` and constants of the scores, for scaled numbers.

        Raises:
            ConfigError: The model has no coefficients.
        """
        if not isinstance(self.model, HasCoefficients):
            raise ConfigError(
                f"a {self.model.name} model is not linear in its features, so it has no "
                "coefficients; its parameters are in the npz file of oneway peer export"
            )
        return self.model.coefficients(self.params)
