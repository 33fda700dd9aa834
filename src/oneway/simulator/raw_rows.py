"""From a simulated model back to raw rows: how a stream's rows were encoded, and its classes."""

from __future__ import annotations

import numpy as np

from oneway.errors import ConfigError
from oneway.models import MODELS, HasCoefficients, HasProbabilities, Model
from oneway.streams import Stream
from oneway.tables.encoder import Encoder, Feature


def encoder_of(stream: Stream, model: Model) -> Encoder:
    """How rows were encoded; for arrays, as they are, under plain names."""
    known = stream.encoder
    if isinstance(known, Encoder) and known.kind == model.labels:
        return known
    features = tuple(Feature(f"feature {index + 1}") for index in range(stream.dim))
    label = "label"
    if isinstance(known, Encoder):  # numbers are learned from what the table takes for classes
        features, label = known.features, known.label
    return Encoder(features, label, model.labels, _class_codes(stream, model), model.name)


def is_registered(model: Model) -> bool:
    """Whether its name and options make a model of its class again, a subclass included.

    A subclass of somebody's own, under the name it inherits, is another model.
    """
    name = getattr(model, "name", "")
    if name not in MODELS or not isinstance(model, MODELS[name]):
        return False
    kind = MODELS[name]
    try:  # Torch makes a TorchClassifier where the loss is that of probabilities.
        return type(model) is kind or type(kind(**model.options())) is type(model)
    except (TypeError, ConfigError):
        return False


def num_classes(model: Model, stream: Stream) -> int:
    """Return how many classes there are; 0 where numbers are learned."""
    return len(_class_codes(stream, model))


def _class_codes(stream: Stream, model: Model) -> tuple[str, ...]:
    """What models call their classes."""
    if model.labels == "number":
        return ()
    if model.labels == "binary":
        return ("-1", "1")
    most = int(stream.labels.max()) + 1
    if isinstance(model, HasCoefficients):
        most = len(model.coefficients(model.init(stream.dim, np.random.default_rng(0)))[1])
    elif isinstance(model, HasProbabilities):
        start = model.init(stream.dim, np.random.default_rng(0))
        most = model.probabilities(start, stream.features[:1]).shape[1]
    return tuple(map(str, range(most)))
