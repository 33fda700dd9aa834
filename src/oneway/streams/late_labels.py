"""Delayed labels: in which round a node gets to know the label of a sample that it predicted.

A node learns from one label a round at most. Of several that become known at the same time, the one
of the oldest sample comes first, and the others wait.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from oneway.errors import DataError
from oneway.records import Ints


def as_delays(rounds: ArrayLike, shape: tuple[int, ...]) -> Ints:
    """Return delays, one number or `[round_index, node]`, as an array of this shape.

    Raises:
        DataError: They are not whole numbers from 0 on, or have another shape.
    """
    delays = np.asarray(rounds)
    whole = delays.dtype.kind in "iu" and delays.shape in ((), shape)
    if not whole or delays.min(initial=0) < 0:
        said = repr(rounds) if delays.ndim == 0 else f"of shape {delays.shape} and {delays.dtype}"
        raise DataError(
            f"the delay of the labels is {said}; it must be a whole number of rounds from 0 on, or "
            f"an array of such with the stream's shape {shape}"
        )
    return np.broadcast_to(delays, shape)


def learned_rows(rows: Ints, delays: Ints) -> Ints:
    """From which row each node learns in which round, if labels are known so many rounds later.

    Args:
        rows: `rows[round_index, node]`, -1 where a node has no sample.
        delays: Of each of them, in rounds.

    Returns:
        `[round_index, node]`, -1 where a node learns nothing. What becomes known after the last
        round is not learned from.
    """
    num_rounds = len(rows)
    nodes, rounds = np.nonzero(rows.T >= 0)  # node by node, each in the order of rounds
    due = rounds + delays[rounds, nodes]
    order = np.lexsort((rounds, due, nodes))
    nodes, rounds, due = nodes[order], rounds[order], due[order]
    # One a round: the k-th of a node comes at the earliest one round after the one before it.
    place = np.arange(len(nodes))
    place -= np.searchsorted(nodes, nodes)
    far = int(due.max(initial=0)) + len(place) + 1  # keeps the running maxima of nodes apart
    taken = np.maximum.accumulate(due - place + far * nodes) - far * nodes + place
    learned = np.full_like(rows, -1)
    known = taken < num_rounds
    learned[taken[known], nodes[known]] = rows[rounds[known], nodes[known]]
    return learned


def rounds_until(rows: Ints, made: ArrayLike, known: ArrayLike) -> Ints:
    """How many rounds pass until labels are known, given the times of rows; as `Stream` says.

    Raises:
        DataError: The times do not have one number for each row.
    """
    times = [np.asarray(it) for it in (made, known)]
    for name, it in zip(("made", "known"), times, strict=True):
        if it.ndim != 1 or len(it) <= rows.max() or it.dtype.kind not in "iufM":
            raise DataError(
                f"{name} has the shape {it.shape} and the type {it.dtype}; it must have one time "
                "for each row of the stream's features, as numbers or as datetime64"
            )
    sampled = rows >= 0
    safe = np.where(sampled, rows, 0)
    begins = times[0][safe]
    earliest = begins.min()
    # A round is over when the last of its samples was made; an empty one, with the round before.
    ends = np.maximum.accumulate(np.where(sampled, begins, earliest).max(axis=1))
    first = np.searchsorted(ends, times[1][safe], side="left")
    waits = np.maximum(first - np.arange(len(rows))[:, None], 0)
    return np.where(sampled, waits, 0)
