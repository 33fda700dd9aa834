"""What the tests of the command line share: ways to call it, and one small demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import Result, call, here, oneway, read_until, spawn

__all__ = ["here", "oneway", "read_until", "spawn"]


@dataclass(frozen=True)
class Demo:
    """The first rounds of the demo, and where it wrote its results."""

    result: Result
    folder: Path


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo") / "made" / "for it"
    return Demo(call("demo", "--out", folder, "--json"), folder)
