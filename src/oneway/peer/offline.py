"""Offline model: what is in the store of a peer, whether the peer runs or not."""

from __future__ import annotations

from oneway.errors import ConfigError, StoreError
from oneway.export import FittedModel
from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.store.store import read_snapshot


def stored_model(home: Home, *, momentary: bool = False) -> FittedModel:
    """The settled model that is on the disk, or the momentary one if that is asked for.

    Raises:
        StoreError: If there is no model, or it is not one for the task.
        TaskError: If the task cannot be read.
        ConfigError: If peer.toml cannot be read.
    """
    task, config = home.task(), home.config()
    if not home.store_path.exists():
        raise StoreError(
            f"{config.name} has never run, so it has no model yet (there is no {home.store_path}); "
            "let it learn: oneway peer run --data FILE"
        )
    try:
        learner = Learner(task, own=config.privacy)
    except ConfigError:  # the peer may not run; what it has learned keeps the task's promise
        learner = Learner(task)
    snapshot = read_snapshot(home.store_path)
    if snapshot.state.dim != learner.layout.width:
        raise StoreError(
            f"the model in {home.store_path} has {snapshot.state.dim} parameters, and the task "
            f"needs {learner.layout.width}; put the task.toml back that it was started with"
        )
    if snapshot.average is not None and not momentary:
        params = snapshot.average.params
    else:
        estimate = learner.stored_estimate(snapshot, task.radius)
        if estimate is None:
            raise StoreError(
                f"{config.name} has no model at the moment; let it learn: oneway peer run"
            )
        params = estimate
    samples = snapshot.journal.learned
    return learner.fitted(params, **origin_of(config.name, samples, momentary=momentary))


def origin_of(name: str, samples: int, *, momentary: bool) -> dict[str, object]:
    """Where the model of a peer comes from, besides its task."""
    estimate = "momentary" if momentary else "settled, the average of the last estimates"
    return {"peer": name, "samples": samples, "estimate": estimate}
