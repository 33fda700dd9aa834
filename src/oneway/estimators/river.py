"""river estimators: a running peer as a classifier or a regressor."""

from __future__ import annotations

from typing import Any

from river import base

from oneway.errors import ConfigError
from oneway.peer.peer import Peer


class RiverClassifier(base.Classifier):  # type: ignore[misc, unused-ignore]
    """A running peer as a classifier of river.

    Features, their scaling and the classes are those of the peer's task. A clone has the same peer.

    Args:
        peer: A peer that runs: `with ow.Peer(folder) as peer`.

    Raises:
        ConfigError: The task of the peer predicts numbers.
    """

    def __init__(self, peer: Peer) -> None:
        _check_task(peer, classifies=True)
        self.peer = peer

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn from a sample.

        Raises:
            DataError: The peer cannot learn from it; nothing has changed.
        """
        self.peer.learn_one(x, y)

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """Return the predicted class."""
        return self.peer.predict_one(x)

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each class."""
        return dict(self.peer.predict_proba_one(x))


class RiverRegressor(base.Regressor):  # type: ignore[misc, unused-ignore]
    """A running peer as a regressor of river; see `RiverClassifier`.

    Raises:
        ConfigError: The task of the peer predicts classes.
    """

    def __init__(self, peer: Peer) -> None:
        _check_task(peer, classifies=False)
        self.peer = peer

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn from a sample.

        Raises:
            DataError: The peer cannot learn from it; nothing has changed.
        """
        self.peer.learn_one(x, y)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Return the predicted number."""
        return float(self.peer.predict_one(x))


def _check_task(peer: Peer, *, classifies: bool) -> None:
    if peer.task.classifies != classifies:
        kind = "RiverClassifier" if peer.task.classifies else "RiverRegressor"
        raise ConfigError(
            f"the peer's task learns a {peer.task.model} model; use {kind}(peer) for it"
        )
