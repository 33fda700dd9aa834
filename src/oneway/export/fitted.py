"""Fitted model: encoder, model and parameters together, a pure value that predicts raw rows.

Every prediction of a peer, its API, its page, its store, a run or an exported JSON file is made
here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from oneway.errors import ConfigError, DataError
from oneway.files.atomic import write_atomically
from oneway.models import Model
from oneway.records import Matrix, Origin, Vector
from oneway.tables.cells import label_text
from oneway.tables.encoder import ClassName, Encoder, class_names

INTERCEPT = "(intercept)"
"""The name of the constant of a score among the coefficients, as in R."""


class Predictor(ABC):
    """A model for rows in the units of the data, shared or personal.

    Attributes:
        encoder: From raw cells to the inputs of the model, and back.
        model: The model.
    """

    encoder: Encoder
    model: Model

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {self.model.name}, {self.encoder.label} from "
            f"{len(self.encoder.names)} features>"
        )

    @property
    def classes(self) -> tuple[ClassName, ...]:
        """The classes in order; none for numbers."""
        return class_names(self.encoder.classes)

    @property
    @abstractmethod
    def says_probabilities(self) -> bool:
        """Whether `predict_proba_one` has an answer."""

    @abstractmethod
    def _predict(self, inputs: Vector) -> float:
        """Return the place of the predicted class, or the predicted number."""

    @abstractmethod
    def _chances(self, inputs: Vector) -> Vector:
        """Return the probability of each class."""

    def predict_one(self, x: Mapping[str, object]) -> ClassName | float:
        """Return the predicted label of a raw row: a class, True or False, or a number.

        Raises:
            DataError: The row lacks a feature or has one that is no number.
        """
        predicted = self._predict(self.encoder.vector(x))
        return self.classes[int(predicted)] if self.model.classifies else predicted

    def predict_many(self, rows: Iterable[Mapping[str, object]]) -> list[ClassName | float]:
        """Return `predict_one` of each of several raw rows."""
        return [self.predict_one(row) for row in rows]

    def predict_proba_one(self, x: Mapping[str, object]) -> dict[ClassName, float]:
        """Return the probability of each class for a raw row.

        Raises:
            DataError: As `predict_one`.
            ConfigError: The model has no probabilities.
        """
        if not self.says_probabilities:
            raise ConfigError(
                f"a {self.model.name} model has no probabilities; use predict_one, or a logistic "
                "or softmax model"
            )
        return dict(zip(self.classes, self._chances(self.encoder.vector(x)).tolist(), strict=True))

    def answer(self, x: Mapping[str, object]) -> dict[str, Any]:
        """Return prediction and probabilities of a raw row in terms JSON can hold.

        Raises:
            DataError: As `predict_one`.
        """
        result: dict[str, Any] = {"prediction": self.predict_one(x)}
        if self.says_probabilities:
            shares = self.predict_proba_one(x).items()
            result["probabilities"] = {label_text(name): share for name, share in shares}
        return result

    def save(self, path: Path | str, format: str = "", *, force: bool = False) -> Path:  # noqa: A002
        """Write the model into a file, whole or not at all.

        Args:
            path: The file.
            format: A name in `FORMATS`; by default the one that suits the file's ending.
            force: Whether to replace an existing file.

        Raises:
            ConfigError: The format is unknown, the model has no such form, or the file exists or
                cannot be written.
            MissingExtraError: The format needs a package that is not installed.
        """
        from oneway.export.formats import format_of

        target = Path(path)
        chosen = format_of(target, format)
        if target.is_dir():
            raise ConfigError(f"{target} is a folder; name a file in it")
        if not force and (target.exists() or target.is_symlink()):
            raise ConfigError(
                f"{target} exists and is not overwritten; give another name, or force=True to "
                "replace it"
            )
        content = chosen.write(self)
        try:
            write_atomically(target, content)
        except OSError as error:
            raise ConfigError(
                f"cannot write {target}: {error.strerror}; choose another file"
            ) from error
        return target

    @classmethod
    def load(cls, path: Path | str, *, allow: Collection[str] = ()) -> Self:
        """Return the model that `save` wrote as JSON; it predicts the very same.

        Args:
            path: The file.
            allow: Names of code, `package.module:function`, that the file may name.

        Raises:
            DataError: The file cannot be read, or is not such a model.
            ConfigError: Its model is not registered here, or it names code that is not allowed.
        """
        from oneway.export.json_format import from_json

        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None
        return from_json(content, str(path), allow=allow, kind=cls)


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel(Predictor):
    """A model at one moment, for rows in the units of the data.

    Attributes:
        encoder: From raw cells to the inputs of the model, and back.
        model: The model.
        params: Its parameters; not to be changed.
        origin: Where it comes from, in terms JSON can hold: peer, samples, task, privacy.

    Raises:
        ConfigError: The number of parameters does not suit the encoder and the model.

    >>> import numpy as np
    >>> from oneway.models import RidgeRegression
    >>> from oneway.tables import Number
    >>> encoder = Encoder((Number("size", center=50, scale=10),), "price", "number")
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

    @property
    def outputs(self) -> Sequence[str]:
        """The names of the model inputs, in the order of its parameters."""
        return self.encoder.outputs

    @property
    def says_probabilities(self) -> bool:
        """Whether `predict_proba_one` has an answer."""
        return self.model.says_probabilities

    @property
    def coefficients(self) -> dict[str, float] | dict[ClassName, dict[str, float]]:
        """The coefficients of the score by model input, and the intercept, in the data's units.

        A model with one score per class has them for every class. For two classes the score is
        that of the second against the first.

        Raises:
            ConfigError: The model has no coefficients, or a feature has the name of the intercept.
        """
        if INTERCEPT in self.outputs:
            raise ConfigError(
                f"a feature is called {INTERCEPT}, as the intercept is among the coefficients; "
                "rename the column"
            )
        factors, constants = self.in_model_units()
        means, scales = self.encoder.scaling
        slopes = factors / scales
        names = (INTERCEPT, *self.outputs)
        by_score = [
            dict(zip(names, (constant, *row), strict=True))
            for row, constant in zip(
                slopes.tolist(), (constants - slopes @ means).tolist(), strict=True
            )
        ]
        if self.model.labels != "classes":
            return by_score[0]
        return dict(zip(self.classes, by_score, strict=True))

    def in_model_units(self) -> tuple[Matrix, Vector]:
        """Coefficients `[score, output]` and constants of the scores, for scaled numbers.

        Raises:
            ConfigError: The model has no coefficients.
        """
        found = self.model.coefficients(self.params)
        if found is None:
            raise ConfigError(
                f"a {self.model.name} model is not linear in its features, so it has no "
                "coefficients; its parameters are in the JSON file of oneway peer export"
            )
        return found

    def _predict(self, inputs: Vector) -> float:
        value = float(self.model.predict(self.params, inputs[None, :])[0])
        if not self.model.classifies:
            return value
        return self.encoder.classes.index(self.encoder.label_name(value))

    def _chances(self, inputs: Vector) -> Vector:
        shares = self.model.probabilities(self.params, inputs[None, :])
        assert shares is not None
        own: Vector = shares[0]
        return own
