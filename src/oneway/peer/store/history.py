"""Downsampled loss history: one sample more costs little, however many came before."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from oneway.records.curve import MOST_GROUPS, Curve

_LARGEST_SUM = sys.float_info.max
"""Sums stop here: neither JSON nor a picture has a place for infinity."""


class Group(NamedTuple):
    """Samples that were learned from one after the other.

    Attributes:
        samples: How many.
        loss_sum: The sum of the losses of what answers: the personal predictions.
        correct: How many predictions were right, where that has a meaning.
        time: When the last of them was learned from: seconds since 1970.
        shared_sum, alone_sum, base_sum: The sums of the losses of the shared model, of learning
            alone, and of the base rate; None where there is none.
    """

    samples: int
    loss_sum: float
    correct: int
    time: float
    shared_sum: float | None = None
    alone_sum: float | None = None
    base_sum: float | None = None


EMPTY = Group(0, 0.0, 0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False, slots=True)
class History:
    """A `Curve` that grows. Groups that are full are shared by all the histories that follow.

    Attributes:
        width: How many samples a full group has; a power of 2.
        full: The groups that are full, oldest first; one less than `MOST_GROUPS` at most.
        last: The group after them, with 1 to `width` samples; `EMPTY` before the first sample.
    """

    width: int = 1
    full: tuple[Group, ...] = ()
    last: Group = EMPTY

    @property
    def samples(self) -> int:
        """How many samples there are in all groups."""
        return len(self.full) * self.width + self.last.samples

    def groups_from(self, index: int) -> dict[int, Group]:
        """The groups that have samples, oldest first, without the first few.

        By how many samples came before each since the peer was made.
        """
        groups = (*self.full[index:], self.last) if self.last.samples else ()
        return {number * self.width: group for number, group in enumerate(groups, index)}

    def curve(self) -> Curve:
        """The same for others to read."""
        groups = self.groups_from(0).values()
        return Curve(
            width=self.width,
            samples=self.samples,
            loss_sums=tuple(group.loss_sum for group in groups),
            correct=tuple(group.correct for group in groups),
            times=tuple(group.time for group in groups),
            shared_sums=tuple(group.shared_sum for group in groups),
            alone_sums=tuple(group.alone_sum for group in groups),
            base_sums=tuple(group.base_sum for group in groups),
        )


def with_sample(
    history: History,
    loss: float,
    correct: bool,
    time: float,
    shared_loss: float | None = None,
    alone_loss: float | None = None,
    base_loss: float | None = None,
) -> History:
    """The history with one sample more, of finite loss; `time` is in seconds since 1970."""
    sample = Group(1, loss, int(correct), time, shared_loss, alone_loss, base_loss)
    last = history.last
    if last.samples < history.width:
        return History(history.width, history.full, _merged(last, sample))
    full = (*history.full, last)
    if len(full) < MOST_GROUPS:
        return History(history.width, full, sample)
    pairs = tuple(_merged(*pair) for pair in zip(full[::2], full[1::2], strict=True))
    return History(2 * history.width, pairs, sample)


def num_shared(one: History, other: History) -> int:
    """How many full groups, the first ones, two histories have in common."""
    if one.width != other.width:
        return 0
    count = min(len(one.full), len(other.full))
    # Shared groups are the same objects, which tuples notice without a look into them.
    same = one.full is other.full or one.full[:count] == other.full[:count]
    return count if same else 0


def history_of(groups: Mapping[int, Group]) -> History:
    """The history that has these groups, by the number of samples before each, oldest first.

    Raises:
        ValueError: If they do not follow one another.
    """
    if not groups:
        return History()
    *full, last = groups.values()
    width = (full or [last])[0].samples
    if list(groups) != [index * width for index in range(len(groups))]:
        raise ValueError("the groups of its curve do not follow one another")
    return History(width, tuple(full), last)


def _merged(one: Group, other: Group) -> Group:
    return Group(
        one.samples + other.samples,
        min(one.loss_sum + other.loss_sum, _LARGEST_SUM),
        one.correct + other.correct,
        other.time,
        _sum(one.shared_sum, other.shared_sum),
        _sum(one.alone_sum, other.alone_sum),
        _sum(one.base_sum, other.base_sum),
    )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else min(one + other, _LARGEST_SUM)
