"""Fixtures: the worlds in which the protocol is put through everything that can go wrong."""

from __future__ import annotations

import pytest
from storm import Broken, World


@pytest.fixture(scope="session")
def fuzz_world() -> type[World]:
    return World


@pytest.fixture(scope="session")
def broken_rule() -> type[Broken]:
    return Broken
