"""`oneway peer status` and `doctor`: how a peer is doing, and what is wrong with it."""

from __future__ import annotations

import time

import typer
from rich.console import Console
from rich.text import Text

from oneway.cli.output import AsJson, note, print_facts, print_json
from oneway.cli.peer_home import HomeFolder, open_home
from oneway.display.terminal_table import TerminalTable, print_table

_STYLES = {"problem": "bold red", "note": "yellow", "ok": "green"}
_NAMES = ("phase", "link", "state")
"""Columns of words; those behind them hold numbers and times."""
_LEAST_IMPORTANT = ("weight", "phase", "clipped", "strikes", "rejected", "lag")
"""Of the columns, in a narrow terminal."""


def status(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Say how the peer is doing: what it learned, to whom it sends, from whom it hears."""
    import msgspec

    from oneway.peer.doctor import spoken_age
    from oneway.peer.machine import last_status
    from oneway.peer.status_text import edge_notes, receiver_table, sender_table, status_facts

    mine = open_home(home)
    name, process = mine.config().name, mine.running_process()
    now = time.time()
    last = last_status(mine, now)
    age = None if last is None else max(0.0, now - last.time)
    if as_json:
        print_json(
            {
                "name": name,
                "running": process is not None,
                "process": process,
                "age": age,
                "status": None if last is None else msgspec.to_builtins(last),
            }
        )
        return
    runs = f"runs as process {process}" if process is not None else "is not running"
    if last is None or age is None:
        never = "and has not said anything yet" if process is not None else "and never was"
        typer.echo(f"{name} {runs} {never}; to start it: oneway peer run --data FILE")
        return
    old = "" if process is not None and age < 10 else f"; these numbers are {spoken_age(age)} old"
    print_facts(f"{name} {runs}{old}", status_facts(last))
    _print_edges(receiver_table(last), "It sends to nobody", "trust")
    _print_edges(sender_table(last), "Nobody sends to it", "admit")
    for sentence in edge_notes(last):
        note(sentence)


def doctor(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Say in sentences what is wrong and what to do; exit code 1 if there is a problem."""
    import msgspec

    from oneway.peer.doctor import diagnose
    from oneway.peer.machine import examine, last_status

    mine, now = open_home(home), time.time()
    findings = diagnose(last_status(mine, now), mine.config(), mine.task(), examine(mine, now))
    if as_json:
        print_json(msgspec.to_builtins(findings))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for found in findings:
            word = found.severity
            console.print(Text.assemble((f"{word:<7}", _STYLES[word]), "  ", found.sentence))
    if any(found.severity == "problem" for found in findings):
        raise typer.Exit(1)


def _print_edges(edges: list[dict[str, str]], nobody: str, command: str) -> None:
    if not edges:
        typer.echo(f"{nobody}; with a card of somebody: oneway peer {command} 'CARD'")
        return
    columns = list(edges[0])
    right = [column for column in columns[1:] if column not in _NAMES]
    table = TerminalTable(columns, right=right, drop=_LEAST_IMPORTANT, tight=True)
    for edge in edges:
        table.add_row(*edge.values())
    print_table(table)
