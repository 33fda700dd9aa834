"""How the loss of one learner went: bounded, whatever the number of samples."""

from __future__ import annotations

import msgspec


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Samples in groups of `width`, one after the other; the last group may be smaller.

    Attributes:
        width: Samples in a group; a power of 2 that grows when there would be too many groups.
        samples: How many there are in all.
        loss_sums: The sum of the losses of each group.
        correct: How many predictions of each group were right, where that has a meaning.
        times: When the last sample of each group was learned from: seconds since 1970.
    """

    width: int = 1
    samples: int = 0
    loss_sums: tuple[float, ...] = ()
    correct: tuple[int, ...] = ()
    times: tuple[float, ...] = ()
