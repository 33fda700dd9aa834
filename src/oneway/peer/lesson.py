"""Sample and lesson: what a peer learns from, and what came of it, to be made durable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from oneway.models import Lesson as Told
from oneway.peer.groups import Groups
from oneway.peer.measuring import Measured
from oneway.protocol.state import PeerState
from oneway.records import Matrix, Vector
from oneway.tables.rows import Position


@dataclass(frozen=True, eq=False)
class Lesson:
    """What came of a sample: state and memory after it, its loss before it, whether it was right.

    `correct` is None where being right has no meaning; `released` whether its batch is full now;
    `measured` what was counted of it, and what the baselines suffered.
    """

    state: PeerState
    memory: Mapping[str, Matrix]
    loss: float
    correct: bool | None
    released: bool
    measured: Measured


class ForeseenRow(dict[str, object]):
    """Cells of a sample, with what a model says about it, computed for several samples at once.

    Attributes:
        params: The model.
        told: Loss, whether it is right, and gradient: one row each.
    """

    def __init__(self, cells: Mapping[str, object], params: Vector, told: Told, row: int) -> None:
        super().__init__(cells)
        one, right = slice(row, row + 1), told.correct
        self.params = params
        self.told = Told(
            told.losses[one], None if right is None else right[one], told.gradients[one]
        )


class Sample(NamedTuple):
    """What is learned from.

    Attributes:
        x: Its cells by column, or what they were encoded to.
        y: Its label.
        groups: How many samples of each group were learned from, this one included.
        position: Where the stream goes on after it; None if it is not of the stream.
        predicted_by: The model that predicted it, if that was some time ago.
    """

    x: Mapping[str, object] | Vector
    y: object
    groups: Groups
    position: Position | None = None
    predicted_by: Vector | None = None
