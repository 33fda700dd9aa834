"""The books of all peers of a lab: of those that run by their status, else by their store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from oneway.errors import StoreError
from oneway.lab.ledger import Reading
from oneway.lab.rest import Look
from oneway.lab.setup import Member
from oneway.peer.identity.keys import key_text
from oneway.peer.store.store import read_snapshot
from oneway.protocol.audit import Books, books_of
from oneway.protocol.state import Key, OutPhase, PeerState
from oneway.records.status import Status


@dataclass(frozen=True)
class _Life:
    """What is known of one life of a peer: which it was, and its books in the end."""

    restarts: int
    reading: Reading | None
    problem: str


class Readings:
    """Reads everybody's books; a store once for every death, as nothing changes in it then."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._after_death: dict[Key, _Life] = {}

    def read(
        self,
        members: Sequence[Member],
        looks: Sequence[Look],
        now: float,
        reopened: Collection[tuple[str, str]] = (),
    ) -> dict[Key, Reading]:
        """The books of every peer that has some; `problems` then says which cannot be read.

        Args:
            members: The peers.
            looks: What they look like.
            now: A moment before they were looked at: seconds since 1970.
            reopened: Senders and receivers, by name, between which trust has ended before: there
                may be an old edge besides the one that a status tells of.
        """
        keys = {key_text(member.key): member.key for member in members}
        names = {member.key: member.name for member in members}
        self.problems = []
        found: dict[Key, Reading] = {}
        for member, look in zip(members, looks, strict=True):
            reading = self._of(member, look, now, keys)
            if reading is not None:
                unsure = {
                    key for key in reading.complete if (member.name, names.get(key, "")) in reopened
                }
                found[member.key] = replace(reading, complete=set(reading.complete) - unsure)
        return found

    def _of(
        self, member: Member, look: Look, now: float, keys: Mapping[str, Key]
    ) -> Reading | None:
        if look.state in ("up", "paused") and look.status is not None:
            return _from_status(look.status, keys)
        life = self._after_death.get(member.key)
        if look.state == "down":
            if life is None or life.restarts != look.restarts:
                life = _from_store(member, look.restarts)
            if life.reading is not None:
                # It is still true: who is down changes nothing.
                life = replace(life, reading=replace(life.reading, time=now))
            self._after_death[member.key] = life
        elif life is None or life.restarts != look.restarts - 1:
            # Killed and started again since the last look: it last spoke in an earlier life.
            return None if look.status is None else _from_status(look.status, keys)
        if life.problem:
            self.problems.append(life.problem)
        return life.reading


def _from_status(status: Status, keys: Mapping[str, Key]) -> Reading:
    return Reading(
        name=status.name,
        time=status.time,
        books=Books(
            held=status.mass_units,
            brought=status.brought_units,
            sent={_key(text, keys): units for text, units in status.sent_units.items()},
            heard={_key(text, keys): units for text, units in status.heard_units.items()},
        ),
        complete={
            _key(edge.key, keys)
            for edge in status.receivers
            if edge.phase == OutPhase.OPEN and edge.seq == edge.acked
        },
        given_up={_key(edge.key, keys) for edge in status.receivers if edge.has_dead_edge},
    )


def _from_store(member: Member, restarts: int) -> _Life:
    if not member.home.store_path.exists():
        return _Life(restarts, None, "")
    try:
        state = read_snapshot(member.home.store_path).state
    except StoreError as error:
        return _Life(restarts, None, f"the books of {member.name} cannot be read: {error}")
    return _Life(restarts, Reading(member.name, 0.0, books_of(state), **_edges(state)), "")


def _edges(state: PeerState) -> dict[str, set[Key]]:
    unsettled = {edge.receiver for edge in state.out.values() if not edge.is_at_rest}
    return {
        "complete": {edge.receiver for edge in state.out.values()} - unsettled,
        "given_up": {edge.receiver for edge in state.out.values() if edge.phase is OutPhase.DEAD},
    }


def _key(text: str, keys: Mapping[str, Key]) -> Key:
    # Of a peer that is not of this lab, the text will do: it only has to be told from others.
    return keys.get(text) or text.encode()
