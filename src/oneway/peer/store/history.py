"""How the loss of a peer went, as it is kept: one sample more costs little, however many came."""

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
        loss_sum: The sum of their losses.
        correct: How many predictions were right, where that has a meaning.
        time: When the last of them was learned from: seconds since 1970.
    """

    samples: int
    loss_sum: float
    correct: int
    time: float


EMPTY = Group(0, 0.0, 0, 0.0)


@dataclass(frozen=True, eq=False, slots=True)
class History:
    """A `Curve` that grows. Groups that are full are shared by all the histories that follow.

    Attributes:
        before: How many samples came before the first group.
        width: How many samples a full group has; a power of 2.
        full: The groups that are full, oldest first; one less than `MOST_GROUPS` at most.
        last: The group after them, with 1 to `width` samples; `EMPTY` before the first sample.
    """

    before: int = 0
    width: int = 1
    full: tuple[Group, ...] = ()
    last: Group = EMPTY

    @property
    def samples(self) -> int:
        """How many samples there are in all groups."""
        return len(self.full) * self.width + self.last.samples

    def groups_from(self, index: int) -> tuple[Group, ...]:
        """The groups that have samples, oldest first, without the first few."""
        return (*self.full[index:], self.last) if self.last.samples else ()

    def up_to(self, samples: int) -> History:
        """This history if it tells of all samples until this one, or else one that begins there.

        It does not if a release that keeps no history has learned meanwhile: there is a gap, and
        groups of one width cannot have gaps.
        """
        return self if self.before + self.samples == samples else History(before=samples)

    def curve(self) -> Curve:
        """The same for others to read."""
        groups = self.groups_from(0)
        return Curve(
            width=self.width,
            samples=self.samples,
            loss_sums=tuple(group.loss_sum for group in groups),
            correct=tuple(group.correct for group in groups),
            times=tuple(group.time for group in groups),
            before=self.before,
        )


def with_sample(history: History, loss: float, correct: bool, time: float) -> History:
    """The history with one sample more.

    Args:
        history: Before the sample.
        loss: Of the sample, suffered before it was learned from; finite.
        correct: Whether it was foreseen; False where that has no meaning.
        time: When it was learned from: seconds since 1970.
    """
    sample = Group(1, loss, int(correct), time)
    last = history.last
    if last.samples < history.width:
        # The first sample of all comes here too: nothing is added to nothing.
        return History(history.before, history.width, history.full, _merged(last, sample))
    full = (*history.full, last)
    if len(full) < MOST_GROUPS:
        return History(history.before, history.width, full, sample)
    pairs = tuple(_merged(*pair) for pair in zip(full[::2], full[1::2], strict=True))
    return History(history.before, 2 * history.width, pairs, sample)


def history_of(groups: Mapping[int, Group], samples: int) -> History:
    """The history that has these groups.

    Args:
        groups: By the number of samples that came before each, oldest first.
        samples: How many samples there were in all: without any group, the history begins there.

    Raises:
        ValueError: If no history has them.
    """
    if not groups:
        return History(before=samples)
    *full, last = groups.values()
    before, width = next(iter(groups)), (full or [last])[0].samples
    follow_one_another = (
        len(full) < MOST_GROUPS
        and list(groups) == [before + index * width for index in range(len(groups))]
        and all(group.samples == width for group in full)
        and 0 < last.samples <= width
    )
    if before < 0 or not follow_one_another:
        raise ValueError("the groups of its curve do not follow one another")
    return History(before, width, tuple(full), last)


def _merged(one: Group, other: Group) -> Group:
    return Group(
        one.samples + other.samples,
        min(one.loss_sum + other.loss_sum, _LARGEST_SUM),
        one.correct + other.correct,
        other.time,
    )
