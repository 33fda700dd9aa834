"""`oneway data`: which data sets there are, where they live, how to get them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from oneway.cli.output import AsJson, note, print_facts, print_json, print_table
from oneway.streams import Status, catalogue, data_folder, fetch
from oneway.streams import info as describe

data = typer.Typer(help="Data sets: list, describe, download.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(data, name="data", epilog="Example: oneway data list")


@data.command("list", epilog="Example: oneway data list --json")
def list_all(as_json: AsJson = False) -> None:
    """List the data sets and say which are here."""
    known = catalogue()
    if as_json:
        print_json([_as_dict(status) for status in known])
        return
    table = Table(title=f"Data in {data_folder()} (set by ONEWAY_DATA)", title_justify="left")
    for heading in ("name", "what it is", "rows", "here", "how to get it"):
        table.add_column(heading, justify="right" if heading == "rows" else "left")
    for status in known:
        item = status.data_set
        here = "yes" if status.present else "no"
        table.add_row(item.name, item.about, f"{item.rows:,}", here, Text(item.note))
    print_table(table)


@data.command(epilog="Example: oneway data info flights")
def info(
    name: Annotated[str, typer.Argument(help="A name that `oneway data list` shows.")],
    as_json: AsJson = False,
) -> None:
    """Say what a data set is, where it belongs and whether it is here."""
    status = describe(name)
    if as_json:
        print_json(_as_dict(status))
        return
    item = status.data_set
    print_facts(
        item.name,
        {
            "what": item.about,
            "rows": f"{item.rows:,}",
            "licence": item.licence,
            "source": item.url or item.note,
            "here": ", ".join(str(path) for path in status.found) or f"no; {item.note}",
            "belongs in": str(status.where),
        },
    )


@data.command("fetch", epilog="Example: oneway data fetch flights")
def fetch_one(
    name: Annotated[str, typer.Argument(help="A name that `oneway data list` shows.")],
    url: Annotated[str | None, typer.Option(help="A mirror to download from instead.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Data folder; default ONEWAY_DATA.")] = None,
    as_json: AsJson = False,
) -> None:
    """Download a data set into the data folder and check it."""
    with Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(),
        console=Console(file=sys.stderr), transient=True,
    ) as progress:  # fmt: skip
        task = progress.add_task(name, total=None)
        paths = fetch(
            name,
            folder,
            url,
            lambda done, total: progress.update(task, completed=done, total=total),
        )
    if as_json:
        print_json({"name": name, "files": [str(path) for path in paths]})
        return
    note(describe(name).data_set.note if not describe(name).data_set.url else f"{name} is ready:")
    for path in paths:
        typer.echo(path)


def _as_dict(status: Status) -> dict[str, object]:
    item = status.data_set
    return {
        "name": item.name,
        "kind": item.kind,
        "about": item.about,
        "rows": item.rows,
        "licence": item.licence,
        "url": item.url or None,
        "present": status.present,
        "files": [str(path) for path in status.found],
        "folder": str(status.where),
    }
