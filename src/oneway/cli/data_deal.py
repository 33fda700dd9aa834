"""`oneway data deal`: a table as one file per owner, and the task that they share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli.column_notes import show_columns, warn_of_statistics
from oneway.cli.options import argument, option
from oneway.cli.out_path import Force, check_out_folder
from oneway.cli.output import AsJson, print_json
from oneway.cli.settings_flags import read_given, with_flags
from oneway.errors import ConfigError, DataError
from oneway.files.output_folder import MARKER, clear, mark

if TYPE_CHECKING:
    from oneway.streams import Stream
    from oneway.tables.table import Table

MOST_OWNERS = 1_000
"""Files are written for at most this many owners."""
_FLAGS = (
    "model", "options", "label", "columns", "exclude", "category", "numeric",
)  # fmt: skip
_COMMAND = "data deal"


@with_flags(only=_FLAGS)
def deal(
    given: Mapping[str, Any],
    name: Annotated[str, argument("DATA", "A data set, or a file.")],
    out: Annotated[Path, option("FOLDER", "New or empty.")],
    owner: Annotated[str, option("COLUMN", "Whose row it is: every value gets a file.")] = "",
    nodes: Annotated[
        int | None, option("N", "Deal the rows to this many files at random instead.", min=1)
    ] = None,
    samples: Annotated[
        int | None, option("N", "At most this many samples per owner.", min=1)
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Split a table into files for peers, by owner or at random, and write the task they share."""
    from oneway.datasets import DATASETS
    from oneway.lab.peer_folders import TASK_FILE
    from oneway.task.assembly import read_table

    check_out_folder(out, _COMMAND, force=force)
    if name not in DATASETS and Path(name).absolute().is_relative_to(out.absolute()):
        raise ConfigError(f"{name} lies in --out {out}, where files are replaced; move it away")
    if bool(owner) == bool(nodes):
        raise ConfigError(
            f"--owner is {owner!r} and --nodes is {nodes}; give one of them: a column that names "
            "the owners, or a number of owners to deal the rows to at random"
        )
    settings = read_given({**given, "data": name, "owner": owner})
    table = read_table(settings)
    dealt = table.deal_by(owner) if nodes is None else table.deal(nodes)
    clear(out, _COMMAND)
    learning = {"model": settings.with_model_for(table.label_kind).model}
    if settings.options:
        learning["options"] = settings.options
    is_own = name not in DATASETS
    about = (
        "Centers, scales and the like are statistics of all owners' rows, without noise."
        if is_own
        else ""
    )
    written = write_owner_files(table, dealt, out, samples=samples, about=about, **learning)
    mark(out, _COMMAND, sorted({path.name for path in out.iterdir()} - {MARKER}))
    show_columns(table.notes, len(table))
    if is_own:
        warn_of_statistics(about, "for one without, derive it with oneway peer task and --range.")
    if as_json:
        files = {str(path): count for path, count in written.items()}
        print_json({"task": str(out / TASK_FILE), "samples": files})
        return
    typer.echo(f"{out / TASK_FILE}  the task, the same for all")
    for path, count in written.items():
        typer.echo(f"{path}  {count:,} samples")


def write_owner_files(
    table: Table,
    dealt: Stream,
    folder: Path,
    *,
    samples: int | None = None,
    about: str = "",
    **learning: Any,
) -> dict[Path, int]:
    """Write a table as a task.toml and one CSV per owner, in the order of the stream.

    Args:
        table: With any labels.
        dealt: Its rows, a node for each owner.
        folder: New or empty.
        samples: At most this many per owner, the first ones; None for all.
        about: A comment of the task.
        learning: What is learned and how, as in `Task.of`.

    Returns:
        The number of samples in the file of each owner.

    Raises:
        DataError: There are too many owners.
        ConfigError: The folder holds something already, or cannot be written.
    """
    from oneway.lab.peer_folders import write_samples, write_task
    from oneway.task.task import Task

    if dealt.num_nodes > MOST_OWNERS:
        raise DataError(
            f"there are {dealt.num_nodes:,} owners, more than the {MOST_OWNERS:,} that files are "
            "written for; choose another column, or fewer nodes"
        )
    task = Task.of(table, **learning)
    write_task(folder, task, about)
    written = {}
    for node in range(dealt.num_nodes):
        rows = dealt.rows[:, node]
        own = rows[rows >= 0][:samples]
        name = dealt.node_names[node] if dealt.node_names else str(node)
        path = folder / f"{''.join(c if c.isalnum() else '-' for c in name)}.csv"
        written[write_samples(path, table, own, task)] = len(own)
    return written
