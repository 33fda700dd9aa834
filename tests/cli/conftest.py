"""What the tests of the command line share: a way to call it, and one small demo."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oneway.cli.main import main


@dataclass(frozen=True)
class Result:
    """What a command leaves behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Oneway = Callable[..., Result]


def call(*arguments: object) -> Result:
    """Run `oneway` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.delenv("FORCE_COLOR", raising=False)
        patch.setattr(sys, "argv", ["oneway", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
    code = left.value.code
    return Result(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def oneway() -> Oneway:
    return call


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a test, which sees neither the user's data nor their cache."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ONEWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    return folder


@dataclass(frozen=True)
class Demo:
    """The first rounds of the demo, and where it wrote its results."""

    result: Result
    folder: Path


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo") / "made" / "for it"
    return Demo(call("demo", "--rounds", 300, "--out", folder, "--json"), folder)
