"""How the loss of one learner went: bounded, whatever the number of samples."""

from __future__ import annotations

import msgspec

MOST_GROUPS = 1024
"""A curve never has more points than this."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Samples in groups of `width`, one after the other; the last group may be smaller.

    Up to `MOST_GROUPS` samples each is a group of its own. Whenever there would be more groups,
    neighbours are merged in pairs: then every group holds twice as many, and its sums are still
    those of its samples.

    Attributes:
        width: Samples in a group; a power of 2.
        samples: How many there are in all groups.
        loss_sums: The sum of the losses of each group, each suffered before it was learned from: of
            what answers, for a peer its personal predictions.
        correct: How many predictions of each group were right, where that has a meaning.
        times: When the last sample of each group was learned from: seconds since 1970.
        before: How many samples came before the curve began, and are in none of its groups; 0
            unless the learner is older than its curve.
        shared_sums, alone_sums, base_sums: The same sums of the shared model, of learning alone and
            of the base rate, as in `Baselines`; None for a group of which they are not known.
    """

    width: int = 1
    samples: int = 0
    loss_sums: tuple[float, ...] = ()
    correct: tuple[int, ...] = ()
    times: tuple[float, ...] = ()
    before: int = 0
    shared_sums: tuple[float | None, ...] = ()
    alone_sums: tuple[float | None, ...] = ()
    base_sums: tuple[float | None, ...] = ()
