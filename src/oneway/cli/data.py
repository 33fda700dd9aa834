"""`oneway data`: which data sets there are, where they live, how to get them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from oneway.cli.output import AsJson, note, print_facts, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from oneway.datasets import Status

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A data set that `oneway data list` shows.")
]

data = typer.Typer(no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(
        data,
        name="data",
        help="List, describe, download and deal data sets.",
        epilog="Example: oneway data list",
    )


@data.command("list", epilog="Example: oneway data list --json")
def list_all(as_json: AsJson = False) -> None:
    """List the data sets and say which are here."""
    from oneway.datasets import catalogue, data_folder

    known = catalogue()
    if as_json:
        print_json([_as_dict(status) for status in known])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("here", no_wrap=True)
    table.add_column("rows or edges", justify="right", no_wrap=True)
    table.add_column("what it is")
    for status in known:
        item = status.data_set
        table.add_row(item.name, "yes" if status.present else "no", f"{item.rows:,}", item.about)
    print_table(table)
    note(
        f"Data sets live in {data_folder()}; ONEWAY_DATA names another folder.\n"
        "To get one that is not here: oneway data fetch NAME"
    )


@data.command("info", epilog="Example: oneway data info flights")
def info(name: Name, as_json: AsJson = False) -> None:
    """Say what a data set is, where it belongs and whether it is here."""
    from oneway.datasets import info as describe

    status = describe(name)
    if as_json:
        print_json(_as_dict(status))
        return
    item = status.data_set
    print_facts(
        item.name,
        {
            "what": item.about,
            "edges" if item.kind == "graph" else "rows": f"{item.rows:,}",
            "licence": item.licence,
            "source": item.url or item.note,
            "here": ", ".join(str(path) for path in status.found) or f"no; {item.note}",
            "belongs in": str(status.where),
        },
    )


@data.command("fetch", epilog="Example: oneway data fetch flights")
def fetch_one(
    name: Name,
    url: Annotated[str | None, typer.Option(help="A mirror to download from instead.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Data folder.", show_default="ONEWAY_DATA, or the user's cache"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download a data set into the data folder and check it."""
    from oneway.datasets import fetch
    from oneway.datasets import info as describe

    item = describe(name).data_set
    with progress_bar(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    ) as progress:
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
    note(f"{name} is ready:" if item.url else item.note)
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


@data.command("deal", epilog="Example: oneway data deal flights --owner origin --out flights")
def deal(
    name: Annotated[
        str, typer.Argument(metavar="DATA", help="A data set with two labels, or a file of one.")
    ],
    owner: Annotated[
        str, typer.Option(metavar="COLUMN", help="Whose row it is: every value gets a file.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New or empty.")],
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What to predict, in a file.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most so many per owner.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Split a table by owner into files for peers: one CSV each, and the task.toml they share."""
    from oneway.datasets import load
    from oneway.lab.handout import hand_out

    written = hand_out(load(name, label=label), owner, out, samples=samples)
    if as_json:
        files = {str(path): count for path, count in written.samples.items()}
        print_json({"task": str(written.task), "samples": files})
        return
    typer.echo(f"{written.task}  the task, the same for all")
    for path, count in written.samples.items():
        typer.echo(f"{path}  {count:,} samples")
