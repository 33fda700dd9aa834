"""Whatever the README, a docstring or a --help shows as an example runs."""

from __future__ import annotations

import doctest
import io
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from subprocess import PIPE

import pytest

import oneway as ow
from oneway.cli.lazy_group import LazyGroup
from oneway.cli.main import command_line, main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
FENCE = re.compile(r"^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = [
    match["code"]
    for page in (README, ROOT / "docs" / "methods.md", ROOT / "docs" / "your-data.md")
    for match in FENCE.finditer(page.read_text("utf-8"))
]


def all_commands(group: LazyGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and group of commands, as it is typed after `oneway`."""
    yield path
    for name, (where, _) in group.table.items():
        if where.endswith(":command_line"):
            yield from all_commands(group.get_command(None, name), (*path, name))
        else:
            yield (*path, name)


EXIT_CODES = {("peer", "doctor"): 1}
"""The newcomer's peer is not running, which the doctor finds wrong."""

PAGE_SECONDS = 240.0

PAGES = {("peer", "dashboard"), ("runs",)}
"""Their examples serve a page, and end when somebody presses Ctrl-C."""

PATHS = list(all_commands(command_line()))


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what examples name: edges, a stream, a peer that has learned, and bob's."""
    here = tmp_path_factory.mktemp("prepared")
    (here / "edges.csv").write_text("clinic,hospital\nhospital,lab\nlab,clinic\n")
    rows = "".join(f"{20 + n % 5},{430 * (n % 2)},{500 + n},{n % 2}\n" for n in range(20))
    (here / "stream.csv").write_text(f"Temperature,Light,CO2,Occupancy\n{rows}")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for line in (
            "peer task stream.csv --label Occupancy --out task.toml",
            f"peer init alice --task task.toml --listen {free_address()}",
            f"peer init bob --task task.toml --home bob --listen {free_address()}",
            "peer run --data stream.csv --until-done",
        ):
            code, _, err = call(line.split())
            assert code == 0, err
        _, card, _ = call(["peer", "card", "--home", "bob"])
        (here / "bob.card").write_text(card)
        assert call(["peer", "trust", "bob.card"])[0] == 0
    return here


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def newcomer(tmp_path: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh folder with the files that examples name, and no data but what is installed."""
    here = tmp_path / "here"
    shutil.copytree(prepared, here)
    monkeypatch.chdir(here)
    monkeypatch.delenv("ONEWAY_PEER", raising=False)
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "80")


def call(arguments: list[str]) -> tuple[int, str, str]:
    """Run `oneway` in this process: exit code, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.delenv("FORCE_COLOR", raising=False)
        patch.setattr(sys, "argv", ["oneway", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
    return int(left.value.code or 0), out.getvalue(), err.getvalue()


@pytest.mark.parametrize("code", PYTHON, ids=lambda code: code.split("\n")[2][:40])
@pytest.mark.usefixtures("newcomer")
def test_python_in_the_documents_runs(code, capsys):
    exec(compile(code, str(README), "exec"), {"__name__": "readme"})
    if code == PYTHON[0]:  # which shows that together is better
        shown = re.fullmatch(r"together (0\.\d+), alone (0\.\d+)\n", capsys.readouterr().out)
        assert shown is not None
        assert float(shown[1]) < float(shown[2])


def test_doctests_hold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = Path(ow.__path__[0])
    failed, attempted = [], 0
    for path in sorted(source.rglob("*.py")):
        if ">>>" not in path.read_text("utf-8"):
            continue
        parts = path.relative_to(source.parent).with_suffix("").parts
        module = import_module(".".join(part for part in parts if part != "__init__"))
        result = doctest.testmod(module)
        attempted += result.attempted
        failed += [module.__name__] * result.failed
    assert attempted > 50
    assert failed == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: " ".join(("oneway", *path)))
@pytest.mark.usefixtures("newcomer")
def test_help_ends_with_an_example_that_runs(path):
    code, help_text, err = call([*path, "--help"])
    assert (code, err) == (0, "")
    last_line = help_text.strip().splitlines()[-1].strip()
    assert last_line.startswith("Example: oneway "), f"{path}: --help ends with {last_line!r}"
    example = shlex.split(last_line.removeprefix("Example: oneway "))
    assert tuple(example[: len(path)]) == path
    if path in PAGES:
        assert_serves_a_page(example)
        return
    code, out, err = call(example)
    assert code == EXIT_CODES.get(path, 0), err
    assert out


def assert_serves_a_page(example: list[str]) -> None:
    """The command says where its page is, the page is there, and Ctrl-C ends both."""
    command = [sys.executable, "-m", "oneway", *example]
    with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            said = re.match(
                r"Open (http://127\.0\.0\.1:\d+/) in a browser", process.stdout.readline()
            )
            assert said is not None, process.stderr.read()
            with urllib.request.urlopen(said[1], timeout=PAGE_SECONDS) as answer:
                assert answer.status == 200
                assert b"oneway" in answer.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(PAGE_SECONDS) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
