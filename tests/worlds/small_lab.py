"""What the tests of the lab share: a small problem, and statuses as peers write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from builders import make_receiver, make_sender, make_status

import oneway as ow
from oneway.lab.peer_process import Observation
from oneway.lab.problem import Problem
from oneway.peer.identity.keys import key_text

MakeObservation = Callable[..., Observation]


@pytest.fixture(scope="session")
def problem() -> Problem:
    """Five peers on a one-way graph, 40 samples of 3 features each."""
    table = ow.streams.synthetic(num_samples=200, num_features=3, seed=1).table
    graph = ow.TrustGraph.random(num_nodes=5, max_receivers=3, seed=4)
    return Problem.deal(table, graph, samples=40, seed=2, learning_rate=0.2)


@pytest.fixture
def make_observation() -> MakeObservation:
    """A peer seen from outside; keywords change its status."""

    def make(
        key: bytes, state: str = "paused", edges: dict[bytes, dict[str, Any]] | None = None, **facts
    ) -> Observation:
        edges = edges or {}
        status = make_status(
            receivers=[make_receiver(key=key_text(other), **edges[other]) for other in edges],
            senders=[make_sender(key=key_text(other)) for other in edges],
            **{"mass_units": 0, "brought_units": 0} | facts,
        )
        return Observation(f"peer{key[0]}", key, state, status, restarts=0)  # type: ignore[arg-type]

    return make
