"""Personal model: what a node predicts with, one row of `oneway.personal`, for raw rows.

It is made of the node's raw samples, without noise: epsilon covers the shared model only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from oneway.errors import ConfigError
from oneway.export.fitted import FittedModel, Predictor
from oneway.models import Model, Torch
from oneway.personal import Forecast, Personal, link_of
from oneway.personal.experts import NORMS, PARAMS, LinearExperts
from oneway.personal.links import LinearLink
from oneway.personal.personal import scores_of
from oneway.records import Matrix, Origin, Vector
from oneway.tables.encoder import Encoder

NETWORK = "network"
"""In the memory, the parameters `[1, dim]` of a PyTorch module that is learned alone."""


@dataclass(frozen=True, eq=False, repr=False)
class PersonalModel(Predictor):
    """The mixture of a node at one moment, for rows in the units of the data.

    Attributes:
        encoder: From raw cells to the inputs of the model, and back.
        model: The model that is shared.
        params: Its parameters at this node; not to be changed.
        memory: Of `oneway.personal`, with one row. A PyTorch module that is learned alone has its
            parameters there, as `NETWORK`; without them it has no answer, so no weight.
        origin: Where it comes from, in terms JSON can hold: peer, samples, task.

    Raises:
        ConfigError: The model has no personal predictions, or parameters or memory are not those of
            this encoder and model.
    """

    encoder: Encoder
    model: Model
    params: Vector
    memory: Mapping[str, Matrix]
    origin: Origin = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self.shared
        wanted = {name: it.shape for name, it in self.personal.begin(1).items()}
        if isinstance(self.model, Torch) and NETWORK in self.memory:
            wanted[NETWORK] = (1, len(self.params))
        found = {name: it.shape for name, it in self.memory.items()}
        if found != wanted:
            raise ConfigError(
                f"the memory of personal predictions of {self.model.name} on {self.encoder.width} "
                f"columns has {_shapes(wanted)}, and {_shapes(found)} is given; give the memory "
                "that was learned from these features"
            )

    @cached_property
    def shared(self) -> FittedModel:
        """The shared model alone."""
        return FittedModel(self.encoder, self.model, self.params, self.origin)

    @cached_property
    def personal(self) -> Personal:
        """The experts, and how they are mixed."""
        if isinstance(self.model, Torch):
            return _of_module(self.model, self.memory)
        return Personal.of(self.model, self.encoder.width, np.zeros_like(self.params))

    @cached_property
    def weights(self) -> Vector:
        """How much the mixture believes each expert: shared, alone, adapted."""
        weights: Vector = self.personal.weights(self.memory)[0]
        return weights

    @property
    def says_probabilities(self) -> bool:
        """Whether `predict_proba_one` has an answer."""
        return self.personal.has_probabilities

    def forecast(self, features: Vector) -> Forecast:
        """Return what mixture and experts say about a row of model inputs."""
        rows = features[None, :]
        given = [scores_of(self.model, self.params[None, :], rows)]
        if self.personal.network_alone:
            network = self.memory.get(NETWORK)
            given.append(
                np.full_like(given[0], np.nan)
                if network is None
                else scores_of(self.model, network, rows)
            )
        return self.personal.predict(self.memory, np.stack(given, axis=1), rows)

    def _predict(self, inputs: Vector) -> float:
        answer = self.forecast(inputs).answer[0]
        if self.personal.has_probabilities:
            # As models do: of two equally probable classes the second, of several the first.
            is_binary = self.model.labels == "binary"
            return int(answer[1] >= answer[0] if is_binary else answer.argmax())
        link = self.personal.link
        assert isinstance(link, LinearLink)
        value = float(link.model.predictions_from(answer).predicted[0])
        return int(value > 0) if self.model.classifies else value

    def _chances(self, inputs: Vector) -> Vector:
        chances: Vector = self.forecast(inputs).answer[0]
        return chances


def _of_module(model: Model, memory: Mapping[str, Matrix]) -> Personal:
    """Return the experts of a PyTorch module: heads on its outputs, of as many features as fit."""
    link = link_of(model)
    kinds = memory[NORMS].shape[-1] if NORMS in memory else 1
    inputs = memory[PARAMS].shape[-1] // (2 * kinds * link.width) if PARAMS in memory else 2
    start = np.zeros(link.width)
    if kinds == 1:
        head = LinearExperts(link, max(0, inputs - 2), ("adapted",), start)
        return Personal(link, head, network_alone=True, has_alone=NETWORK in memory)
    return Personal(link, LinearExperts(link, max(0, inputs - 2), ("alone", "adapted"), start))


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "nothing"
