"""scikit-learn estimators: a simulated network of nodes behind `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from oneway.errors import ConfigError, DataError
from oneway.estimators.network import SimulatedNetwork, graph_of
from oneway.files.validation import whole_number
from oneway.models import MODELS, Model, SoftmaxRegression
from oneway.records import Vector
from oneway.sentences import shown
from oneway.task.learning import Learning
from oneway.task.privacy import NO_PRIVACY, Privacy


class _OnewayEstimator(BaseEstimator):  # type: ignore[misc]
    """What classifier and regressor have in common.

    A simulated network deals the rows to its nodes in turn. Each node learns from its own rows and
    sends its model along one-way edges. Predictions are made with the mean of all models, or with
    one node's.

    Features are numbers, best standardised; put scikit-learn's transformers in front:
    `make_pipeline(StandardScaler(), OnewayClassifier())`.

    Attributes:
        nodes: The number of nodes of a generated graph.
        graph: A kind of graph ("random", "ring", ...) or a `TrustGraph`.
        method: How nodes learn together ("relay", "ops", "pull", "local", ...).
        model: The name of the model; None for the one that suits the labels.
        learning_rate: As in a task; None for its default.
        step: The step rule, likewise.
        l2: How strongly parameters are pulled towards 0.
        intercept: Whether the model has a constant.
        samples_per_push: The number of samples that a push carries the steps of.
        epsilon: The differential privacy of every row over all passes of `fit`, or over one
            `partial_fit`; None for none. The rows of several calls compose. The mean and
            standard deviation of a regressor's labels are not covered.
        passes: How many times `fit` goes over the rows; `partial_fit` goes once.
        node: The node whose model predicts. None for the mean of all; the nodes of the method
            "local" share nothing, so that None is node 0 there.
        random_state: Of the graph, the order of the rows and the noise.
    """

    def __init__(
        self,
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
        return hasattr(self, "network_")

    def _begin(
        self, num_features: int, model: str, num_classes: int, passes: int, **options: Any
    ) -> None:
        """Start a network that will see every row `passes` times."""
        nodes = whole_number("nodes", self.nodes, 1, ConfigError)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        privacy = NO_PRIVACY
        if self.epsilon is not None:
            # To the accountant, the repetitions of a row are a group of rows.
            repeated: dict[str, Any] = {"unit": "group", "group": "row"} if passes > 1 else {}
            privacy = Privacy(epsilon=self.epsilon, records_per_group=passes, **repeated)
        optional = {"learning_rate": self.learning_rate, "step": self.step}
        learning = Learning(
            model=model,
            method=self.method,
            l2=float(self.l2),
            intercept=bool(self.intercept),
            samples_per_push=self.samples_per_push,
            privacy=privacy,
            options={model: options} if options else {},
            **{name: value for name, value in optional.items() if value is not None},
        )
        built = learning.model_for(num_classes)
        method = learning.build_method(built.dim(num_features))
        graph = graph_of(self.graph, nodes, seed)
        self.network_ = SimulatedNetwork(method, built, graph, num_features, seed)
        self._order = np.random.default_rng(seed)

    def _learn(self, X: Any, labels: Vector, passes: int, *, shuffle: bool) -> None:
        for _ in range(passes):
            order = self._order.permutation(len(labels)) if shuffle else np.arange(len(labels))
            self.network_.learn(X[order], labels[order])

    def _checked_passes(self) -> int:
        return whole_number("passes", self.passes, 1, ConfigError)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64)

    def _params(self) -> Vector:
        return self.network_.params(self.node)

    def _predict(self, X: Any) -> Vector:
        features = self._rows(X)
        return self.network_.model.predict(self._params(), features)


def _has_probabilities(estimator: OnewayClassifier) -> bool:
    if estimator.model is None:
        return True
    return MODELS[estimator.model].probabilities is not Model.probabilities


class OnewayClassifier(ClassifierMixin, _OnewayEstimator):  # type: ignore[misc]
    """A simulated network that learns classes over one-way trust, as an estimator.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), OnewayClassifier(nodes=5, random_state=0))
    >>> model.fit(X, y).score(X, y) > 0.9
    True

    """

    __doc__ += (_OnewayEstimator.__doc__ or "").partition("\n\n")[2]

    def fit(self, X: Any, y: Any) -> OnewayClassifier:
        """Learn from all rows, `passes` times in random orders; forgets what was learned before."""
        X, y = self._checked(X, y, reset=True)
        passes = self._checked_passes()
        self._begin_with(X, unique_labels(y), passes)
        self._learn(X, self._codes(y), passes, shuffle=True)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> OnewayClassifier:
        """Learn from rows once, in their order, and keep what was learned before.

        Args:
            X: Rows of features.
            y: Their labels.
            classes: All labels, in the first call; by default those of the first rows.
        """
        begins = not hasattr(self, "network_")
        X, y = self._checked(X, y, reset=begins)
        if begins:
            self._begin_with(X, unique_labels(y if classes is None else classes), 1)
        self._learn(X, self._codes(y), 1, shuffle=False)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of every row."""
        labels = self._predict(X)
        places = labels if self._is_softmax() else labels > 0
        predicted: NDArray[Any] = self.classes_[np.asarray(places, np.intp)]
        return predicted

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`."""
        features, model = self._rows(X), self.network_.model
        probabilities = model.probabilities(self._params(), features)
        assert probabilities is not None
        return probabilities

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of every row; of more than two classes, one for each."""
        features, model = self._rows(X), self.network_.model
        scores: NDArray[np.float64] = model.scores(self._params(), features)  # type: ignore[attr-defined]
        return scores[:, 1] - scores[:, 0] if scores.shape[1:] == (2,) else scores

    def _is_softmax(self) -> bool:
        return isinstance(self.network_.model, SoftmaxRegression)

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64)
        check_classification_targets(y)
        return X, y

    def _begin_with(self, X: Any, classes: NDArray[Any], passes: int) -> None:
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
        self._begin(X.shape[1], model, len(classes), passes)

    def _codes(self, y: Any) -> Vector:
        places = np.searchsorted(self.classes_, y)
        known = self.classes_[np.minimum(places, len(self.classes_) - 1)] == y
        if not known.all():
            unknown = shown(y[~known].tolist()[0])
            raise DataError(
                f"the label {unknown} is not one of the {len(self.classes_)} classes that the "
                "first rows had; name all in the first partial_fit(..., classes=ALL_OF_THEM)"
            )
        codes: Vector = places.astype(np.float64)
        return codes if self._is_softmax() else 2.0 * codes - 1.0


class OnewayRegressor(RegressorMixin, _OnewayEstimator):  # type: ignore[misc]
    """A simulated network that learns a number over one-way trust, as an estimator.

    Labels are standardised by those of `fit`, or of the first `partial_fit`; predictions are in
    their units.

    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), OnewayRegressor(nodes=5, random_state=0))
    >>> model.fit(X, y).score(X, y) > 0.4
    True

    """

    __doc__ += (_OnewayEstimator.__doc__ or "").partition("\n\n")[2]

    def fit(self, X: Any, y: Any) -> OnewayRegressor:
        """Learn from all rows, `passes` times in random orders; forgets what was learned before."""
        X, y = validate_data(self, X, y, reset=True, dtype=np.float64, y_numeric=True)
        passes = self._checked_passes()
        self._begin_with(X, y, passes)
        self._learn(X, y, passes, shuffle=True)
        return self

    def partial_fit(self, X: Any, y: Any) -> OnewayRegressor:
        """Learn from rows once, in their order, and keep what was learned before."""
        begins = not hasattr(self, "network_")
        X, y = validate_data(self, X, y, reset=begins, dtype=np.float64, y_numeric=True)
        if begins:
            self._begin_with(X, y, 1)
        self._learn(X, y, 1, shuffle=False)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted number of every row."""
        return self._predict(X)

    def _begin_with(self, X: Any, y: Any, passes: int) -> None:
        model = self.model or "ridge"
        if MODELS[model].kind_of_labels({}) not in ("number", None):
            raise ConfigError(
                f"model is {shown(model)}, which learns classes; choose 'ridge' or leave it out, "
                "or use OnewayClassifier"
            )
        deviation = float(np.std(y)) or 1.0
        self._begin(X.shape[1], model, 0, passes, center=float(np.mean(y)), scale=deviation)
