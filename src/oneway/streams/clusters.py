"""k-means, one cluster per node, the same bit for bit whenever it is run."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, MissingExtraError, install_hint
from oneway.records import Floats, Ints

MINI_BATCHES_ABOVE = 50_000
FIT_ROWS = 250_000
PREDICT_ROWS = 65_536


def cluster_rows(features: Floats, rows: Ints, num_clusters: int, seed: int) -> NDArray[np.int32]:
    """Assign each of `rows` (repetitions allowed) to one of `num_clusters` clusters.

    The distinct rows are clustered once each, so that repetitions of a row stay together. Up to
    50,000 distinct rows: k-means (one k-means++ start). Above: mini-batch k-means fitted to at
    most 250,000 of them, drawn at random, after which every row goes to its nearest centre.
    A cluster may be empty.
    """
    distinct, inverse = np.unique(rows, return_inverse=True)
    _check_enough(features, distinct, num_clusters)
    try:
        from sklearn.cluster import KMeans, MiniBatchKMeans
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise MissingExtraError(
            f"adversarial streams need scikit-learn, which is not installed; {install_hint('lab')}"
        ) from None
    # One thread: with several, the order of the sums, and so the clusters, would vary.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an empty cluster is allowed
        if len(distinct) <= MINI_BATCHES_ABOVE:
            model = KMeans(num_clusters, n_init=1, max_iter=100, random_state=seed)
            model.fit(features[distinct])
            clusters = model.labels_
        else:
            sample = distinct
            if len(distinct) > FIT_ROWS:
                rng = np.random.default_rng(seed)
                sample = np.sort(rng.choice(distinct, FIT_ROWS, replace=False, shuffle=False))
            model = MiniBatchKMeans(
                num_clusters, n_init=1, batch_size=4096, compute_labels=False, random_state=seed
            )
            clusters = _predict(model.fit(features[sample]), features, distinct)
    return np.asarray(clusters, dtype=np.int32)[inverse]


def _predict(model: Any, features: Floats, rows: Ints) -> NDArray[np.int32]:
    blocks = range(0, len(rows), PREDICT_ROWS)
    return np.concatenate(
        [model.predict(features[rows[start : start + PREDICT_ROWS]]) for start in blocks]
    )


def _check_enough(features: Floats, rows: Ints, num_clusters: int) -> None:
    seen = np.empty((0, features.shape[1]), dtype=features.dtype)
    step = max(4 * num_clusters, 4096)
    for start in range(0, len(rows), step):
        block = features[rows[start : start + step]]
        seen = np.unique(np.concatenate([seen, block]), axis=0)
        if len(seen) >= num_clusters:
            return
    raise DataError(
        f"{num_clusters} nodes, one cluster each, but only {len(seen)} distinct samples to "
        "cluster: use fewer nodes, a larger table or, for all random, adversarial=0"
    )
