"""Offline prediction: the model in the store of a peer, whether the peer runs or not."""

from __future__ import annotations

from collections.abc import Mapping

from oneway.errors import StoreError
from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.store.store import read_snapshot


def predict_on_disk(
    home: Home, sample: Mapping[str, str]
) -> tuple[str | float, dict[str, float] | None]:
    """The label expected for a sample, and how probable each class is where the model says that.

    Raises:
        DataError: If the sample lacks a feature or has one that is no number.
        StoreError: If there is no model, or it is not one for the task.
        TaskError: If the task cannot be read.
    """
    task, name = home.task(), home.config().name
    if not home.store_path.exists():
        raise StoreError(
            f"{name} has never run, so it has no model yet (there is no {home.store_path}); let it "
            "learn: oneway peer run --data FILE"
        )
    learner, snapshot = Learner(task), read_snapshot(home.store_path)
    if snapshot.state.dim != learner.layout.width:
        raise StoreError(
            f"the model in {home.store_path} has {snapshot.state.dim} parameters, and the task "
            f"needs {learner.layout.width}; put the task.toml back that it was started with"
        )
    estimate = learner.stored_estimate(snapshot, task.radius)
    if estimate is None:
        raise StoreError(f"{name} has no model at the moment; let it learn: oneway peer run")
    prediction = learner.predict(estimate, sample)
    return prediction, learner.probabilities(estimate, sample) if task.says_probabilities else None
