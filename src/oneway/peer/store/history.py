"""Downsampled loss history: one sample more costs little, however many came before."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from oneway.records.curve import MOST_GROUPS, Curve

_LARGEST_SUM = sys.float_info.max
"""Sums stop here: neither JSON nor a picture has a place for infinity."""


UNKNOWN = -1e300
"""A sum that is not known, nor is any that it is a part of; SQLite has no NaN, and no losses have
this sum."""


class Group(NamedTuple):
    """Samples that were learned from one after the other.

    Attributes:
        samples: How many.
        loss_sum: The sum of their losses.
        correct: How many predictions were right, where that has a meaning.
        time: When the last of them was learned from: seconds since 1970.
        base_sum, alone_sum: The sums of the losses of the two baselines; `UNKNOWN` if there is
            none, or an older release wrote the group.
    """

    samples: int
    loss_sum: float
    correct: int
    time: float
    base_sum: float = UNKNOWN
    alone_sum: float = UNKNOWN


EMPTY = Group(0, 0.0, 0, 0.0, 0.0, 0.0)


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

    def groups_from(self, index: int) -> dict[int, Group]:
        """The groups that have samples, oldest first, without the first few.

        By how many samples came before each since the peer was made.
        """
        groups = (*self.full[index:], self.last) if self.last.samples else ()
        first = self.before + index * self.width
        return {first + number * self.width: group for number, group in enumerate(groups)}

    def up_to(self, samples: int) -> History:
        """This history if it tells of all samples until this one, or else one that begins there.

        It does not if a release that keeps no history has learned meanwhile: there is a gap, and
        groups of one width cannot have gaps.
        """
        return self if self.before + self.samples == samples else History(before=samples)

    def curve(self) -> Curve:
        """The same for others to read."""
        groups = self.groups_from(0).values()
        return Curve(
            width=self.width,
            samples=self.samples,
            loss_sums=tuple(group.loss_sum for group in groups),
            correct=tuple(group.correct for group in groups),
            times=tuple(group.time for group in groups),
            before=self.before,
            base_sums=tuple(_known(group.base_sum) for group in groups),
            alone_sums=tuple(_known(group.alone_sum) for group in groups),
        )


def with_sample(
    history: History,
    loss: float,
    correct: bool,
    time: float,
    base_loss: float = UNKNOWN,
    alone_loss: float | None = None,
) -> History:
    """The history with one sample more, of finite loss; `time` is in seconds since 1970."""
    alone = UNKNOWN if alone_loss is None else alone_loss
    sample = Group(1, loss, int(correct), time, base_loss, alone)
    last = history.last
    if last.samples < history.width:
        # The first sample of all comes here too: nothing is added to nothing.
        return History(history.before, history.width, history.full, _merged(last, sample))
    full = (*history.full, last)
    if len(full) < MOST_GROUPS:
        return History(history.before, history.width, full, sample)
    pairs = tuple(_merged(*pair) for pair in zip(full[::2], full[1::2], strict=True))
    return History(history.before, 2 * history.width, pairs, sample)


def num_shared(one: History, other: History) -> int:
    """How many full groups, the first ones, two histories have in common."""
    if (one.before, one.width) != (other.before, other.width):
        return 0
    count = min(len(one.full), len(other.full))
    # Shared groups are the same objects, which tuples notice without a look into them.
    same = one.full is other.full or one.full[:count] == other.full[:count]
    return count if same else 0


def history_of(groups: Mapping[int, Group], samples: int) -> History:
    """The history that has these groups, by the number of samples before each, oldest first.

    Without any group, it begins after all `samples` that there were.

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
        _sum(one.base_sum, other.base_sum),
        _sum(one.alone_sum, other.alone_sum),
    )


def _sum(one: float, other: float) -> float:
    """The sum of two losses, or `UNKNOWN` if one of them is."""
    return UNKNOWN if UNKNOWN in (one, other) else min(one + other, _LARGEST_SUM)


def _known(total: float) -> float | None:
    return None if total == UNKNOWN else total
