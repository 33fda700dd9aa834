"""Mass audit of a quiet network: equality of whole numbers, over the stores of all peers.

What is in flight counts only on edges to and from a peer that is down for good: between all others
it must have arrived.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.audit import discrepancy, untracked
from oneway.protocol.fixed_point import ONE, Fixed, mass_of, zeros
from oneway.protocol.state import Key, OutPhase, PeerState
from oneway.records import FRACTION_BITS


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found in a quiet network.

    Attributes:
        minted_units: The mass that was ever brought in.
        held_units: The mass that all peers hold, those that are down included.
        stranded: What is on its way to or from peers that are down: segments and mass.
        discrepancy: Held and stranded, minus brought in, in units of 2^-40: segments and mass.
        unsettled: Edges between running peers that were not at rest: with any, nothing is proven.
        segments: What the numbers beside the mass are: names, and where they lie.
        untracked: Of segments that track a momentum, by name: what they and what is on its way add
            up to, minus the momenta of those who have not left.
    """

    minted_units: int
    held_units: int
    stranded: Fixed
    discrepancy: Fixed
    unsettled: int
    segments: Mapping[str, slice] = field(default_factory=dict)
    untracked: Mapping[str, Fixed] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Whether nothing was lost and nothing invented, to the last unit."""
        tracked = not any(wrong.any() for wrong in self.untracked.values())
        return not self.unsettled and not self.discrepancy.any() and tracked

    @property
    def sentences(self) -> list[str]:
        """The verdict on the mass, on every segment that is booked, and on what hampers it."""
        count, odd = divmod(self.minted_units, ONE)
        amount = f"{count} x 2^{FRACTION_BITS}{f' + {odd}' if odd else ''} = {self.minted_units:,}"
        mass = mass_of(self.discrepancy)
        verdict = "exact"
        if mass:
            verdict = f"{mass:,} too many" if mass > 0 else f"{-mass:,} missing"
        said = [f"mass {amount} units: {verdict}"]
        if self.stranded.any():
            waits = mass_of(self.stranded)
            said.append(
                f"{waits / ONE:.3f} of the mass ({waits:,} units) waits for peers that are down"
            )
        for name, place in (self.segments or {"numerator": slice(None)}).items():
            said.append(f"{name} of {_verdict(self.discrepancy[:-1][place])}")
        said += [
            f"{name} against momentum of {_verdict(wrong)}"
            for name, wrong in self.untracked.items()
        ]
        if self.unsettled:
            said.append(
                f"{self.unsettled} edges were not at rest, so nothing is proven; "
                "give the network more time to drain"
            )
        return said


def _verdict(errors: Fixed) -> str:
    wrong = int((errors != 0).sum())
    numbers = "1 number" if len(errors) == 1 else f"{len(errors)} numbers"
    return f"{numbers}: {f'{wrong} are wrong' if wrong else 'exact'}"


def audit(
    snapshots: Mapping[Key, Snapshot],
    down: Collection[Key] = (),
    tracking: Collection[str] = (),
) -> Audit:
    """Audit a network that has been drained, by its stores; some peers may be down for good.

    `tracking` names the segments whose sum must be that of the peers' momenta.
    """
    states = {key: snapshot.state for key, snapshot in snapshots.items()}
    first = next(iter(states.values()))
    places = first.layout.places
    stranded = sum(_stranded(states, down), zeros(first.dim))
    return Audit(
        minted_units=sum(mass_of(state.minted) for state in states.values()),
        held_units=sum(mass_of(state.holding) for state in states.values()),
        stranded=stranded,
        discrepancy=discrepancy(states.values()) + stranded,
        unsettled=num_unsettled(snapshots, down),
        segments={name: it for name, it in places.items() if it not in first.layout.copied},
        untracked={
            name: untracked(states.values(), places[name]) + stranded[places[name]]
            for name in tracking
        },
    )


def num_unsettled(snapshots: Mapping[Key, Snapshot], down: Collection[Key] = ()) -> int:
    """How many edges between peers that run are not at rest."""
    return sum(
        edge.phase is not OutPhase.OPEN or edge.in_flight > 0
        for key, snapshot in snapshots.items()
        for edge in snapshot.state.out.values()
        if key not in down and edge.receiver not in down
    )


def _stranded(states: Mapping[Key, PeerState], down: Collection[Key]) -> Iterator[Fixed]:
    """What was handed over and not heard, on every edge with an end that is down."""
    for sender, state in states.items():
        handed_over = {edge_id: edge.counted for edge_id, edge in state.out.items()}
        handed_over |= {edge_id: end.total for edge_id, end in state.settled.items()}
        for (receiver, epoch), total in handed_over.items():
            if receiver in states and (sender in down or receiver in down):
                heard = states[receiver].in_.get((sender, epoch))
                yield total if heard is None else total - heard.heard
