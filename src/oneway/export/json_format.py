"""JSON of a fitted model: for people to read, for programs to take as it is, and to read back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from typing import Any

import msgspec
import numpy as np

from oneway.errors import DataError, OnewayError
from oneway.export.fitted import FittedModel
from oneway.models import MODELS, HasCoefficients, Model
from oneway.records import Origin, Vector
from oneway.sentences import shown
from oneway.tables.cells import label_text
from oneway.tables.encoder import Encoder
from oneway.tables.features import Feature
from oneway.tables.names import spelled

VERSION = 1
_HOW = {
    "binary": "score = intercept + sum of coefficient x value, in the units of the data; the "
    "second class is predicted from a score of 0 on",
    "classes": "score of a class = its intercept + sum of coefficient x value, in the units of the "
    "data; the class with the highest score is predicted",
    "number": "prediction = intercept + sum of coefficient x value, in the units of the data",
}
_PROBABILITY = {
    "binary": ", with the probability 1 / (1 + exp(-score))",
    "classes": ", with probabilities in proportion to exp(score)",
}


def to_json(fitted: FittedModel) -> bytes:
    """Return what is known about a model; every number reads back as the very same."""
    text = json.dumps(facts(fitted), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def facts(fitted: FittedModel) -> dict[str, Any]:
    """Return what `to_json` writes; without coefficients where the model has none."""
    model, encoder = fitted.model, fitted.encoder
    told: dict[str, Any] = {
        "format": f"oneway model {VERSION}",
        "label": encoder.label,
        "model": model.name,
        "classes": list(encoder.classes),
        "origin": dict(fitted.origin),
    }
    if isinstance(model, HasCoefficients):
        said = _PROBABILITY.get(model.labels, "") if fitted.says_probabilities else ""
        told["how"] = _HOW[model.labels] + said
        told["coefficients"] = {
            name if isinstance(name, str) else label_text(name): value
            for name, value in fitted.coefficients.items()
        }
    return told | {
        "features": [_told(feature) for feature in encoder.features],
        "columns": columns(fitted),
        "parameters": {
            "of": "the model, which sees the columns scaled as the features say, in this order",
            "options": model.options(),
            "values": fitted.params.tolist(),
        },
    }


def columns(fitted: FittedModel) -> list[str]:
    """The columns that the model sees, by name; an array is one if none has a coefficient."""
    if isinstance(fitted.model, HasCoefficients):
        return list(fitted.outputs)
    named = [
        (f"{it.name} ({spelled(it.shape)})", *it.outputs[math.prod(it.shape) :])
        if it.shape
        else it.outputs
        for it in fitted.encoder.features
    ]
    return [name for names in named for name in names]


def _told(feature: Feature) -> dict[str, Any]:
    """The name of a feature, what it is, and what is not as usual about it."""
    usual = {it.name: it.default for it in fields(feature)}
    told = asdict(feature)
    return {
        name: told[name] for name in told if name in ("name", "kind") or told[name] != usual[name]
    }


class _Parameters(msgspec.Struct):
    options: dict[str, Any]
    values: list[float]


class _Told(msgspec.Struct):
    format: str
    label: str
    model: str
    classes: tuple[str, ...]
    features: list[dict[str, Any]]
    parameters: _Parameters
    origin: dict[str, Any]


def from_json(content: bytes, where: str = "the file") -> FittedModel:
    """Return the model that `to_json` wrote: its parameters are the very same numbers.

    Args:
        content: What it wrote.
        where: What errors call it.

    Raises:
        DataError: It is not such a file, or a part of it is not as it was written.
        ConfigError: It is of a model that is not registered here.
    """
    try:
        told = msgspec.json.decode(content, type=_Told)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(
            f"{where} is not a model that oneway has exported as JSON: {error}; export it again"
        ) from None
    if told.format != f"oneway model {VERSION}":
        raise DataError(
            f"{where} has the format {shown(told.format)}, and this oneway reads 'oneway model "
            f"{VERSION}'; read it with the release that wrote it"
        )
    values: Vector = np.array(told.parameters.values, dtype=np.float64)
    description = Description(
        told.label, told.model, told.classes, told.features, told.parameters.options
    )
    return fitted_from(description, values, told.origin, where)


class Description(msgspec.Struct):
    """All that a fitted model is but its parameters and its origin, in terms JSON can hold."""

    label: str
    model: str
    classes: tuple[str, ...]
    features: list[dict[str, Any]]
    options: dict[str, Any]

    @classmethod
    def of(cls, encoder: Encoder, model: Model) -> Description:
        """Describe a model, and how rows are encoded for it."""
        features = [_told(feature) for feature in encoder.features]
        return cls(encoder.label, model.name, encoder.classes, features, model.options())


def fitted_from(
    description: Description, params: Vector, origin: Origin, where: str = "the file"
) -> FittedModel:
    """Return the model of a description with these parameters.

    Raises:
        DataError: A part of the description is not as it was written.
        ConfigError: It is of a model that is not registered here.
    """
    kind = MODELS[description.model]
    try:
        model = kind(**description.options)
        encoder = msgspec.convert(
            {
                "features": description.features,
                "label": description.label,
                "kind": model.labels,
                "classes": description.classes,
                "model": description.model,
            },
            Encoder,
        )
        return FittedModel(encoder, model, params, origin)
    except (OnewayError, msgspec.MsgspecError, TypeError) as error:
        raise DataError(f"{where} was changed after it was written ({error})") from None
