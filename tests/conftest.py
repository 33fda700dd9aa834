"""What tests share: a cache of their own, and the real data if it is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.store.store import Owner, PeerStore
from oneway.protocol.state import InEdge
from oneway.testing.records import replace

# A busy machine is slow, and slow is not wrong.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test touches the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONEWAY_CACHE", str(folder))
        yield folder


@pytest.fixture
def cache_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Even the smallest file is cached, in a folder that starts empty; returns the folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ONEWAY_CACHE", str(folder))
    monkeypatch.setattr("oneway.tables.cache.CACHE_ABOVE_BYTES", 0)
    return folder


@pytest.fixture
def real_data() -> Path:
    """The folder with the real data sets."""
    folder = os.environ.get("ONEWAY_DATA")
    if not folder:
        pytest.skip("ONEWAY_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def flood() -> Callable[[Home, float], None]:
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
