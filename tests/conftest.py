"""What tests share: a cache of their own, and the real data if it is there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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
