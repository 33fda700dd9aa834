"""Repair of a durable state whose mass cannot be: one unit again, at the last sound model."""

from __future__ import annotations

from contextlib import closing

import msgspec
from msgspec.structs import replace

from oneway.errors import ConfigError
from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, PeerStore, read_snapshot
from oneway.protocol.audit import books_of
from oneway.protocol.fixed_point import fixed
from oneway.protocol.incoming import mint
from oneway.records import Vector
from oneway.records.status import is_possible_mass
from oneway.task.task import Task


def what_it_costs(home: Home) -> str:
    """What `repair` would do and cost, as sentences; changes nothing.

    Raises:
        OnewayError: As `repair`.
    """
    with home.lock():
        task = _checked_task(home)
        before = read_snapshot(home.store_path)
        mass, terms = before.state.mass, _terms(home, task, before)
    name = home.config().name
    return f"{name} holds a mass of {mass:,.6g}, which cannot be; a repair leaves it {terms}."


def repair(home: Home) -> str:
    """Give a peer of impossible mass one unit at its last sound model; say what that cost.

    The difference is booked as clipped, so that the peer's own books balance.

    Raises:
        ConfigError: The peer runs, has never run, or its mass is possible; nothing has changed.
        KeyFileError: The key file is missing, malformed or open to others.
        StoreError: The store is damaged, another peer's or another task's, or cannot be written.
        TaskError: The task cannot be read.
    """
    with home.lock():
        task = _checked_task(home)
        learner = Learner(task)
        owner = Owner(home.keys().public, task.fingerprint, learner.layout.width)
        with closing(PeerStore.open(home.store_path, owner)) as store:
            before = store.load()
            terms = _terms(home, task, before)
            after = _repaired(before, learner, task.radius)
            store.commit(after)
        _correct_status(home, after)
    name, mass = home.config().name, before.state.mass
    return f"{name} held a mass of {mass:,.6g}, which cannot be, and now has {terms}."


def _checked_task(home: Home) -> Task:
    if not home.store_path.exists():
        raise ConfigError(f"{home.config().name} has never run, so there is nothing to repair")
    return home.task()


def _terms(home: Home, task: Task, before: Snapshot) -> str:
    """What a repair leaves, and what it costs."""
    mass, limit = before.state.mass, task.impossible_mass
    if is_possible_mass(mass, limit):
        raise ConfigError(
            f"{home.config().name} holds a mass of {mass:,.6g}, and anything from 0 to "
            f"{limit:,.6g} can be; there is nothing to repair"
        )
    kept = Learner(task).stored_estimate(before, task.radius) is not None
    where = "the model it has" if kept else "the model it began with, as its own cannot be told"
    return (
        f"one unit at {where}; {mass - 1.0:,.6g} of mass is written off, and with it whatever "
        "others had handed over to it"
    )


def _repaired(snapshot: Snapshot, learner: Learner, radius: float) -> Snapshot:
    state, memory = replace(snapshot.state, layout=learner.layout), snapshot.memory
    model = learner.stored_estimate(snapshot, radius)
    if model is None:
        # The method's memory is about a model that nobody can tell any more.
        model, memory = _first_model(snapshot, learner).clip(-radius, radius), {}
    start = state.layout.start(model, state.dim)
    if not state.has_minted:
        state = mint(state, start)
    unit = fixed(start, 1.0)
    clipped = state.clipped + (state.holding - unit)
    state = replace(state, holding=unit, clipped=clipped)
    # Where the mass was impossible, so perhaps were the last estimates.
    return replace(snapshot, state=state, memory=memory, average=None)


def _first_model(snapshot: Snapshot, learner: Learner) -> Vector:
    """The model at which the peer brought its mass, which is the only one kept for ever."""
    if not snapshot.state.has_minted:
        return learner.start
    return learner.layout.model_in(snapshot.state.minted)


def _correct_status(home: Home, after: Snapshot) -> None:
    """Put the mass right in what the peer last said: until it runs, this is what is shown."""
    status = home.status()
    if status is not None:
        books = books_of(after.state)
        home.write_status(
            msgspec.structs.replace(
                status,
                mass=after.state.mass,
                mass_units=books.held,
                brought_units=books.brought,
                minted=after.state.has_minted,
            )
        )
