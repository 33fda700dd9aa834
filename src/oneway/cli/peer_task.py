"""`oneway peer task`: a first task.toml from a CSV file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli.options import argument, option
from oneway.cli.output import note
from oneway.cli.settings_flags import read_given
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.task.task_from_file import Derived

LEARNING = (
    "model", "method", "learning_rate", "schedule", "step", "transforms", "l2", "intercept",
    "options",
)  # fmt: skip


def task(
    given: Mapping[str, Any],
    data: Annotated[Path, argument("CSV", "A CSV file with a header.")],
    label: Annotated[str, option("COLUMN", "What to predict.")],
    out: Annotated[Path | None, option("FILE", "Write it there.", "standard output")] = None,
) -> None:
    """Derive a task from a CSV file: its numeric columns, their scaling, its labels.

    Without --model the label decides: two values mean logistic, some softmax, many numbers ridge.
    One peer does this once; all peers of a network must have the very same file.
    """
    from oneway.task.learning import without_former_names
    from oneway.task.task_from_file import derive_task

    read_given(given)  # checks them
    learning, _ = without_former_names(given)
    derived = derive_task(data, label, **learning)
    text = derived.task.to_toml()
    if out is None:
        typer.echo(text, nl=False)
    else:
        _write_new(out, text)
        typer.echo(f"{out} is written.")
    _say_what_it_is(data, derived)


def _write_new(path: Path, text: str) -> None:
    """Write a file that was not there: a task in use must not change under its peers."""
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
