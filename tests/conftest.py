"""What tests share: the real data if it is there."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from builders import replace
from hypothesis import HealthCheck, settings
from users_huber import Huber

from oneway.models import MODELS, Model
from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.store.store import Owner, PeerStore
from oneway.protocol.state import InEdge

# No deadlines: a busy machine is slow, and slow is not wrong. `make test` draws the same examples
# every time; `make test-all` (--hypothesis-profile thorough) draws more, and others.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=20, derandomize=True, **_PATIENT)
settings.register_profile("thorough", max_examples=100, **_PATIENT)
settings.load_profile("quick")


@pytest.fixture
def real_data() -> Path:
    """The folder with the real data sets."""
    folder = os.environ.get("ONEWAY_DATA")
    if not folder:
        pytest.skip("ONEWAY_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def flood() -> Callable[..., None]:
    """Lets a peer that does not run have taken in so much mass of a sender; its books balance."""

    def take_in(home: Home, mass: float, model: float = 0.0) -> None:
        task = home.task()
        layout = Learner(task).layout
        owner = Owner(home.keys().public, task.fingerprint, layout.width)
        with closing(PeerStore.open(home.store_path, owner)) as store:
            before = store.load()
            heard = np.zeros_like(before.state.holding)
            heard[-1] = round(mass * 2**40)
            heard[layout.model] = round(mass * model * 2**40)
            sender = InEdge(b"m" * 32, 7, heard, seq=1)
            state = replace(
                before.state,
                holding=before.state.holding + heard,
                in_={**before.state.in_, (sender.sender, sender.epoch): sender},
            )
            store.commit(replace(before, state=state))

    return take_in


@pytest.fixture
def huber(monkeypatch: pytest.MonkeyPatch) -> type[Model]:
    """A registered regression model of a user, for the time of a test."""
    monkeypatch.setitem(MODELS._entries, Huber.name, Huber)
    return Huber
