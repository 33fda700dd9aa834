"""scikit-learn estimators: a simulated network of nodes behind `fit`."""

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

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from all rows, `passes` times in random orders; forgets what was learned before."""
        X, y = self._validated(X, y, reset=True)
        passes = whole_number("passes", self.passes, 1, ConfigError)
        self._begin(X, y, passes)
        labels = self._labels(y)
        for _ in range(passes):
            order = self._order.permutation(len(labels))
            self.network_.learn(X[order], labels[order])
        return self

    def _fit_once(self, X: Any, y: Any, classes: Any = None) -> Self:
        begins = not hasattr(self, "network_")
        X, y = self._validated(X, y, reset=begins)
        if begins:
            self._begin(X, y if classes is None else np.asarray(classes), passes=1)
        self.network_.learn(X, self._labels(y))
        return self

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        numeric = isinstance(self, RegressorMixin)
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64, y_numeric=numeric)
        return X, y

    def _start(self, y: Any) -> tuple[str, int, dict[str, Any]]:
        """Return the model for the first labels, the number of classes, and its options."""
        raise NotImplementedError

    def _labels(self, y: Any) -> Vector:
        """Return labels as the model has them."""
        raise NotImplementedError

    def _begin(self, X: Any, y: Any, passes: int) -> None:
        """Start a network that will see every row `passes` times."""
        model, num_classes, options = self._start(y)
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
        method = learning.build_method(built.dim(X.shape[1]))
        graph = graph_of(self.graph, whole_number("nodes", self.nodes, 1, ConfigError), seed)
        self.network_ = SimulatedNetwork(method, built, graph, X.shape[1], seed)
        self._order = np.random.default_rng(seed)

    def _fitted(self, X: Any) -> tuple[Any, Vector, Any]:
        """Return the model, its parameters and the checked rows."""
        check_is_fitted(self, "network_")
        features = validate_data(self, X, reset=False, dtype=np.float64)
        return self.network_.model, self.network_.params(self.node), features


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

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from rows once, in their order, and keep what was learned before.

        Args:
            X: Rows of features.
            y: Their labels.
            classes: All labels, in the first call; by default those of the first rows.
        """
        return self._fit_once(X, y, classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of every row."""
        model, params, features = self._fitted(X)
        labels = model.predict(params, features)
        places = labels if self._has_scores() else labels > 0
        predicted: NDArray[Any] = self.classes_[np.asarray(places, np.intp)]
        return predicted

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`."""
        model, params, features = self._fitted(X)
        probabilities: NDArray[np.float64] = model.probabilities(params, features)
        return probabilities

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of every row; of more than two classes, one for each."""
        model, params, features = self._fitted(X)
        scores: NDArray[np.float64] = model.scores(params, features)
        return scores[:, 1] - scores[:, 0] if scores.shape[1:] == (2,) else scores

    def _has_scores(self) -> bool:
        """Whether the model has a score for every class, not one for two."""
        return isinstance(self.network_.model, SoftmaxRegression)

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y = super()._validated(X, y, reset=reset)
        check_classification_targets(y)
        return X, y

    def _start(self, y: Any) -> tuple[str, int, dict[str, Any]]:
        self.classes_ = unique_labels(y)
        count = len(self.classes_)
        if count < 2:
            raise ValueError(
                f"the labels have one class, {shown(self.classes_.tolist()[0])}; a classifier "
                "needs at least 2 classes: give more rows, or partial_fit(..., classes=ALL_OF_THEM)"
            )
        model = self.model or ("logistic" if count == 2 else "softmax")
        kind = MODELS[model].kind_of_labels({})
        if kind == "number" or (kind == "binary" and count > 2):
            what = "numbers" if kind == "number" else "two classes"
            raise ConfigError(
                f"model is {shown(model)}, which learns {what}, and the labels have {count} "
                "classes; choose 'softmax', or leave it out"
            )
        return model, count, {}

    def _labels(self, y: Any) -> Vector:
        places = np.searchsorted(self.classes_, y)
        known = self.classes_[np.minimum(places, len(self.classes_) - 1)] == y
        if not known.all():
            unknown = shown(y[~known].tolist()[0])
            raise DataError(
                f"the label {unknown} is not one of the {len(self.classes_)} classes that the "
                "first rows had; name all in the first partial_fit(..., classes=ALL_OF_THEM)"
            )
        codes: Vector = places.astype(np.float64)
        return codes if self._has_scores() else 2.0 * codes - 1.0


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

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from rows once, in their order, and keep what was learned before."""
        return self._fit_once(X, y)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted number of every row."""
        model, params, features = self._fitted(X)
        predicted: NDArray[np.float64] = model.predict(params, features)
        return predicted

    def _start(self, y: Any) -> tuple[str, int, dict[str, Any]]:
        model = self.model or "ridge"
        if MODELS[model].kind_of_labels({}) not in ("number", None):
            raise ConfigError(
                f"model is {shown(model)}, which learns classes; choose 'ridge' or leave it out, "
                "or use OnewayClassifier"
            )
        return model, 0, {"center": float(np.mean(y)), "scale": float(np.std(y)) or 1.0}

    def _labels(self, y: Any) -> Vector:
        return np.asarray(y, np.float64)
