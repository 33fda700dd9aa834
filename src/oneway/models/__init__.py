"""What is learned: convex losses with an l2 term, or any PyTorch module.

One interface for one model and for one per node.

>>> import numpy as np
>>> from oneway.records import Batch
>>> model = LogisticRegression(l2=0.0)
>>> batch = Batch(np.array([[2.0], [-1.0]]), np.array([1.0, -1.0]))
>>> model.gradient(np.zeros(model.dim(1)), batch)
array([-0.75,  0.  ])
"""

from oneway.models.base import (
    MODELS,
    LabelKind,
    LearningPass,
    Model,
    Predictions,
    typical_curvature,
    typical_sample,
)
from oneway.models.linear import Hinge, LinearModel, LogisticRegression, RidgeRegression
from oneway.models.softmax import SoftmaxRegression
from oneway.models.standardised import model_from, options_of, standardised
from oneway.models.torch import Torch

for _model in (LogisticRegression, Hinge, SoftmaxRegression, RidgeRegression, Torch):
    MODELS.register(_model)

__all__ = [
    "MODELS",
    "Hinge",
    "LabelKind",
    "LearningPass",
    "LinearModel",
    "LogisticRegression",
    "Model",
    "Predictions",
    "RidgeRegression",
    "SoftmaxRegression",
    "Torch",
    "model_from",
    "options_of",
    "standardised",
    "typical_curvature",
    "typical_sample",
]
