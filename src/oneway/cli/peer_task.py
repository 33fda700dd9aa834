"""`oneway peer task`: a first task.toml from a CSV file or arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli.column_notes import show_columns, warn_of_statistics
from oneway.cli.options import Allow, argument, option, switch
from oneway.cli.out_path import Force, check_out_file, write_out_file
from oneway.cli.output import note
from oneway.cli.settings_flags import read_given, with_flags
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.task.derive import Derived
    from oneway.task.task import Task

LEARNING = (
    "model", "method", "learning_rate", "schedule", "step", "transforms", "l2", "intercept",
    "options", "samples_per_push", "privacy", "epsilon", "delta", "clip", "unit", "group",
    "records_per_group", "columns", "exclude", "category", "numeric",
)  # fmt: skip


@with_flags(only=LEARNING, defaults={"model": "as the label says"})
def task(
    given: Mapping[str, Any],
    files: Annotated[
        list[Path],
        argument(
            "FILE", "A CSV file with a header, or arrays (.npy, images); with --merge, task files."
        ),
    ],
    label: Annotated[str | None, option("COLUMN", "The column to predict.")] = None,
    merge: Annotated[
        bool,
        switch("--merge", "Merge the tasks that several sites derived: a.toml b.toml ..."),
    ] = False,
    out: Annotated[Path | None, option("FILE", "Write it there.", "standard output")] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="COLUMN=LOW..HIGH",
            help="Range by public knowledge: the column is scaled by it, not by your data.",
            rich_help_panel="Privacy",
        ),
    ] = None,
    allow: Allow = None,
    force: Force = False,
) -> None:
    """Derive a task from a CSV file or arrays: columns, their scaling, label and model.

    Columns are numbers, booleans, categories or times by what they hold. Without --model the label
    decides: two values mean logistic, a few softmax, many numbers ridge.
    One peer does this once; all peers of a network must have the very same file. Or every site does
    it with the same flags, and --merge pools the tasks: all values of categories, scales of all
    rows. It reads nothing but the task files.
    """
    if out is not None:
        _check_out(out, force=force)
    if merge:
        _merge(given, files, label, out, allow or (), force=force)
        return
    from oneway.tables.arrays import holds_arrays

    if len(files) != 1 or (label is None and not holds_arrays(files[0])):
        raise ConfigError(
            "a task is derived from one CSV file, and --label COLUMN names the column to predict; "
            "to merge several tasks, add --merge"
        )
    [data] = files
    from oneway.tables.inference import make_choices
    from oneway.task.derive import derive_task
    from oneway.task.privacy import PRIVACY_KEYS
    from oneway.task.ranges import parse_ranges
    from oneway.task.settings import AUTO, COLUMN_KEYS

    settings = read_given(given)  # checks them
    apart = (*PRIVACY_KEYS, *COLUMN_KEYS)
    learning = {name: value for name, value in given.items() if name not in apart}
    if learning.get("model") == AUTO:
        del learning["model"]
    derived = derive_task(
        data,
        label,
        choices=make_choices(**settings.choices),
        ranges=parse_ranges(ranges or []),
        **learning | {"privacy": settings.privacy},
    )
    _write(derived.task, derived.scales, out, force=force)
    _describe(data, derived)
    if not derived.exact:
        note(derived.scales)
        return
    warn_of_statistics(
        derived.scales,
        "to keep them private, give --range for every column of numbers and --category "
        "COLUMN=A,B,C for categories.",
    )


def _merge(
    given: Mapping[str, Any],
    files: list[Path],
    label: str | None,
    out: Path | None,
    allow: Collection[str],
    *,
    force: bool,
) -> None:
    from oneway.sentences import listed, shown
    from oneway.task.merging import merge_tasks
    from oneway.task.task import Task

    if given or label is not None:
        raise ConfigError(
            "--merge reads nothing but task files, which have all other settings; leave "
            f"{listed(sorted({*given, *(['label'] if label else [])}))} out"
        )
    merged = merge_tasks({str(path): Task.read(path, allow=allow) for path in files})
    task, sites = merged.task, f"{len(files)} sites"
    rows = f"{task.rows:,} rows of {sites}, weighted by rows" if task.rows else f"{sites} alike"
    about = f"Centers and scales are pooled from {rows}, categories have the values of all."
    _write(task, f"{about} They reveal what the tasks of the sites revealed.", out, force=force)
    note(f"{about} {task.model} predicts {task.label} from {len(task.features):,} columns.")
    if not merged.is_weighted:
        note("Careful: not every task has its number of rows, so all count alike.")
    for name, having in merged.left_out.items():
        note(f"Left out {shown(name)}: only {listed(having)} has it.")


def _write(task: Task, about: str, out: Path | None, *, force: bool) -> None:
    """Print the task or write it, with a comment on where its numbers come from."""
    text = task.to_toml(about)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_out_file(out, text, force=force)
        typer.echo(f"{out} is written.")


def _check_out(path: Path, *, force: bool) -> None:
    """Check that the task can be written: that of a peer must not change under it."""
    from oneway.task.task import TITLE

    if path.exists() and (path.absolute().parent / "peer.toml").exists():
        raise ConfigError(
            f"{path} is the task of the peer in that folder and is never overwritten; choose "
            "another name with --out"
        )
    check_out_file(path, TITLE.encode(), force=force)


def _describe(data: Path, derived: Derived) -> None:
    task = derived.task
    classes = f" ({', '.join(task.classes)})" if task.classes else ""
    note(
        f"{data}: {derived.num_rows:,} rows; {task.model} predicts {task.label}{classes} from "
        f"{len(task.features):,} column{'s' * (len(task.features) > 1)}, "
        f"{task.encoder.width:,} model inputs."
    )
    show_columns(derived.notes, derived.num_rows)
    if derived.num_without_label:
        group = f" or a {task.privacy.group}" if task.privacy.unit == "group" else ""
        note(f"Skipped {derived.num_without_label:,} rows without a label{group}.")
    note(f"privacy: {task.privacy_sentence}.")
    if derived.num_over:
        note(
            f"Skipped {derived.num_over:,} rows of groups with more than "
            f"{task.privacy.records_per_group:,}: no peer would learn from them."
        )
