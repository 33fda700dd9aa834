"""What the application beside a peer may ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.task.task import Task


class LocalPeer(Protocol):
    """A peer as its own application sees it; nothing here waits for the network."""

    @property
    def task(self) -> Task:
        """What is learned."""
        ...

    def predict_one(self, x: Mapping[str, object]) -> object:
        """Return the label expected for a sample: one of the task's classes, or a number.

        Raises:
            DataError: The sample lacks a feature or has one that is no number.
        """
        ...

    def predict_proba_one(self, x: Mapping[str, object]) -> dict[str, float]:
        """Return how probable each class is.

        Raises:
            DataError: As `predict_one`.
            ConfigError: The task's model does not say how probable a class is.
        """
        ...

    def learn_one(self, x: Mapping[str, object], y: object) -> float:
        """Learn from a sample and return the loss suffered before.

        Raises:
            DataError: The sample cannot be learned from.
        """
        ...

    def status(self) -> Status:
        """Return what the peer says about itself at this moment."""
        ...

    def curve(self) -> Curve:
        """Return how the loss went until now."""
        ...
