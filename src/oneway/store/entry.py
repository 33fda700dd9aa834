"""One line of a catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["simulation", "lab", "demo", "reproduction"]

Stamp: TypeAlias = tuple[tuple[int, int], ...]
"""When files were changed, in nanoseconds, and how long they are."""


@dataclass(frozen=True)
class Entry:
    """A stored run, or a lab, demo or reproduction, which have a page and maybe runs.

    What is not known is empty or None.

    Attributes:
        name: The path below the folder that was looked at, with slashes.
        kind: What made it; of the runs that a lab has stored, "lab" are its real peers.
        stamp: Changes when what is stored does.
        modified: Seconds since 1970.
        belongs_to: The name of the lab or the demo that the run is a part of.
        is_run: Whether there are curves to compare.
        algorithm: As on the command line: ops, dol-symm, dol-asymm, col or local.
        learning_rate, data, model, graph: In a few words.
        num_rounds: As many as were planned.
        rounds_done: As many as there are in the arrays; None until these are read.
        average_loss: Of a lab as it has written it down; of a run None until its arrays are read.
        complete: False if it was interrupted.
        seconds: How long it took.
        sentences: What a lab found.
        report: The page of a demo or reproduction.
        panels: The names of a reproduction's panels, each a CSV file in `panels`.
        problem: What is wrong with it, in a sentence; empty if nothing is.
    """

    name: str
    path: Path
    kind: Kind
    stamp: Stamp
    modified: float
    belongs_to: str = ""
    is_run: bool = False
    algorithm: str = ""
    learning_rate: str = ""
    data: str = ""
    model: str = ""
    graph: str = ""
    num_nodes: int | None = None
    num_rounds: int | None = None
    rounds_done: int | None = None
    average_loss: float | None = None
    complete: bool | None = None
    seconds: float | None = None
    sentences: tuple[str, ...] = ()
    report: Path | None = None
    panels: tuple[str, ...] = ()
    problem: str = ""
