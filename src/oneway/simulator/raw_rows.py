"""From a simulated model back to raw rows: how a stream's rows were encoded, and its classes."""

from __future__ import annotations

import numpy as np

from oneway.models import MODELS, Model, options_of
from oneway.streams import Stream
from oneway.tables.encoder import Encoder
from oneway.tables.features import Number


def encoder_of(stream: Stream, model: Model) -> Encoder:
    """How rows were encoded; for arrays, as they are, under plain names."""
    known = stream.encoder
    if isinstance(known, Encoder) and known.kind == model.labels:
        return known
    classes = _class_codes(stream, model)
    if isinstance(known, Encoder):  # numbers are learned from what the table takes for classes
        return Encoder(known.features, known.label, model.labels, classes, model.name)
    features = tuple(Number(f"feature {index + 1}") for index in range(stream.dim))
    return Encoder(features, "label", model.labels, classes, model.name)


def is_registered(model: Model) -> bool:
    """Whether its name and options make a model of its class again, a subclass included.

    A subclass of somebody's own, under the name it inherits, is another model.
    """
    name = getattr(model, "name", "")
    if name not in MODELS:
        return False
    if type(model) is MODELS[name]:
        return True
    inner = getattr(model, "inner", None)
    standardises_itself = "scale" in options_of(MODELS[name])
    return type(inner) is MODELS[name] and not standardises_itself


def num_classes(model: Model, stream: Stream) -> int:
    """Return how many classes there are; 0 where numbers are learned."""
    return len(_class_codes(stream, model))


def _class_codes(stream: Stream, model: Model) -> tuple[str, ...]:
    """What models call their classes."""
    if model.labels == "number":
        return ()
    if model.labels == "binary":
        return ("-1", "1")
    start = model.init(stream.dim, np.random.default_rng(0))
    chances = model.probabilities(start, stream.features[:1])
    linear = model.coefficients(start)
    most = int(stream.labels.max()) + 1
    if linear is not None:
        most = len(linear[1])
    elif chances is not None:
        most = chances.shape[1]
    return tuple(map(str, range(most)))
