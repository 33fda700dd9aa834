"""`oneway peer task`: a first task.toml from a CSV file or arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli.column_notes import show_columns, warn_of_statistics
from oneway.cli.options import argument, option, switch
from oneway.cli.out_path import Force, check_out_file, write_out_file
from oneway.cli.output import note
from oneway.cli.settings_flags import read_given
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.task.task import Task
    from oneway.task.task_from_file import Derived

LEARNING = (
    "model", "method", "learning_rate", "schedule", "step", "transforms", "l2", "intercept",
    "options", "samples_per_push", "privacy", "epsilon", "delta", "clip", "unit", "group",
    "records_per_group", "columns", "exclude", "category", "numeric", "function",
)  # fmt: skip


def task(
    given: Mapping[str, Any],
    files: Annotated[
        list[Path],
        argument(
            "FILE", "A CSV file with a header, or arrays (.npy, images); with --merge, tasks."
        ),
    ],
    label: Annotated[str | None, option("COLUMN", "What to predict.")] = None,
    merge: Annotated[
        bool,
        switch("--merge", "Make one task of those that several sites derived, a.toml b.toml ..."),
    ] = False,
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
    force: Force = False,
) -> None:
    """Derive a task from a CSV file or arrays: what its columns are, their scaling, its labels.

    Columns are numbers, booleans, categories or times by what they hold. Without --model the label
    decides: two values mean logistic, some softmax, many numbers ridge.
    One peer does this once; all peers of a network must have the very same file. Or every site does
    it, with the same flags, and --merge makes one of all: values of categories together, scales as
    of all rows. Only the task files are read for that.
    """
    if out is not None:
        _check_out(out, force=force)
    if merge:
        _merge(given, files, label, out, force=force)
        return
    from oneway.tables.array_source import holds_arrays

    if len(files) != 1 or (label is None and not holds_arrays(files[0])):
        raise ConfigError(
            "a task is derived from one CSV file, and --label COLUMN says what to predict; to make "
            "one task of several, add --merge"
        )
    [data] = files
    from oneway.peer.noise import SecretNormals
    from oneway.tables.inference import make_choices
    from oneway.task.learning import without_former_names
    from oneway.task.privacy import PRIVACY_KEYS
    from oneway.task.private_scales import parse_ranges
    from oneway.task.settings import AS_LABELLED, COLUMN_KEYS
    from oneway.task.task_from_file import derive_task

    settings = read_given(given)  # checks them
    named, _ = without_former_names(given)
    apart = (*PRIVACY_KEYS, *COLUMN_KEYS)
    learning = {name: value for name, value in named.items() if name not in apart}
    if learning.get("model") == AS_LABELLED:
        del learning["model"]
    derived = derive_task(
        data,
        label,
        choices=make_choices(**settings.choices),
        ranges=parse_ranges(ranges or []),
        normals=SecretNormals() if private_scales else None,
        **learning | {"privacy": settings.privacy},
    )
    _hand_out(derived.task, derived.scales, out, force=force)
    _say_what_it_is(data, derived)
    _say_what_it_tells(derived, private_scales)


def _merge(
    given: Mapping[str, Any], files: list[Path], label: str | None, out: Path | None, *, force: bool
) -> None:
    from oneway.sentences import listed, shown
    from oneway.task.merging import merge_tasks
    from oneway.task.task import Task

    if given or label is not None:
        raise ConfigError(
            "--merge reads nothing but task files, which say all the rest; leave "
            f"{listed(sorted({*given, *(['label'] if label else [])}))} out"
        )
    merged = merge_tasks({str(path): Task.read(path) for path in files})
    task, sites = merged.task, f"{len(files)} sites"
    rows = f"{task.rows:,} rows of {sites}, weighted by rows" if task.rows else f"{sites} alike"
    about = f"Centers and scales are pooled from {rows}, categories have the values of all."
    _hand_out(task, f"{about} They tell what the tasks of the sites told.", out, force=force)
    note(f"{about} {task.model} predicts {task.label} from {len(task.features):,} columns.")
    if not merged.is_weighted:
        note("Careful: not every task says how many rows it is of, so all count alike.")
    for name, having in merged.left_out.items():
        note(f"Left out {shown(name)}: only {listed(having)} has it.")


def _hand_out(task: Task, about: str, out: Path | None, *, force: bool) -> None:
    """Print the task or write it, with a comment on where its numbers are from."""
    text = task.to_toml(about)
    for name, value in task.site.items():
        note(
            f"{name} = {value} is every site's own matter and stands in no task; say it in "
            f"peer.toml, under [{task.model}]."
        )
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_out_file(out, text, force=force)
        typer.echo(f"{out} is written.")


def _check_out(path: Path, *, force: bool) -> None:
    """Find out whether the task can be written: one in use must not change under its peer."""
    if path.exists() and (path.absolute().parent / "peer.toml").exists():
        raise ConfigError(
            f"{path} is the task of the peer in that folder and is never overwritten; choose "
            "another name with --out"
        )
    check_out_file(path, force=force)


def _say_what_it_is(data: Path, derived: Derived) -> None:
    task = derived.task
    classes = f" ({', '.join(task.classes)})" if task.classes else ""
    note(
        f"{data}: {derived.num_rows:,} rows; {task.model} predicts {task.label}{classes} from "
        f"{len(task.features):,} column{'s' * (len(task.features) > 1)}, "
        f"{task.encoder.width:,} numbers to the model."
    )
    show_columns(derived.notes, derived.num_rows)
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
        warn_of_statistics(
            "give --range for every column of numbers and --category COLUMN=A,B,C for categories, "
            "and --private-scales if ranges alone are too coarse."
        )
