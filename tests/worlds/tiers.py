"""How much a test draws: little in `make test`, more in `make test-all`, most in `make fuzz`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeVar

from hypothesis import settings

Entry = TypeVar("Entry")

IS_THOROUGH = settings.default.max_examples > 20
"""Whether the thorough profile of tests/conftest.py is loaded."""


def schedules(quick: int, thorough: int, per_fuzz: int = 1) -> int:
    """How many random schedules to run.

    Args:
        quick: In `make test`.
        thorough: In `make test-all`.
        per_fuzz: In `make fuzz`, one of so many of ONEWAY_FUZZ_SCHEDULES.
    """
    if fuzz := int(os.environ.get("ONEWAY_FUZZ_SCHEDULES", "0")):
        return fuzz // per_fuzz
    return thorough if IS_THOROUGH else quick


def some(entries: Mapping[str, Entry], *names: str) -> Mapping[str, Entry]:
    """Return those with these names in `make test`, all in `make test-all`."""
    return entries if IS_THOROUGH else {name: entries[name] for name in names}
