"""`oneway peer task`: a first task.toml from a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from oneway.cli.output import note
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.task.derive import Derived
    from oneway.task.task import ModelName


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("task", epilog="Example: oneway peer task stream.csv --label Occupancy")(task)


def task(
    data: Annotated[Path, typer.Argument(metavar="CSV", help="A CSV file with a header.")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="What to predict.")],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="logistic, ridge, hinge or softmax.",
            show_default="by the label: two values, some, or many numbers",
        ),
    ] = None,
    learning_rate: Annotated[
        float, typer.Option(metavar="RATE", help="The length of a step, gamma.")
    ] = 0.3,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it there.", show_default="standard output"),
    ] = None,
) -> None:
    """Derive a task from a CSV file: its numeric columns, their scaling, its labels.

    One peer does this once; all peers of a network must have the very same file.
    """
    from oneway.task.derive import derive_task

    derived = derive_task(data, label, model=_model(model), learning_rate=learning_rate)
    text = derived.task.to_toml()
    if out is None:
        typer.echo(text, nl=False)
    else:
        _write_new(out, text)
        typer.echo(f"{out} is written.")
    _say_what_it_is(data, derived)


def _model(name: str | None) -> ModelName | None:
    """The model of that name.

    Raises:
        ConfigError: If there is none.
    """
    from oneway.sentences import nearest, shown
    from oneway.task.task import ModelName

    known = get_args(ModelName)
    if name is not None and name not in known:
        raise ConfigError(
            f"--model is {shown(name)}; it must be one of {', '.join(known)}{nearest(name, known)}"
        )
    return cast("ModelName | None", name)


def _write_new(path: Path, text: str) -> None:
    """Write a file that was not there: a task in use must not change under its peers.

    Raises:
        ConfigError: If it is there, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(
            f"{path} exists, and a task is never overwritten; choose another name with --out"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; choose another --out") from error


def _say_what_it_is(data: Path, derived: Derived) -> None:
    task = derived.task
    classes = f" ({', '.join(task.classes)})" if task.classes else ""
    note(
        f"{data}: {derived.num_rows:,} rows; {task.model} predicts {task.label}{classes} from "
        f"{', '.join(feature.name for feature in task.features)}."
    )
    for name, reason in derived.skipped.items():
        note(f"Skipped the column {name or 'without a name'}: {reason}.")
    if derived.num_bad_rows:
        note(f"Skipped {derived.num_bad_rows:,} rows without a label or with missing cells.")
    note(
        "Careful: its centers and scales are statistics of your data, and whoever gets the file "
        "sees them; round or replace them if they are not to be known."
    )
