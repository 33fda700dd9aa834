"""What tests share: the real data if it is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from users_huber import Huber

from oneway.models import MODELS, Model

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


@pytest.fixture
def huber(monkeypatch: pytest.MonkeyPatch) -> type[Model]:
    """A registered regression model of a user, for the time of a test."""
    monkeypatch.setitem(MODELS._entries, Huber.name, Huber)
    return Huber
