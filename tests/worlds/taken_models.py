"""Models to take home, for tests: every kind of model on the same columns."""

from __future__ import annotations

import numpy as np

from oneway.export import FittedModel, PersonalModel
from oneway.models import Hinge, LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.models.base import Model
from oneway.personal import Personal
from oneway.personal.personal import scores_of
from oneway.tables import Encoder, Number

FEATURES = (Number("age", 40.0, 12.5), Number("pressure", -3.0, 0.25), Number("plain"))
KINDS: list[tuple[Model, tuple[str, ...]]] = [
    (LogisticRegression(), ("ill", "well")),
    (LogisticRegression(intercept=False), ("ill", "well")),
    (Hinge(), ("ill", "well")),
    (RidgeRegression(), ()),
    (SoftmaxRegression(3), ("a", "b", "c")),
    (SoftmaxRegression(3, intercept=False), ("a", "b", "c")),
]


def fitted(model: Model, classes: tuple[str, ...], seed: int = 0) -> FittedModel:
    encoder = Encoder(FEATURES, "state", model.labels, classes, model.name)
    params = np.random.default_rng(seed).normal(size=model.dim(len(FEATURES)))
    return FittedModel(encoder, model, params)


def personal(shared: FittedModel, num_samples: int = 60, seed: int = 0) -> PersonalModel:
    """What a node that differs from the others predicts with, after so many samples."""
    model, width = shared.model, shared.encoder.width
    experts = Personal.of(model, width, np.zeros_like(shared.params))
    memory, rng = experts.begin(1), np.random.default_rng(seed)
    for _ in range(num_samples):
        features = rng.normal(size=(1, width))
        scores = scores_of(model, shared.params[None, :], features)
        forecast = experts.predict(memory, scores[:, None], features)
        own = 0.5 * scores[0, 0] + features[0, 0] + rng.normal()
        label = {
            "binary": 1.0 if own > 0 else -1.0,
            "classes": float(np.digitize(own, (-1.0, 1.0))),
            "number": getattr(model, "center", 0.0) + getattr(model, "scale", 1.0) * own,
        }[model.labels]
        memory, _ = experts.learn(memory, forecast, np.array([label]))
    return PersonalModel(shared.encoder, model, shared.params, memory, shared.origin)
