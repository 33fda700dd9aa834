"""Builders of records: a run, a peer's status and a lab's frame, valid, small, and changed by name.

For tests of pages, tools and measures of one's own: a test names only what it is about.

>>> make_record(loss_sums=[2.0, 1.0, 0.5]).num_rounds
3
>>> make_status(samples=7, receivers=[make_receiver(name="bob", lag=9.0)]).receivers[0].lag
9.0
"""

from __future__ import annotations

import dataclasses
from types import UnionType
from typing import Any, TypeVar, Union, get_origin

import msgspec
import numpy as np

from oneway.records import MASS_UNITS, RunRecord
from oneway.records.network import MassView, NetworkFrame, PeerView
from oneway.records.status import ReceiverStatus, SenderStatus, Status

_Record = TypeVar("_Record", bound=msgspec.Struct)
_Value = TypeVar("_Value")


def replace(value: _Value, **changes: Any) -> _Value:
    """A copy of a frozen value with other fields, whether it is a struct or a dataclass."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def make_record(**changes: Any) -> RunRecord:
    """A run of Online Push-Sum on two nodes, for two rounds or as many as `loss_sums` has.

    Args:
        **changes: Fields of a `RunRecord`; what has one number per round may be a list.
    """
    loss_sums = np.asarray(changes.pop("loss_sums", [2.0, 1.0]), dtype=float)
    num_rounds = len(loss_sums)
    blank = {
        "method": "ops",
        "sample_counts": np.full(num_rounds, 2),
        "correct_counts": None,
        "disagreement": np.zeros(num_rounds),
        "numerators": np.zeros((2, 1)),
        "masses": np.ones(2),
        "complete": True,
        "seconds": 0.5,
    }
    arrays = {name: np.array(value) for name, value in changes.items() if isinstance(value, list)}
    return RunRecord(loss_sums=loss_sums, **blank | changes | arrays)


def make_status(**changes: Any) -> Status:
    """A peer that runs, with its unit of mass, and has neither samples nor edges yet."""
    who = {"name": "alice", "key": "a" * 52, "card": "oneway:card", "task": "00ff", "pid": 7}
    times = {"started": 100.0, "time": 1000.0}
    mass = {"mass": 1.0, "mass_units": MASS_UNITS, "brought_units": MASS_UNITS, "minted": True}
    return _made(Status, who | times | mass | changes)


def make_receiver(**changes: Any) -> ReceiverStatus:
    """A receiver that is connected, and has acknowledged everything."""
    who = {"name": "bob", "key": "b" * 52, "address": "127.0.0.1:7702", "weight": 1.0}
    link = {"phase": "open", "link": "connected", "link_since": 900.0, "last_answer": 999.0}
    return _made(ReceiverStatus, who | link | {"seq": 7, "acked": 7} | changes)


def make_sender(**changes: Any) -> SenderStatus:
    """A sender that is admitted, of which nothing was rejected."""
    who = {"name": "carol", "key": "c" * 52}
    pushes = {"admitted": True, "seq": 3, "last_push": 990.0}
    return _made(SenderStatus, who | pushes | changes)


def make_frame(**changes: Any) -> NetworkFrame:
    """A lab that learns, without peers."""
    now = {"number": 1, "seconds": 1.0, "phase": "learning", "title": "a lab"}
    mass = MassView(held=0, in_flight=0, brought=0, is_exact=True)
    return _made(NetworkFrame, now | {"mass": mass} | changes)


def make_peer_view(**changes: Any) -> PeerView:
    """A peer of a lab that is up, and has no samples yet."""
    drawn = {"name": "ann", "state": "up", "x": 0.5, "y": 0.5, "mass_units": MASS_UNITS}
    return _made(PeerView, drawn | changes)


def _made(kind: type[_Record], known: dict[str, Any]) -> _Record:
    """A record in which what is not known is 0, empty, False or None."""
    blank = {}
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in known:
            origin = get_origin(field.type) or field.type
            blank[field.name] = None if origin in (Union, UnionType) else origin()
    return kind(**blank | known)
