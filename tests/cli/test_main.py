"""How errors reach a person, and that a command makes the flags of no other command."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from oneway.cli import output
from oneway.cli.main import command_line
from oneway.errors import ConfigError


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let the command `graph` fail in the middle of its work."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("oneway.task.assembly.named_graph", fail)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ENOSPC])
def test_an_error_that_the_user_caused_is_one_sentence(number, oneway, monkeypatch):
    failing(monkeypatch, OSError(number, os.strerror(number), "edges.csv"))
    result = oneway("graph", "edges.csv")
    assert result.code == 2
    assert result.err == f"Error: {os.strerror(number)}: edges.csv\n"


def test_too_little_memory_is_one_sentence(oneway, monkeypatch):
    failing(monkeypatch, MemoryError("Unable to allocate 3 TiB"))
    result = oneway("graph", "edges.csv")
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert "3 TiB" in result.err


@pytest.mark.parametrize("error", [OSError(errno.EBADF, "bad"), ValueError("a bug")], ids=type)
def test_an_unexpected_error_keeps_its_traceback(error, monkeypatch):
    from oneway.cli.main import main

    failing(monkeypatch, error)
    monkeypatch.setattr(sys, "argv", ["oneway", "graph", "edges.csv"])
    with pytest.raises(type(error)):
        main()


@pytest.mark.parametrize("way", ["flag", "environment"])
def test_debug_shows_the_traceback_of_any_error(way, oneway, monkeypatch):
    failing(monkeypatch, ConfigError("edges.csv is wrong; mend it"))
    if way == "environment":
        monkeypatch.setenv("ONEWAY_DEBUG", "1")
    result = oneway(*(["--debug"] if way == "flag" else []), "graph", "edges.csv")
    assert result.code == 2
    assert "Traceback" in result.err
    assert result.err.endswith("Error: edges.csv is wrong; mend it\n")


def test_every_command_can_be_built():
    group = command_line()
    assert set(group.list_commands(None)) == set(group.table)
    for name in group.table:
        command = group.get_command(None, name)
        assert command.name == name
        for inner in getattr(command, "table", ()):
            assert command.get_command(None, inner).name == inner


@pytest.mark.parametrize("arguments", ["--version", "peer run --help"])
def test_a_command_imports_no_other_command(arguments):
    script = (
        "import sys; from oneway.cli.main import main; sys.argv[0] = 'oneway'\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('oneway.cli.') or "
        "name in ('oneway.task.settings', 'numpy', 'polars')])"
    )
    run = [sys.executable, "-c", script, *arguments.split()]
    shown = subprocess.run(run, capture_output=True, text=True, check=True, timeout=240).stdout
    modules = shown.splitlines()[-1]
    for other in ("cli.simulate", "cli.lab", "cli.tune", "task.settings", "'polars'"):
        assert other not in modules


def test_numbers_that_json_cannot_hold_become_null(capsys):
    output.print_json({"loss": float("inf")})
    assert '"loss": null' in capsys.readouterr().out
