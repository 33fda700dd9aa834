"""`oneway data`: which data sets there are, where they live, how to get them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

from oneway.cli.lazy_group import LazyGroup, make_group
from oneway.cli.options import argument, option
from oneway.cli.output import (
    AsJson,
    note,
    print_facts,
    print_json,
    progress_bar,
)
from oneway.display.terminal_table import TerminalTable, print_table

if TYPE_CHECKING:
    from oneway.datasets import DataSet

Name = Annotated[str, argument("NAME", "A data set that `oneway data list` shows.")]

_COMMANDS = {
    "list": ("oneway.cli.data:list_all", "--json"),
    "info": ("oneway.cli.data:info", "flights"),
    "fetch": ("oneway.cli.data:fetch_one", "flights"),
    "deal": ("oneway.cli.data_deal:deal", "flights --owner origin --out flights"),
}


def command_line() -> LazyGroup:
    """The commands of `oneway data`."""
    return make_group("oneway data", _COMMANDS, _data, example="list")


def _data() -> None:
    """List, describe, download and deal data sets."""


def list_all(as_json: AsJson = False) -> None:
    """List the data sets and say which are here."""
    from oneway.datasets import DATASETS, data_folder

    if as_json:
        print_json([_as_dict(item) for item in DATASETS.values()])
        return
    number, what = "rows or edges", "what it is"
    table = TerminalTable(
        ("name", "here", number, what), right=[number], wrapped=what, drop=[number]
    )
    for item in DATASETS.values():
        table.add_row(item.name, "yes" if item.is_here() else "no", f"{item.rows:,}", item.about)
    print_table(table)
    note(
        f"Data sets live in {data_folder()}; ONEWAY_DATA names another folder.\n"
        "To get one that is not here: oneway data fetch NAME"
    )


def info(name: Name, as_json: AsJson = False) -> None:
    """Say what a data set is, where it belongs and whether it is here."""
    from oneway.datasets import DATASETS

    item = DATASETS[name]
    if as_json:
        print_json(_as_dict(item))
        return
    print_facts(
        item.name,
        {
            "what": item.about,
            "edges" if item.kind == "graph" else "rows": f"{item.rows:,}",
            "licence": item.licence,
            "source": item.url or item.how_to_get,
            "here": ", ".join(map(str, item.present_files()))
            or ("yes" if item.is_here() else f"no; {item.how_to_get}"),
            "belongs in": str(item.folder()),
        },
    )


def fetch_one(
    name: Name,
    folder: Annotated[
        Path | None, option("FOLDER", "Data folder.", "ONEWAY_DATA, or the user's cache")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download a data set into the data folder and check it."""
    from oneway.datasets import DATASETS, fetch

    item = DATASETS[name]
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with progress_bar(*columns, TimeRemainingColumn()) as bar:
        task = bar.add_task(name, total=None)

        def show(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        paths = [str(path) for path in fetch(name, folder, show)]
    if as_json:
        print_json({"name": name, "files": paths})
        return
    note(f"{name} is ready:" if item.url else item.how_to_get)
    for path in paths:
        typer.echo(path)


def _as_dict(item: DataSet) -> dict[str, object]:
    return {name: getattr(item, name) for name in ("name", "kind", "about", "rows", "licence")} | {
        "url": item.url or None,
        "present": item.is_here(),
        "files": list(map(str, item.present_files())),
        "folder": str(item.folder()),
    }
