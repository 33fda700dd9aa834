"""river estimators: a peer, or a simulated network of nodes, that learns one sample at a time."""

from __future__ import annotations

import math
from typing import Any

from river import base

from oneway.errors import ConfigError
from oneway.estimators.growing import GrowingNetwork
from oneway.estimators.network import learning_of
from oneway.estimators.running_scale import RunningScale
from oneway.files.typed_values import whole_number
from oneway.models import HasProbabilities
from oneway.peer.peer import Peer


class _RiverLearner(base.Estimator):  # type: ignore[misc, unused-ignore]
    """What classifier and regressor have in common; see `RiverClassifier`."""

    _model = ""

    def __init__(
        self,
        peer: Peer | None = None,
        nodes: int = 1,
        graph: Any = "random",
        method: str = "relay",
        learning_rate: Any = None,
        l2: float = 1e-4,
        seed: int = 0,
    ) -> None:
        self.peer = peer
        self.nodes = nodes
        self.graph = graph
        self.method = method
        self.learning_rate = learning_rate
        self.l2 = l2
        self.seed = seed
        self._network: GrowingNetwork | None = None

    def _growing(self) -> GrowingNetwork:
        if self._network is None:
            told = {"learning_rate": self.learning_rate, "l2": float(self.l2)}
            learning = learning_of(
                self._model, epsilon=None, method=self.method, samples_per_push=1, **told
            )
            nodes = whole_number("nodes", self.nodes, 1, ConfigError)
            self._network = GrowingNetwork(learning, self.graph, nodes, self.seed)
        return self._network


class RiverClassifier(_RiverLearner, base.Classifier):  # type: ignore[misc, unused-ignore]
    """A classifier of river: a running peer, or a network that is simulated in this process.

    In a network samples go to the nodes in turn. A sample is predicted by the node that will learn
    from it, so that progressive validation measures what the nodes of a real network would suffer;
    between two samples models travel along the graph. One node learns alone.

    Features are standardised as they come. One that appears later starts at 0 in all models; where
    it is missing, it has its mean. Classes may appear later, too. With a peer, features, scales and
    classes are those of its task.

    Attributes:
        peer: A peer that runs (`with ow.Peer(folder) as peer`), which a clone shares; None for a
            network, which all that follows is about.
        nodes: How many nodes a generated graph has.
        graph: A kind of graph ("random", "ring", ...) or a `TrustGraph`.
        method: How nodes learn together ("relay", "ops", "pull", ...).
        learning_rate: As in a task; None for the default there.
        l2: How strongly parameters are pulled towards 0.
        seed: Of the graph and all else at random.

    >>> from river import datasets, evaluate, metrics
    >>> data = datasets.Phishing()
    >>> evaluate.progressive_val_score(data, RiverClassifier(), metrics.Accuracy()).get() > 0.85
    True
    """

    _model = "softmax"

    def __init__(
        self,
        peer: Peer | None = None,
        nodes: int = 1,
        graph: Any = "random",
        method: str = "relay",
        learning_rate: Any = None,
        l2: float = 1e-4,
        seed: int = 0,
    ) -> None:
        super().__init__(peer, nodes, graph, method, learning_rate, l2, seed)
        self._classes: dict[Any, int] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn from a sample.

        Raises:
            DataError: It cannot be used; nothing has changed.
        """
        if self.peer is not None:
            self.peer.learn_one(x, y)
            return
        code = self._classes.get(y, len(self._classes))
        self._growing().learn(x, float(code), max(2, len(self._classes), code + 1))
        self._classes.setdefault(y, code)

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """How probable each class is; empty before the first sample of a network."""
        if self.peer is not None:
            return dict(self.peer.predict_proba_one(x))
        if not self._classes:
            return {}
        growing = self._growing()
        assert growing.network is not None
        model = growing.network.model
        assert isinstance(model, HasProbabilities)
        shares = model.probabilities(growing.params, growing.encoded(x))[0].tolist()
        known = {label: shares[code] for label, code in self._classes.items()}
        # While there is one class, the other one has no name.
        total = math.fsum(known.values())
        return {label: share / total for label, share in known.items()}

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """The class expected; None before the first sample of a network."""
        if self.peer is not None:
            return self.peer.predict_one(x)
        return super().predict_one(x)


class RiverRegressor(_RiverLearner, base.Regressor):  # type: ignore[misc, unused-ignore]
    """A regressor of river: a running peer, or a network that is simulated in this process.

    Labels are standardised as they come, too; predictions are in their units. All else is as with
    `RiverClassifier`.

    >>> from river import datasets, evaluate, metrics
    >>> data = datasets.TrumpApproval()
    >>> evaluate.progressive_val_score(data, RiverRegressor(), metrics.MAE()).get() < 2
    True
    """

    _model = "ridge"

    def __init__(
        self,
        peer: Peer | None = None,
        nodes: int = 1,
        graph: Any = "random",
        method: str = "relay",
        learning_rate: Any = None,
        l2: float = 1e-4,
        seed: int = 0,
    ) -> None:
        super().__init__(peer, nodes, graph, method, learning_rate, l2, seed)
        self._labels = RunningScale.blank(1)

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn from a sample.

        Raises:
            DataError: It cannot be used; nothing has changed.
        """
        if self.peer is not None:
            self.peer.learn_one(x, y)
            return
        labels = self._labels.seen([[y]])
        self._growing().learn(x, float(labels.apply([[y]])[0, 0]))
        self._labels = labels

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The number expected; 0 before the first sample of a network."""
        if self.peer is not None:
            return float(self.peer.predict_one(x))
        growing = self._growing()
        if growing.network is None:
            return 0.0
        features = growing.encoded(x)
        standard = float(growing.network.model.predict(growing.params, features)[0])
        return standard * float(self._labels.scales[0]) + float(self._labels.means[0])
