"""scikit-learn estimators: a simulated network of nodes, or one running peer, behind `fit`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from oneway.errors import ConfigError, DataError
from oneway.estimators import through_peer
from oneway.estimators.network import SimulatedNetwork, graph_of, learning_of
from oneway.estimators.running_scale import RunningScale
from oneway.files.typed_values import whole_number
from oneway.models import MODELS, HasProbabilities, SoftmaxRegression
from oneway.peer.peer import Peer
from oneway.records import Vector
from oneway.sentences import shown
from oneway.streams.arguments import as_floats


class _OnewayEstimator(BaseEstimator):  # type: ignore[misc]
    """What classifier and regressor have in common.

    A simulated network deals the rows to its nodes in turn, lets each learn from its own and send
    its model along one-way edges, and predicts with the average of all models, or one node's. With
    a peer, `fit` and `partial_fit` both learn through it, each row once: a peer has one life, and
    its store, its network and its promise of privacy stay as they are.

    Features are standardised by the rows seen so far, in a peer as its task says.

    Attributes:
        peer: A peer that runs (`with ow.Peer(folder) as peer`); None for a simulated network, which
            all that follows is about. Clones learn through the same peer.
        nodes: How many nodes a generated graph has.
        graph: A kind of graph ("random", "ring", ...) or a `TrustGraph`.
        method: How nodes learn together ("relay", "ops", "pull", "local", ...).
        model: What is learned, by name; None for the one that suits the labels.
        learning_rate: As in a task; None for the default there.
        step: The step rule, likewise.
        l2: How strongly parameters are pulled towards 0.
        intercept: Whether the model has a constant.
        samples_per_push: A push carries the steps of so many samples.
        epsilon: The differential privacy of every sample and pass; None for none.
        passes: How many times `fit` goes over the rows; `partial_fit` goes once.
        node: Whose model predicts; None for the average.
        random_state: Of the graph, the order of the rows and all else at random.
    """

    _learns_classes = False

    def __init__(
        self,
        peer: Peer | None = None,
        *,
        nodes: int = 20,
        graph: Any = "random",
        method: str = "relay",
        model: str | None = None,
        learning_rate: Any = None,
        step: str | None = None,
        l2: float = 1e-4,
        intercept: bool = True,
        samples_per_push: int = 1,
        epsilon: float | None = None,
        passes: int = 10,
        node: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.peer = peer
        self.nodes = nodes
        self.graph = graph
        self.method = method
        self.model = model
        self.learning_rate = learning_rate
        self.step = step
        self.l2 = l2
        self.intercept = intercept
        self.samples_per_push = samples_per_push
        self.epsilon = epsilon
        self.passes = passes
        self.node = node
        self.random_state = random_state

    def __sklearn_is_fitted__(self) -> bool:
        return self.peer is not None or hasattr(self, "network_")

    # The parts of `fit` and `partial_fit`.

    def _learn_through_peer(self, X: Any, y: Any) -> Self:
        assert self.peer is not None
        if self.peer.task.classifies != self._learns_classes:
            wanted = "OnewayClassifier" if self.peer.task.classifies else "OnewayRegressor"
            raise ConfigError(
                f"the peer's task learns a {self.peer.task.model} model, which {wanted} is for and "
                f"not {type(self).__name__}"
            )
        through_peer.learn_rows(self.peer, X, y)
        self.n_features_in_ = len(self.peer.task.encoder.names)
        return self

    def _begin(self, num_features: int, model: str, num_classes: int) -> None:
        """Start a network anew."""
        nodes = whole_number("nodes", self.nodes, 1, ConfigError)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        learning = learning_of(
            model,
            method=self.method,
            learning_rate=self.learning_rate,
            step=self.step,
            l2=float(self.l2),
            intercept=bool(self.intercept),
            samples_per_push=self.samples_per_push,
            epsilon=self.epsilon,
        )
        built = learning.model_for(num_classes)
        method = learning.build_method(built.dim(num_features))
        graph = graph_of(self.graph, nodes, seed)
        self.network_ = SimulatedNetwork(method, built, graph, num_features, seed)
        self._scale = RunningScale.blank(num_features)
        self._order = np.random.default_rng(seed)

    def _learn(self, X: Any, labels: Vector, passes: int) -> None:
        self._scale = self._scale.seen(X)
        features = self._scale.apply(X)
        for turn in range(passes):
            # What arrives by and by is learned in its order, what is there in any.
            order = np.arange(len(labels)) if turn == 0 else self._order.permutation(len(labels))
            self.network_.learn(features[order], labels[order])

    def _fit_order(self, X: Any, y: Any) -> tuple[Any, Any]:
        """The rows in a random order: those of a file are often sorted by their label."""
        order = self._order.permutation(len(y))
        return X[order], y[order]

    def _scaled(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._scale.apply(validate_data(self, X, reset=False, dtype=np.float64))

    @property
    def _params(self) -> Vector:
        return self.network_.params(self.node)


def _has_probabilities(estimator: OnewayClassifier) -> bool:
    if estimator.peer is not None:
        return estimator.peer.task.says_probabilities
    return estimator.model is None or issubclass(MODELS[estimator.model], HasProbabilities)


def _is_simulated(estimator: _OnewayEstimator) -> bool:
    return estimator.peer is None


class OnewayClassifier(ClassifierMixin, _OnewayEstimator):  # type: ignore[misc]
    """A network that learns classes over one-way trust, or one peer of one, as an estimator.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> OnewayClassifier(nodes=5, random_state=0).fit(X, y).score(X, y) > 0.9
    True

    """

    __doc__ += (_OnewayEstimator.__doc__ or "").partition("\n\n")[2]
    _learns_classes = True

    def fit(self, X: Any, y: Any) -> OnewayClassifier:
        """Learn from all rows, in a random order, `passes` times; begins anew without a peer."""
        if self.peer is not None:
            return self._through_peer(X, y)
        X, y = self._checked(X, y, reset=True)
        self._begin_with(X, unique_labels(y))
        X, y = self._fit_order(X, y)
        self._learn(X, self._codes(y), whole_number("passes", self.passes, 1, ConfigError))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> OnewayClassifier:
        """Learn from rows once, in their order, and go on from what was learned before.

        Args:
            X: Rows of features.
            y: Their labels.
            classes: All labels there will be, in the first call; those of the first rows if not
                given.
        """
        if self.peer is not None:
            return self._through_peer(X, y)
        begins = not hasattr(self, "network_")
        X, y = self._checked(X, y, reset=begins)
        if begins:
            self._begin_with(X, unique_labels(y if classes is None else classes))
        self._learn(X, self._codes(y), 1)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class expected for every row."""
        if self.peer is not None:
            return through_peer.predicted_classes(self.peer, X, self._peer_classes)
        features = self._scaled(X)
        labels = self.network_.model.predict(self._params, features)
        places = (labels > 0) if len(self.classes_) == 2 and not self._is_softmax else labels
        predicted: NDArray[Any] = self.classes_[np.asarray(places, np.intp)]
        return predicted

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """How probable each class is, in the order of `classes_`."""
        if self.peer is not None:
            return through_peer.probabilities(self.peer, X)
        features, model = self._scaled(X), self.network_.model
        assert isinstance(model, HasProbabilities)
        return model.probabilities(self._params, features)

    @available_if(_is_simulated)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The score of every row, of more than two classes one each."""
        features, model = self._scaled(X), self.network_.model
        scores: NDArray[np.float64] = model.scores(self._params, features)  # type: ignore[attr-defined]
        return scores[:, 1] - scores[:, 0] if scores.shape[1:] == (2,) else scores

    def _through_peer(self, X: Any, y: Any) -> OnewayClassifier:
        self._learn_through_peer(X, y)
        assert self.peer is not None
        self.classes_ = through_peer.classes_of(self.peer, y)
        return self

    @property
    def _peer_classes(self) -> NDArray[Any]:
        assert self.peer is not None
        return getattr(self, "classes_", np.array(self.peer.task.classes))

    @property
    def _is_softmax(self) -> bool:
        return isinstance(self.network_.model, SoftmaxRegression)

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64)
        check_classification_targets(y)
        return X, y

    def _begin_with(self, X: Any, classes: NDArray[Any]) -> None:
        if len(classes) < 2:
            raise ValueError(
                f"the labels have one class, {shown(classes.tolist()[0])}; a classifier needs at "
                "least 2 classes: give more rows, or partial_fit(..., classes=ALL_OF_THEM)"
            )
        model = self.model or ("logistic" if len(classes) == 2 else "softmax")
        kind = MODELS[model].kind_of_labels({})
        if kind == "number" or (kind == "binary" and len(classes) > 2):
            what = "numbers" if kind == "number" else "two classes"
            raise ConfigError(
                f"model is {shown(model)}, which learns {what}, and the labels have "
                f"{len(classes)} classes; choose 'softmax', or leave it out"
            )
        self.classes_ = classes
        self._begin(X.shape[1], model, len(classes))

    def _codes(self, y: Any) -> Vector:
        places = np.searchsorted(self.classes_, y)
        known = self.classes_[np.minimum(places, len(self.classes_) - 1)] == y
        if not known.all():
            stranger = shown(y[~known].tolist()[0])
            raise DataError(
                f"the label {stranger} is not one of the {len(self.classes_)} classes that the "
                "first rows had; name all in the first partial_fit(..., classes=ALL_OF_THEM)"
            )
        codes: Vector = places.astype(np.float64)
        return codes if self._is_softmax else 2.0 * codes - 1.0


class OnewayRegressor(RegressorMixin, _OnewayEstimator):  # type: ignore[misc]
    """A network that learns a number over one-way trust, or one peer of one, as an estimator.

    Labels are standardised by the rows seen so far, too, and predictions are in their units.

    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> OnewayRegressor(nodes=5, random_state=0).fit(X, y).score(X, y) > 0.4
    True

    """

    __doc__ += (_OnewayEstimator.__doc__ or "").partition("\n\n")[2]

    def fit(self, X: Any, y: Any) -> OnewayRegressor:
        """Learn from all rows, in a random order, `passes` times; begins anew without a peer."""
        if self.peer is not None:
            return self._learn_through_peer(X, y)
        X, y = validate_data(self, X, y, reset=True, dtype=np.float64, y_numeric=True)
        self._begin_with(X)
        X, y = self._fit_order(X, y)
        self._learn(X, self._standard(y), whole_number("passes", self.passes, 1, ConfigError))
        return self

    def partial_fit(self, X: Any, y: Any) -> OnewayRegressor:
        """Learn from rows once, in their order, and go on from what was learned before."""
        if self.peer is not None:
            return self._learn_through_peer(X, y)
        begins = not hasattr(self, "network_")
        X, y = validate_data(self, X, y, reset=begins, dtype=np.float64, y_numeric=True)
        if begins:
            self._begin_with(X)
        self._learn(X, self._standard(y), 1)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The number expected for every row."""
        if self.peer is not None:
            return through_peer.predicted_numbers(self.peer, X)
        features = self._scaled(X)
        standard = self.network_.model.predict(self._params, features)
        of_labels = self._label_scale
        predicted: NDArray[np.float64] = standard * of_labels.scales[0] + of_labels.means[0]
        return predicted

    def _begin_with(self, X: Any) -> None:
        model = self.model or "ridge"
        if MODELS[model].kind_of_labels({}) not in ("number", None):
            raise ConfigError(
                f"model is {shown(model)}, which learns classes; choose 'ridge' or leave it out, "
                "or use OnewayClassifier"
            )
        self._label_scale = RunningScale.blank(1)
        self._begin(X.shape[1], model, 0)

    def _standard(self, y: Any) -> Vector:
        column = as_floats(y, "labels")[:, None]
        self._label_scale = self._label_scale.seen(column)
        return self._label_scale.apply(column)[:, 0]
