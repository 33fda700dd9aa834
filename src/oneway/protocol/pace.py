"""Rules of pace that peers and a simulated network share: what to pass on, when, and how much.

Pure functions of floats or of arrays with one entry per node or edge. A peer's books are in whole
units and a simulation's in floats, so each keeps its own; these rules decide what is done with
them. With `Method.bounded` (between which masses a node keeps itself) they are what makes a network
of peers behave as it does, besides its method.
"""

from __future__ import annotations

import numpy as np

from oneway.records import Bools, Matrix, Vector

IDLE_SECONDS = 0.05
"""A peer passes on what it received this often at most, as long as that moves it."""

PASSES = 32
"""In a time as long as that between its last two steps it does so this often at most: more taught
nobody anything (docs/asynchronous.md), and in a large network something always moves."""

LONGEST_IDLE = 30.0
"""Seconds after which what moved a peer is passed on, however rare its own steps are."""

LONGEST_WAITING = 1.0
"""The same while nobody knows how rare: since its last step, or its start, more time has passed
than before. A peer that never had a sample does not wait for one: mass must not get stuck there."""

IDLE_BYTES = 32e6
"""Bytes per second that it passes on at most: what moves a large model takes long."""

MOVED = 1e-6
"""A change of the estimate, relative to its size, that is worth passing on."""

LEAST = 1 / 16
"""A smaller part of a receiver's share is not worth a push: it goes with the next one."""

DRAINED = 1 / 16
"""Who has less mass, and distrusts a receiver from now on, was drained by it perhaps."""

RECOVERED, ENOUGH = 0.5, 0.5
"""What a peer that was drained mints with a push, of its mass, until so much is left after one."""

FIRST_RETRY, SHORTEST_RETRY, LONGEST_RETRY = 0.25, 0.05, 10.0
ROUND_TRIPS = 4.0
"""After so many round trips without an answer, a word is said again; each time after twice as long.
"""
SLOWEST_LINK = 4e6
"""Bytes per second that a link is given time for before a large model is sent again."""
OVERDUE_RETRIES, OVERDUE_SECONDS = 4.0, 1.0
"""After so many waits for an answer, and so long, it is overdue: nothing more is handed over."""

STEPS = 32
"""The sum of a sender's moves is over about so many steps of this peer."""

PART = 0.1
"""It is no longer than this part of those steps, laid end to end."""

TO_AND_FRO = 1.0
"""The root of the mean square of its moves, in steps of this peer's own: a sender that pulls to
either side in turn would else swing this peer by twice the limit with every step."""

FIRST_STEP = 2.0
"""How long the first step is taken to be where nothing limits it: what "auto" would allow."""

SECONDS_PER_STEP = 10.0
"""In so much time without a step a sender may move a peer as far as after one: a peer without
samples follows its senders, too, but slowly."""


def idle_seconds(
    between: float | Vector, waited: float | Vector, learns: bool | Bools, dim: int
) -> Vector:
    """How long after a push what others sent may be passed on; longer for large models.

    Args:
        between: Seconds between the last two steps, or from the start to the first; 0 before it.
        waited: Seconds since the last step, or the start.
        learns: Whether there ever was a sample.
        dim: How many numbers a push has.
    """
    by_steps = np.minimum(np.divide(between, PASSES), LONGEST_IDLE)
    by_waiting = np.where(learns, np.minimum(np.divide(waited, PASSES), LONGEST_WAITING), 0.0)
    found: Vector = np.maximum(
        np.maximum(by_steps, by_waiting), max(IDLE_SECONDS, 8 * dim / IDLE_BYTES)
    )
    return found


def is_worth_passing_on(moved: float | Vector, size: float | Vector) -> Bools:
    """Whether an estimate of this norm that moved so far is worth a push: only what came is."""
    found: Bools = np.greater(moved, MOVED * np.add(1.0, size))
    return found


def fraction_to_hand_over(
    share: float | Vector, held: float | Vector, under_way: float | Vector, most: float
) -> Vector:
    """Which fraction of what is held goes to one receiver: less while mass is under way to it.

    Never more is unacknowledged than its share of what is held and of that, nor than `most`; 0 if
    that leaves too little to be worth a push.

    Args:
        share: Of what is held, without anything under way.
        held: The mass that is held, above 0.
        under_way: The mass that the receiver has not acknowledged.
        most: The most mass that may be under way.
    """
    fraction = share - np.subtract(1.0, share) * np.maximum(under_way, 0.0) / held
    room = most - under_way
    is_too_little = (fraction < np.multiply(LEAST, share)) | (room < LEAST * most)
    found: Vector = np.where(is_too_little, 0.0, np.minimum(fraction, room / held))
    return found


def recovered_mass(mass: float) -> float:
    """The mass that a peer that was drained has after a push, unless it has more."""
    return min(ENOUGH, (1.0 + RECOVERED) * mass)


def first_wait(dim: int, trip: float | None) -> float:
    """How long to wait for an answer before a push of `dim` numbers is said again, the first time.

    `trip` is how long a round trip takes; None if that is not known.
    """
    longest = FIRST_RETRY + 8 * dim / SLOWEST_LINK
    return longest if trip is None else min(longest, max(SHORTEST_RETRY, ROUND_TRIPS * trip))


def patience(wait: float) -> float:
    """After how many seconds an answer is overdue, given how long the first one is waited for."""
    return max(OVERDUE_RETRIES * wait, OVERDUE_SECONDS)


def part_within(before: Matrix, move: Matrix, most: float | Vector) -> Vector:
    """How much of a further move, row by row, keeps the sum of moves no longer than `most`."""
    squared = np.einsum("ed,ed->e", move, move)
    along = np.einsum("ed,ed->e", before, move)
    room = np.square(most) - np.einsum("ed,ed->e", before, before)
    # The positive root of |before + part * move| = most.
    roots = np.sqrt(np.maximum(0.0, along**2 + squared * room)) - along
    parts = np.divide(roots, squared, out=np.ones_like(squared), where=squared > 0.0)
    parts = np.where((squared > 0.0) & (room <= 0.0) & (along >= 0.0), 0.0, parts)
    found: Vector = parts.clip(0.0, 1.0)
    return found
