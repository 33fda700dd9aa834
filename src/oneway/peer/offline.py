"""Offline models: what is in the store of a peer, whether the peer runs or not."""

from __future__ import annotations

from oneway.errors import ConfigError, StoreError
from oneway.export import FittedModel, PersonalModel
from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import read_snapshot
from oneway.records import Vector
from oneway.sentences import shown

PERSONAL, SHARED = "personal", "shared"
"""The models of a peer that can be asked."""


def is_shared(model: str) -> bool:
    """Whether a name is that of the shared model; otherwise it is the personal one.

    Raises:
        ConfigError: It is neither.
    """
    if model not in (PERSONAL, SHARED):
        raise ConfigError(f"model is {shown(model)}; it must be {PERSONAL!r} or {SHARED!r}")
    return model == SHARED


def stored_model(home: Home, *, momentary: bool = False) -> FittedModel:
    """The shared model that is on the disk, settled, or momentary if that is asked for.

    Raises:
        StoreError: If there is no model, or it is not one for the task.
        TaskError: If the task cannot be read.
        ConfigError: If peer.toml cannot be read.
    """
    learner, snapshot = _read(home)
    params = _params(home, learner, snapshot, momentary=momentary)
    origin = origin_of(home.config().name, snapshot.journal.learned, momentary=momentary)
    return learner.fitted(params, **origin)


def stored_personal(home: Home) -> PersonalModel | FittedModel:
    """The personal predictions of the peer that are on the disk; without any, the shared model.

    Raises:
        StoreError, TaskError, ConfigError: As `stored_model`.
    """
    learner, snapshot = _read(home)
    params = learner.stored_estimate(snapshot, home.task().radius)
    if params is None:  # say because it has left, and handed over all its mass
        params = _params(home, learner, snapshot, momentary=False)
    measures, _ = learner.measures_resumed(snapshot.measures)
    origin = personal_origin(home.config().name, snapshot.journal.samples)
    return learner.personal(params, measures, **origin) or stored_model(home)


def _read(home: Home) -> tuple[Learner, Snapshot]:
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
    return learner, snapshot


def _params(home: Home, learner: Learner, snapshot: Snapshot, *, momentary: bool) -> Vector:
    settled = None if snapshot.average is None else snapshot.average.params
    if settled is not None and not momentary:
        return settled
    estimate = learner.stored_estimate(snapshot, home.task().radius)
    if estimate is None:
        raise StoreError(
            f"{home.config().name} has no model at the moment; let it learn: oneway peer run"
        )
    return estimate


def origin_of(name: str, samples: int, *, momentary: bool) -> dict[str, object]:
    """Where the model of a peer comes from, besides its task."""
    estimate = "momentary" if momentary else "settled, the average of the last estimates"
    return {"peer": name, "samples": samples, "estimate": estimate}


def personal_origin(name: str, samples: int) -> dict[str, object]:
    """Where the personal predictions of a peer come from, besides its task."""
    return {
        "peer": name,
        "samples": samples,
        "estimate": "personal, a mixture of the shared model and of the peer's own",
        "privacy": "none: this model is made of the raw samples of its peer, without noise",
    }
