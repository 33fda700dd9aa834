"""Models to take home, for tests: every kind of model on the same columns."""

from __future__ import annotations

import numpy as np

from oneway.export import FittedModel
from oneway.models import Hinge, LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.models.base import Model
from oneway.tables import Encoder, Feature

FEATURES = (Feature("age", 40.0, 12.5), Feature("pressure", -3.0, 0.25), Feature("plain"))
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


class Squared(RidgeRegression):
    """Predicts the square of its score, which no graph here can do."""

    name = "squared"

    def predict(self, params, features):
        return self.scores(params, features) ** 2
