"""`oneway peer task`: a first task.toml from a CSV file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli.options import argument, option, switch
from oneway.cli.output import note
from oneway.cli.settings_flags import read_given
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.task.task_from_file import Derived

LEARNING = (
    "model", "method", "learning_rate", "schedule", "step", "transforms", "l2", "intercept",
    "options", "samples_per_push", "privacy", "epsilon", "delta", "clip", "unit", "group",
    "records_per_group",
)  # fmt: skip


def task(
    given: Mapping[str, Any],
    data: Annotated[Path, argument("CSV", "A CSV file with a header.")],
    label: Annotated[str, option("COLUMN", "What to predict.")],
    out: Annotated[Path | None, option("FILE", "Write it there.", "standard output")] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="COLUMN=LOW..HIGH",
            help="Where values lie by public knowledge: scaled by that, not by your data.",
            rich_help_panel="Privacy",
        ),
    ] = None,
    private_scales: Annotated[
        bool,
        switch(
            "--private-scales",
            "Scale by your data with noise, at the task's epsilon; needs every --range.",
            "Privacy",
        ),
    ] = False,
) -> None:
    """Derive a task from a CSV file: its numeric columns, their scaling, its labels.

    Without --model the label decides: two values mean logistic, some softmax, many numbers ridge.
    One peer does this once; all peers of a network must have the very same file.
    """
    from oneway.peer.noise import SecretNormals
    from oneway.task.learning import without_former_names
    from oneway.task.privacy import PRIVACY_KEYS
    from oneway.task.private_scales import parse_ranges
    from oneway.task.task_from_file import derive_task

    settings = read_given(given)  # checks them
    named, _ = without_former_names(given)
    learning = {name: value for name, value in named.items() if name not in PRIVACY_KEYS}
    derived = derive_task(
        data,
        label,
        ranges=parse_ranges(ranges or []),
        normals=SecretNormals() if private_scales else None,
        **learning | {"privacy": settings.privacy},
    )
    comment = fill(derived.scales, 98, initial_indent="# ", subsequent_indent="# ")
    text = f"{comment}\n{derived.task.to_toml()}"
    if out is None:
        typer.echo(text, nl=False)
    else:
        _write_new(out, text)
        typer.echo(f"{out} is written.")
    _say_what_it_is(data, derived)
    _say_what_it_tells(derived, private_scales)


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
    note(f"privacy: {task.privacy_sentence}.")
    if derived.num_over:
        note(
            f"Skipped {derived.num_over:,} rows of groups with more than "
            f"{task.privacy.records_per_group:,}: no peer would learn from them."
        )


def _say_what_it_tells(derived: Derived, private_scales: bool) -> None:
    from oneway.privacy import epsilon_of, mu_for

    note(derived.scales)
    privacy = derived.task.privacy
    if private_scales:
        # Two releases about the same row: mu^2 is a sum.
        both = epsilon_of(math.sqrt(2.0) * mu_for(privacy.epsilon, privacy.delta), privacy.delta)
        note(
            "If you learn from these rows as well, both together have epsilon "
            f"{math.ceil(100 * both) / 100:g}, delta {privacy.delta:g}; rows that are not in this "
            "file have the task's."
        )
    elif derived.exact:
        note(
            "Careful: such centers and scales are statistics of your data, and whoever gets the "
            "file sees them; give --range for every column, and --private-scales if ranges alone "
            "are too coarse."
        )
