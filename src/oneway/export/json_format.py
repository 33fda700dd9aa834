"""JSON of a model: for people, for other programs, and to read back."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any, TypeVar, overload

import msgspec
import numpy as np

from oneway.errors import DataError, OnewayError
from oneway.export.fitted import FittedModel, Predictor
from oneway.export.personal import PersonalModel
from oneway.models import MODELS, Model, model_from
from oneway.personal.personal import EXPERTS
from oneway.records import Origin, Vector
from oneway.registry import require_allowed
from oneway.sentences import shown
from oneway.tables.cells import label_text
from oneway.tables.encoder import Encoder
from oneway.tables.features import Array, as_json, format_shape, make_feature

_FORMATS: dict[type[Predictor], str] = {
    FittedModel: "oneway model 1",
    PersonalModel: "oneway personal model 1",
}
_HOW = {
    "binary": "score = intercept + sum of coefficient x value; the second class is predicted from "
    "a score of 0 on",
    "classes": "score of a class = its intercept + sum of coefficient x value; the class with the "
    "highest score is predicted",
    "number": "prediction = intercept + sum of coefficient x value",
}
_PROBABILITY = {
    "binary": ", with the probability 1 / (1 + exp(-score))",
    "classes": ", with probabilities in proportion to exp(score)",
}
_VALUES = (
    ". Values are in the units of the data; true is 1 and false 0; a category is 1 in the column "
    "of its value. A missing number counts as its center, 0 if none is given, a missing boolean as "
    "0.5, a missing category or time as 0 in all of its columns; the column 'NAME missing', if "
    "there is one, is then 1, and else 0."
)
_PARAMETERS = "parameters are those of the model, for the columns scaled by the features, in order"
_MIXTURE = (
    "a mixture of three experts, believed as the weights say: the shared model, which has the "
    "parameters; one learned alone; one that adapts the shared score. docs/personal.md has the "
    "formulas; PersonalModel.load reads this file"
)


def to_json(exported: FittedModel | PersonalModel) -> bytes:
    """Return a model as JSON; every number reads back as the very same."""
    text = json.dumps(facts(exported), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def facts(exported: FittedModel | PersonalModel) -> dict[str, Any]:
    """Return what `to_json` writes, as a dictionary."""
    fitted = exported.shared if isinstance(exported, PersonalModel) else exported
    model, encoder = fitted.model, fitted.encoder
    result: dict[str, Any] = {
        "format": _FORMATS[type(exported)],
        "origin": dict(fitted.origin),
        "how": _PARAMETERS,
        **msgspec.structs.asdict(Description.of(encoder, model)),
        "columns": _columns(fitted),
        "parameters": fitted.params.tolist(),
    }
    if isinstance(exported, PersonalModel):  # coefficients of one of three experts would mislead
        weights = dict(zip(EXPERTS, exported.weights.tolist(), strict=True))
        memory = {name: it[0].tolist() for name, it in exported.memory.items()}
        return result | {"how": _MIXTURE, "weights": weights, "memory": memory}
    if model.coefficients(fitted.params) is not None:
        chance = _PROBABILITY.get(model.labels, "") if fitted.says_probabilities else ""
        result["how"] = _HOW[model.labels] + chance + _VALUES
        result["coefficients"] = {
            name if isinstance(name, str) else label_text(name): value
            for name, value in fitted.coefficients.items()
        }
    return result


def _columns(fitted: FittedModel) -> list[str]:
    """Return the names of the model inputs; an array is one if the model has no coefficients."""
    if fitted.model.coefficients(fitted.params) is not None:
        return list(fitted.outputs)
    named = [
        (f"{it.name} ({format_shape(it.shape)})", *it.outputs[math.prod(it.shape) :])
        if isinstance(it, Array)
        else it.outputs
        for it in fitted.encoder.features
    ]
    return [name for names in named for name in names]


class Description(msgspec.Struct):
    """A fitted model without parameters and origin, in terms JSON can hold."""

    label: str
    model: str
    classes: tuple[str, ...]
    features: list[dict[str, Any]]
    options: dict[str, Any]

    @classmethod
    def of(cls, encoder: Encoder, model: Model) -> Description:
        """Return the description of a model and its encoder."""
        features = [as_json(feature) for feature in encoder.features]
        return cls(encoder.label, model.name, encoder.classes, features, model.options())


class _File(Description):
    format: str
    parameters: list[float]
    origin: dict[str, Any]
    memory: dict[str, list[float]] = {}


_Kind = TypeVar("_Kind", bound=Predictor)


@overload
def from_json(content: bytes, where: str = ..., *, allow: Collection[str] = ...) -> FittedModel: ...


@overload
def from_json(
    content: bytes, where: str = ..., *, allow: Collection[str] = ..., kind: type[_Kind]
) -> _Kind: ...


def from_json(
    content: bytes,
    where: str = "the file",
    *,
    allow: Collection[str] = (),
    kind: type[Predictor] = FittedModel,
) -> Predictor:
    """Return the model that `to_json` wrote; it predicts the very same.

    Args:
        content: The content of the file.
        where: What errors call it.
        allow: Names of code, `package.module:function`, that it may name.
        kind: Which kind of model it must be.

    Raises:
        DataError: It is not such a file, or it was changed.
        ConfigError: Its model is not registered here, or it names code that is not allowed.
    """
    try:
        read = msgspec.json.decode(content, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(
            f"{where} is not a model that oneway has exported as JSON: {error}; export it again"
        ) from None
    if read.format != _FORMATS[kind]:
        readers = {name: f"{it.__name__}.load" for it, name in _FORMATS.items()}
        remedy = readers.get(read.format, "the release that wrote it")
        raise DataError(
            f"{where} has the format {shown(read.format)}, and {shown(_FORMATS[kind])} is read "
            f"here; read it with {remedy}"
        )
    params: Vector = np.array(read.parameters, dtype=np.float64)
    shared = fitted_from(read, params, read.origin, where, allow)
    if kind is FittedModel:
        return shared
    memory = {name: np.array([row], np.float64) for name, row in read.memory.items()}
    try:
        return PersonalModel(shared.encoder, shared.model, shared.params, memory, shared.origin)
    except OnewayError as error:
        raise _changed(where, error) from None


def fitted_from(
    description: Description,
    params: Vector,
    origin: Origin,
    where: str = "the file",
    allow: Collection[str] = (),
) -> FittedModel:
    """Return the model of a description with these parameters.

    Raises:
        DataError: The description was changed.
        ConfigError: Its model is not registered here, or it names code that is not in `allow`.
    """
    require_allowed(description.options, where, allow)
    _ = MODELS[description.model]  # refuses a model that is not registered
    try:
        model = model_from(description.model, description.options)
        encoder = Encoder(
            tuple(make_feature(str(it.get("name", "")), it) for it in description.features),
            description.label,
            model.labels,
            description.classes,
            description.model,
        )
        return FittedModel(encoder, model, params, origin)
    except (OnewayError, msgspec.MsgspecError, TypeError) as error:
        raise _changed(where, error) from None


def _changed(where: str, error: Exception) -> DataError:
    return DataError(f"{where} was changed after it was written ({error})")
