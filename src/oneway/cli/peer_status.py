"""`oneway peer status` and `doctor`: how a peer is doing, and what is wrong with it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from oneway.cli.output import AsJson, note, print_facts, print_json, print_table
from oneway.cli.peer_home import HomeFolder, open_home

if TYPE_CHECKING:
    from oneway.records.status import ReceiverStatus, SenderStatus, Status

_STYLES = {"problem": "bold red", "note": "yellow", "ok": "green"}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("status", epilog="Example: oneway peer status --json")(status)
    app.command("doctor", epilog="Example: oneway peer doctor")(doctor)


def status(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Say how the peer is doing: what it learned, to whom it sends, from whom it hears."""
    import msgspec

    from oneway.peer.doctor.spoken_time import spoken_age
    from oneway.peer.status import read_status

    mine = open_home(home)
    name, process = mine.config().name, mine.running_process()
    last, now = read_status(mine.status_path), time.time()
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
    print_facts(f"{name} {runs}{old}", _facts(last))
    if last.receivers:
        print_table(_receivers(last.receivers, last.time))
    else:
        typer.echo("It sends to nobody; with a card of somebody: oneway peer trust 'CARD'")
    if last.senders:
        print_table(_senders(last.senders, last.time))
    else:
        typer.echo("Nobody sends to it; with a card of somebody: oneway peer admit 'CARD'")
    problems = [peer.problem for peer in last.receivers] + [peer.problem for peer in last.senders]
    for sentence in filter(None, problems):
        note(sentence)


def doctor(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Say in sentences what is wrong and what to do; exit code 1 if there is a problem."""
    import msgspec
    from rich.console import Console

    from oneway.peer.doctor.doctor import diagnose, examine
    from oneway.peer.status import read_status

    mine = open_home(home)
    findings = diagnose(
        read_status(mine.status_path), mine.config(), mine.task(), examine(mine, time.time())
    )
    if as_json:
        print_json(msgspec.to_builtins(findings))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for found in findings:
            word = found.severity
            console.print(Text.assemble((f"{word:<7}", _STYLES[word]), "  ", found.sentence))
    if any(found.severity == "problem" for found in findings):
        raise typer.Exit(1)


def _facts(status: Status) -> dict[str, str]:
    facts = {"card": status.card, "samples": f"{status.samples:,}"}
    if status.skipped:
        facts["skipped"] = f"{status.skipped:,}, the last: {status.last_skipped or 'before'}"
    if status.average_loss is not None:
        recent = "" if status.recent_loss is None else f", lately {status.recent_loss:.4f}"
        facts["loss"] = f"{status.average_loss:.4f} on average{recent}"
    if status.accuracy is not None:
        facts["accuracy"] = f"{status.accuracy:.2%}, each predicted before it was learned from"
    facts["mass"] = f"{status.mass:.6f}" + ("" if status.minted else ", its own is not in it yet")
    if status.leaving:
        facts["leaving"] = "everything is handed over" if status.drained else "hands over"
    if status.paused:
        facts["paused"] = "neither learns nor pushes"
    if status.disk_problem:
        facts["disk"] = status.disk_problem
    if status.refused:
        facts["refused"] = f"{status.refused:,} messages from keys that are not admitted"
    if status.undecodable:
        facts["undecodable"] = f"{status.undecodable:,} messages"
    if status.api:
        facts["local API"] = status.api
    return facts


def _receivers(receivers: list[ReceiverStatus], now: float) -> Table:
    table = _table("sends to", "phase", "link")
    for heading in ("weight", "sent", "acked", "lag", "last answer"):
        table.add_column(heading, justify="right", no_wrap=True)
    for peer in receivers:
        table.add_row(
            peer.name,
            peer.phase,
            peer.link,
            f"{peer.weight:g}" if peer.weight else "-",
            f"{peer.seq:,}",
            f"{peer.acked:,}",
            f"{peer.lag:.1f} s" if peer.lag < 60 else _short(peer.lag),
            _ago(peer.last_answer, now),
        )
    return table


def _senders(senders: list[SenderStatus], now: float) -> Table:
    table = _table("hears from", "state")
    for heading in ("heard", "last push", "rejected", "clipped", "strikes"):
        table.add_column(heading, justify="right", no_wrap=True)
    for peer in senders:
        table.add_row(
            peer.name,
            _state(peer),
            f"{peer.seq:,}",
            _ago(peer.last_push, now),
            f"{peer.num_rejected:,}",
            f"{peer.clipped:,}",
            f"{peer.strikes:,}",
        )
    return table


def _state(peer: SenderStatus) -> str:
    if peer.quarantined:
        return "quarantined"
    if not peer.admitted:
        return "not admitted"
    return "closed" if peer.closed else "admitted"


def _table(name: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(name, overflow="fold", min_width=len(name))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _ago(moment: float, now: float) -> str:
    return f"{_short(max(0.0, now - moment))} ago" if moment else "never"


def _short(age: float) -> str:
    """An age that fits into a column: 7 s, 3 min, 2 h, 5 d."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if age >= size:
            return f"{age // size:.0f} {unit}"
    return f"{age:.0f} s"
