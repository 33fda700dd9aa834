"""`oneway data`: which data sets there are, where they live, how to get them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

from oneway.cli.column_notes import show_columns, warn_of_statistics
from oneway.cli.options import argument, option
from oneway.cli.out_path import Force, check_out_folder, empty_folder
from oneway.cli.output import (
    AsJson,
    make_table,
    note,
    print_facts,
    print_json,
    print_table,
    progress_bar,
)
from oneway.cli.settings_flags import read_given, with_flags

if TYPE_CHECKING:
    from oneway.datasets import Status

Name = Annotated[str, argument("NAME", "A data set that `oneway data list` shows.")]

data = typer.Typer(
    no_args_is_help=True,
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
    number, what = "rows or edges", "what it is"
    table = make_table("name", "here", number, what, right=[number], wrapped=what, drop=[number])
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
            "here": ", ".join(str(path) for path in status.found)
            or ("yes" if status.present else f"no; {item.note}"),
            "belongs in": str(status.where),
        },
    )


@data.command("fetch", epilog="Example: oneway data fetch flights")
def fetch_one(
    name: Name,
    url: Annotated[str | None, option("URL", "A mirror to download from instead.")] = None,
    folder: Annotated[
        Path | None, option("FOLDER", "Data folder.", "ONEWAY_DATA, or the user's cache")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download a data set into the data folder and check it."""
    from oneway.datasets import fetch
    from oneway.datasets import info as describe

    item = describe(name).data_set
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with progress_bar(*columns, TimeRemainingColumn()) as bar:
        task = bar.add_task(name, total=None)

        def show(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        paths = [str(path) for path in fetch(name, folder, url, show)]
    if as_json:
        print_json({"name": name, "files": paths})
        return
    note(f"{name} is ready:" if item.url else item.note)
    for path in paths:
        typer.echo(path)


def deal(
    given: Mapping[str, Any],
    name: Annotated[str, argument("DATA", "A data set, or a file.")],
    owner: Annotated[str, option("COLUMN", "Whose row it is: every value gets a file.")],
    out: Annotated[Path, option("FOLDER", "New or empty.")],
    samples: Annotated[int | None, option("N", "At most so many per owner.", min=1)] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Split a table by owner into files for peers: one CSV each, and the task.toml they share."""
    from oneway.datasets import DATASETS
    from oneway.lab.peer_folders import TASK_FILE, are_owner_files, write_owner_files
    from oneway.task.assembly import read_table

    check_out_folder(out, force=force, is_own=are_owner_files)
    settings = read_given({**given, "data": name, "owner": owner})
    table = read_table(settings)
    empty_folder(out)
    learning = {"model": settings.with_model_for(table.label_kind).model}
    if settings.options:
        learning["options"] = settings.options
    is_own = name not in DATASETS
    about = (
        "Centers, scales and the like are statistics of all owners' rows, without noise."
        if is_own
        else ""
    )
    written = write_owner_files(table, owner, out, samples=samples, about=about, **learning)
    show_columns(table.notes, len(table))
    if is_own:
        note(about)
        warn_of_statistics(
            "for one without, derive it with oneway peer task and --range or --private-scales."
        )
    if as_json:
        files = {str(path): count for path, count in written.items()}
        print_json({"task": str(out / TASK_FILE), "samples": files})
        return
    typer.echo(f"{out / TASK_FILE}  the task, the same for all")
    for path, count in written.items():
        typer.echo(f"{path}  {count:,} samples")


def command_line() -> typer.Typer:
    """The commands. Flags of a specification name what plugins register: not before they are asked.

    A plugin that cannot be imported is then an error of the command line, in one sentence.
    """
    if all(command.name != "deal" for command in data.registered_commands):
        columns = ("label", "columns", "exclude", "category", "numeric", "function")
        wanted = ("model", "options", *columns)
        example = "Example: oneway data deal flights --owner origin --out flights"
        data.command("deal", epilog=example)(with_flags(deal, only=wanted))
    return data


def _as_dict(status: Status) -> dict[str, object]:
    item = status.data_set
    return {name: getattr(item, name) for name in ("name", "kind", "about", "rows", "licence")} | {
        "url": item.url or None,
        "present": status.present,
        "files": list(map(str, status.found)),
        "folder": str(status.where),
    }
