"""What an asynchronous run leaves behind, by bins of virtual time; the same for both levels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from oneway.records import Ints, Matrix, Vector


@dataclass(frozen=True)
class Traffic:
    """What all nodes together did and said, from the start to the end of the run.

    Attributes:
        events: That the simulation carried out: samples, arrivals, commits, ticks and the rest.
        samples: Learned from.
        pushes: Totals sent for the first time, each over one edge.
        acknowledgements: Answers that a total was taken in.
        messages: Sent at all: pushes, acknowledgements, repeats and the rest of the protocol.
        messages_lost: That never arrived: by chance, or since nobody was there to take them.
        bytes_sent: By all messages, as they are on the wire, without the transport's own.
        repeats: Totals that were sent again for want of an answer.
        commits: How often a node made something durable.
        presumed_dead: Edges given up after silence.
        rejected: Messages refused, other than repeats and those that have to wait their turn.
        clipped: Pushes that lay too far from the receiver's own model.
        waited: Pushes that had to wait, since too much mass would have come at once.
        crashes: Of nodes.
        sleeps: How often a node fell asleep.
        joined: Nodes that came later.
        left: Nodes that have handed over all they held.
        mean_round_trip: Seconds from a push to its acknowledgement, commits at both ends included;
            nan if there was none.
    """

    events: int = 0
    samples: int = 0
    pushes: int = 0
    acknowledgements: int = 0
    messages: int = 0
    messages_lost: int = 0
    bytes_sent: int = 0
    repeats: int = 0
    commits: int = 0
    presumed_dead: int = 0
    rejected: int = 0
    clipped: int = 0
    waited: int = 0
    crashes: int = 0
    sleeps: int = 0
    joined: int = 0
    left: int = 0
    mean_round_trip: float = float("nan")

    def describe(self) -> dict[str, Any]:
        """For records."""
        return {name: _plain(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished (or interrupted) asynchronous run; arrays over bins of equal length.

    Liars' losses are not counted, nor do they count as nodes for disagreement: they do not learn.

    Attributes:
        seconds: Virtual time that the bins cover, from 0 on: `conditions.duration` if complete.
        loss_sums: Per bin, the sum of the losses of the samples that came in it, each suffered
            before it was learned from.
        sample_counts: Per bin, how many samples.
        correct_counts: Per bin, how many predictions were right; None if that has no meaning.
        disagreement: At the end of each bin, the mean squared distance of the estimates of all
            nodes that are there and awake from the mean of what these hold (their total numerator
            over their total mass).
        numerators: z of every node at the end of the last bin, `[node, dim]`; of a node that has no
            mass at all, zeros.
        masses: omega of every node at the end of the last bin.
        mass_in_flight: Handed over and not yet taken in, at the end of the last bin, less what
            nodes took back that had arrived; with `masses` it adds up to what nodes brought.
        complete: False if the run was interrupted; the arrays then hold the bins that were done.
        traffic: What was done and said.
        exact_books: After all that was under way had arrived: whether every unit of mass is where
            it must be. None if that was not asked for, or the level has no books.
        drained_after: Seconds after the end until nothing was under way; None if not waited for.
        learned: How many rounds of the stream each node came through, `[node]`; None if all did.
    """

    seconds: float
    loss_sums: Vector
    sample_counts: Ints
    correct_counts: Ints | None
    disagreement: Vector
    numerators: Matrix
    masses: Vector
    mass_in_flight: float
    complete: bool
    traffic: Traffic
    exact_books: bool | None = None
    drained_after: float | None = None
    learned: Ints | None = None


def _plain(value: float) -> float | None:
    """A number that JSON can hold: what is unknown is None."""
    return value if value == value else None
