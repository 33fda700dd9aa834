"""Personal model: what a node predicts with, one row of `oneway.personal`, for raw rows.

It is made of the node's raw samples, without noise: epsilon covers the shared model only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from oneway.errors import ConfigError
from oneway.export.fitted import FittedModel, read_file
from oneway.models import Model, Torch
from oneway.personal import Forecast, Personal, link_of
from oneway.personal.experts import NORMS, PARAMS, LinearExperts
from oneway.personal.links import LinearLink
from oneway.personal.personal import scores_of
from oneway.records import Matrix, Origin, Vector
from oneway.tables.encoder import Encoder
from oneway.tables.labels import ClassName

NETWORK = "network"
"""In the memory, the parameters `[1, dim]` of a PyTorch module that is learned alone."""


@dataclass(frozen=True, eq=False, repr=False)
class PersonalModel:
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

    def __repr__(self) -> str:
        return (
            f"<PersonalModel: {self.model.name}, {self.encoder.label} from "
            f"{len(self.encoder.names)} features>"
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
    def classes(self) -> tuple[ClassName, ...]:
        """The classes in order; none for numbers."""
        return self.shared.classes

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

    def predict_one(self, x: Mapping[str, object]) -> ClassName | float:
        """Return the predicted label of a raw row: a class, True or False, or a number.

        Raises:
            DataError: The row lacks a feature or has one that is no number.
        """
        answer = self.forecast(self.encoder.vector(x)).answer[0]
        if self.personal.has_probabilities:
            # As models do: of two equally probable classes the second, of several the first.
            is_binary = self.model.labels == "binary"
            return self.classes[int(answer[1] >= answer[0] if is_binary else answer.argmax())]
        link = self.personal.link
        assert isinstance(link, LinearLink)
        value = float(link.model.answers_to(answer).predicted[0])
        return self.classes[int(value > 0)] if self.model.classifies else value

    def predict_proba_one(self, x: Mapping[str, object]) -> dict[ClassName, float]:
        """Return the probability of each class for a raw row.

        Raises:
            DataError: As `predict_one`.
            ConfigError: The model has no probabilities.
        """
        if not self.says_probabilities:
            return self.shared.predict_proba_one(x)  # which refuses
        answer = self.forecast(self.encoder.vector(x)).answer[0]
        return dict(zip(self.classes, answer.tolist(), strict=True))

    def predict_many(self, rows: Iterable[Mapping[str, object]]) -> list[ClassName | float]:
        """Return `predict_one` of each of several raw rows."""
        return [self.predict_one(row) for row in rows]

    def save(self, path: Path | str, format: str = "", *, force: bool = False) -> Path:  # noqa: A002
        """Write the model into a file, in the format of its ending; see `formats.save`.

        Raises:
            ConfigError: The format is unknown, the model has no such form, or the file exists or
                cannot be written.
            MissingExtraError: The format needs a package that is not installed.
        """
        from oneway.export.formats import save

        return save(self, path, format, force=force)

    @staticmethod
    def load(path: Path | str, *, allow: Collection[str] = ()) -> PersonalModel:
        """Return the model that `save` wrote as JSON; it predicts the very same.

        Args:
            path: The file.
            allow: Names of code, `package.module:function`, that the file may name.

        Raises:
            DataError: The file cannot be read, or is not such a model.
            ConfigError: Its model is not registered here, or it names code that is not allowed.
        """
        from oneway.export.json_format import personal_from_json

        return personal_from_json(read_file(path), str(path), allow=allow)


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
