"""Ways to call the command line: in this process, and as processes that end with the test."""

from __future__ import annotations

import io
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oneway.cli.main import main
from oneway.errors import OnewayError


@dataclass(frozen=True)
class Result:
    """What a command leaves behind; the error that ended it, if one did."""

    code: int
    out: str
    err: str
    error: BaseException | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def check_refused(self, kind: type[OnewayError], *culprits: str) -> None:
        """Exit code 2, an error of this class, and one last sentence that names every culprit."""
        assert isinstance(self.error, kind), (self.error, self.err)
        assert self.code == 2
        sentence = self.err.splitlines()[-1]
        assert sentence.startswith("Error: ")
        assert "Traceback" not in self.err
        for culprit in culprits:
            assert culprit in sentence


Oneway = Callable[..., Result]
LIMIT_SECONDS = 240.0
"""Of every wait: only reached when something is broken, however busy the machine is."""

_SETPRIV = shutil.which("setpriv")
_END_WITH_PYTEST = [_SETPRIV, "--pdeathsig", "KILL", "--"] if _SETPRIV else []
"""Also if pytest is killed, and runs no finaliser any more; on Linux, which has that."""


def call(*arguments: object) -> Result:
    """Run `oneway` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.delenv("FORCE_COLOR", raising=False)
        patch.setattr(sys, "argv", ["oneway", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
    code = left.value.code
    error = left.value.__context__
    return Result(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue(), error)


@pytest.fixture(scope="session")
def oneway() -> Oneway:
    return call


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[Any]]]:
    """Starts commands, each in a process group that ends with the test, or with pytest."""
    started: list[subprocess.Popen[Any]] = []

    def start(command: list[object], **options: Any) -> subprocess.Popen[Any]:
        whole = [*_END_WITH_PYTEST, *map(str, command)]
        process = subprocess.Popen(whole, process_group=0, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        # The group outlives its leader if that left somebody behind.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LIMIT_SECONDS)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def read_until() -> Callable[[int, bytes], bytes]:
    """Reads from a pipe or a terminal until a word has appeared."""

    def read(source: int, word: bytes) -> bytes:
        seen = b""
        deadline = time.monotonic() + LIMIT_SECONDS
        while word not in seen:
            ready, _, _ = select.select([source], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{word!r} did not appear; what did: {seen!r}"
            data = os.read(source, 4096)
            assert data, f"{word!r} did not appear before the end; what did: {seen!r}"
            seen += data
        return seen

    return read


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a test, which sees neither the user's data nor their cache."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "120")
    return folder
