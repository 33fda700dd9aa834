"""Predictions of a peer, in Python: by its settled model, which can be taken home."""

from __future__ import annotations

from collections.abc import Mapping

from oneway.export import FittedModel
from oneway.peer.node import Node
from oneway.peer.offline import origin_of
from oneway.tables.labels import ClassName


class Predictions:
    """The part of a `Peer` that answers; it never waits for the network or the disk."""

    node: Node

    def model(self, *, momentary: bool = False, durable: bool = False) -> FittedModel:
        """The model to take home: it predicts raw rows, says its coefficients, can be saved.

        The settled one, the average of the last estimates: a live peer's estimate jumps.

        Args:
            momentary: Whether the estimate of this moment is wanted instead.
            durable: Whether it is to be handed out, so that only what is on the disk may be in it:
                the noise of a batch that a crash undoes is drawn again.
        """
        node = self.node
        with node.lock:
            params = node.estimate if momentary else node.settled
            samples = node.snapshot.journal.learned
            if durable:
                params, samples = node.durable_model(momentary=momentary)
        return self.node.learner.fitted(
            params, **origin_of(self.node.config.name, samples, momentary=momentary)
        )

    @property
    def coefficients(self) -> dict[str, float] | dict[ClassName, dict[str, float]]:
        """The settled model in the units of the data, by feature; see `FittedModel.coefficients`.

        Raises:
            ConfigError: The task's model has no coefficients.
        """
        return self.model().coefficients

    def predict_one(self, x: Mapping[str, object], *, momentary: bool = False) -> ClassName | float:
        """The label expected for a sample: a class, True or False, or a number; see `model`.

        Raises:
            DataError: The sample lacks a feature or has one that is no number.
        """
        return self.model(momentary=momentary).predict_one(x)

    def predict_proba_one(
        self, x: Mapping[str, object], *, momentary: bool = False
    ) -> dict[ClassName, float]:
        """How probable each class is.

        Raises:
            DataError: As `predict_one`.
            ConfigError: The task's model does not say how probable a class is.
        """
        return self.model(momentary=momentary).predict_proba_one(x)
