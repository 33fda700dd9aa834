"""What the tests of the lab share: a small problem, and statuses as peers write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oneway as ow
from oneway.lab.problem import Problem
from oneway.lab.rest import Look
from oneway.peer.identity.keys import key_text
from oneway.records.status import ReceiverStatus, SenderStatus, Status

MakeLook = Callable[..., Look]


@pytest.fixture(scope="session")
def problem() -> Problem:
    """Five peers on a one-way graph, 40 samples of 3 features each."""
    table = ow.streams.synthetic(num_samples=200, num_features=3, seed=1).table
    graph = ow.TrustGraph.random(num_nodes=5, max_receivers=3, seed=4)
    return Problem.deal(table, graph, samples=40, seed=2, learning_rate=0.2)


def receiver(key: bytes, **facts: Any) -> ReceiverStatus:
    shown = {"phase": "open", "seq": 7, "acked": 7, "weight": 1.0, "link": "connected"}
    return ReceiverStatus(
        name="bob",
        key=key_text(key),
        address="127.0.0.1:1",
        link_since=0.0,
        lag=0.0,
        last_answer=0.0,
        **shown | facts,
    )


def sender(key: bytes) -> SenderStatus:
    return SenderStatus(
        name="bob",
        key=key_text(key),
        admitted=True,
        seq=3,
        closed=False,
        last_push=0.0,
        rejected={},
        clipped=0,
        strikes=0,
        quarantined=False,
    )


@pytest.fixture
def make_look() -> MakeLook:
    """A peer seen from outside; keywords change its status."""

    def make(
        key: bytes, state: str = "paused", edges: dict[bytes, dict[str, Any]] | None = None, **facts
    ) -> Look:
        types = {"str": "", "int": 0, "float": 0.0, "bool": False, "dict[str, int]": {}}
        blank = {
            name: types.get(str(Status.__annotations__[name])) for name in Status.__struct_fields__
        }
        blank |= {
            "receivers": [receiver(other, **change) for other, change in (edges or {}).items()],
            "senders": [sender(other) for other in edges or {}],
        }
        status = Status(**blank | facts)
        return Look(f"peer{key[0]}", key, state, status, restarts=0)  # type: ignore[arg-type]

    return make
