"""One file of samples for every owner in a table, and the task they share: data for peers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oneway.errors import DataError
from oneway.lab.problem import task_for
from oneway.lab.setup import write_samples, write_task
from oneway.tables.table import Table

MOST_FILES = 1_000


@dataclass(frozen=True)
class Handout:
    """What was written: the task, and per owner a file and its number of samples."""

    task: Path
    samples: dict[Path, int]


def hand_out(table: Table, owner: str, folder: Path, *, samples: int | None = None) -> Handout:
    """Write a table as a task.toml and one CSV per owner, in order of time.

    Args:
        table: With labels of two classes.
        owner: The column that says whose row it is.
        folder: New or empty.
        samples: At most so many per owner, the first ones; None for all.

    Raises:
        DataError: There is no such column, or it names too many owners.
        ConfigError: The folder holds something already, or cannot be written.
    """
    dealt = table.deal_by(owner)
    if dealt.num_nodes > MOST_FILES:
        raise DataError(
            f"column {owner!r} names {dealt.num_nodes:,} owners, more than the {MOST_FILES:,} that "
            "files are written for; choose another column"
        )
    task = task_for(table, "logistic", learning_rate=0.1)
    task_path = write_task(folder, task)
    written = {}
    for node in range(dealt.num_nodes):
        rows = dealt.rows[:, node]
        own = rows[rows >= 0][:samples]
        name = dealt.node_names[node] if dealt.node_names else str(node)
        path = folder / f"{''.join(c if c.isalnum() else '-' for c in name)}.csv"
        write_samples(path, table, own, task)
        written[path] = len(own)
    return Handout(task_path, written)
