"""river estimators: a running peer as a classifier or a regressor."""

from __future__ import annotations

from typing import Any

from river import base

from oneway.errors import ConfigError
from oneway.peer.peer import Peer


class _Learner:
    def __init__(self, peer: Peer) -> None:
        kind = RiverClassifier if peer.task.classifies else RiverRegressor
        if not isinstance(self, kind):
            raise ConfigError(
                f"the peer's task learns a {peer.task.model} model; use {kind.__name__}(peer) for "
                "it"
            )
        self.peer = peer

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn from a sample; if the peer cannot, a `DataError`, and nothing has changed."""
        self.peer.learn_one(x, y)

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """Return the predicted class or number."""
        return self.peer.predict_one(x)


class RiverClassifier(_Learner, base.Classifier):  # type: ignore[misc, unused-ignore]
    """A running peer as a classifier of river.

    Features, their scaling and the classes are those of the peer's task. A clone has the same peer.

    Args:
        peer: A peer that runs: `with ow.Peer(folder) as peer`.

    Raises:
        ConfigError: The task of the peer predicts numbers.
    """

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each class."""
        return dict(self.peer.predict_proba_one(x))


class RiverRegressor(_Learner, base.Regressor):  # type: ignore[misc, unused-ignore]
    """A running peer as a regressor of river; see `RiverClassifier`."""
