"""Mass audit of a network at work: equality of whole numbers, by the books of all peers.

Peers cannot be stopped to be counted, so each is read at a moment of its own. Two things are true
all the same: the books of each peer balance, and of what a peer has heard until one moment, all was
sent before. A third catches what is lost on the way: once a receiver has acknowledged everything,
it must have heard everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from oneway.errors import StoreError
from oneway.lab.peer_folders import PeerFolder
from oneway.lab.peer_process import Observation
from oneway.peer.identity.keys import parse_key
from oneway.protocol.audit import Books, books_of, wrapped
from oneway.protocol.state import Key, OutPhase
from oneway.records.network import MassView
from oneway.records.status import Status

_Edge: TypeAlias = tuple[Key, Key, Literal["heard", "acknowledged"]]
"""The teller of a claim, the other end, and what kind of claim it is."""

_key_of = lru_cache(maxsize=None)(parse_key)


@dataclass(frozen=True)
class Reading:
    """The books of one peer at one moment.

    Attributes:
        name: What the peer is called.
        time: When they were true: seconds since 1970.
        books: Its numbers.
        complete: The receivers that have acknowledged all they were sent.
        given_up: The receivers that are presumed dead: what they never acknowledged was taken
            back, and they may hold it all the same.
    """

    name: str
    time: float
    books: Books
    complete: Collection[Key] = ()
    given_up: Collection[Key] = ()


class BookReader:
    """Reads the books of peers: of those that run by their status, else by their store.

    A store is read once for every death, as nothing changes in it then.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._left: dict[Key, tuple[int, Reading | str | None]] = {}
        """After how many restarts a peer last died, and what its store held, or why not."""

    def read(
        self, folders: Sequence[PeerFolder], peers: Sequence[Observation], now: float
    ) -> dict[Key, Reading]:
        """The books of every peer that has some; `problems` then says which cannot be read.

        `now` is a moment before the peers were observed: seconds since 1970.
        """
        found = {
            folder.key: self._of(folder, peer, now)
            for folder, peer in zip(folders, peers, strict=True)
        }
        self.problems = [problem for problem in found.values() if isinstance(problem, str)]
        return {key: reading for key, reading in found.items() if isinstance(reading, Reading)}

    def _of(self, folder: PeerFolder, peer: Observation, now: float) -> Reading | str | None:
        restarts, left = self._left.get(peer.key, (-1, None))
        if peer.state == "down":
            if restarts != peer.restarts:
                left = _from_store(folder)
            if isinstance(left, Reading):
                left = replace(left, time=now)  # still true: who is down changes nothing
            self._left[peer.key] = (peer.restarts, left)
            return left
        if peer.state == "starting" and restarts == peer.restarts - 1:
            return left
        # It runs, or was killed and started again since the last frame and spoke in that life.
        return None if peer.status is None else _from_status(peer.status)


def _from_status(status: Status) -> Reading:
    return Reading(
        name=status.name,
        time=status.time,
        books=Books(
            held=status.mass_units,
            brought=status.brought_units,
            sent={_key_of(text): units for text, units in status.sent_units.items()},
            heard={_key_of(text): units for text, units in status.heard_units.items()},
        ),
        complete={
            _key_of(edge.key)
            for edge in status.receivers
            if edge.phase == OutPhase.OPEN and edge.seq == edge.acked
        },
        given_up={_key_of(edge.key) for edge in status.receivers if edge.has_dead_edge},
    )


def _from_store(folder: PeerFolder) -> Reading | str | None:
    """The books that a peer left in its store, if it has one, or why they cannot be read."""
    try:
        snapshot = folder.snapshot()
    except StoreError as error:
        return f"the books of {folder.name} cannot be read: {error}"
    if snapshot is None:
        return None
    edges = snapshot.state.out.values()
    unsettled = {edge.receiver for edge in edges if not edge.is_at_rest}
    return Reading(
        folder.name,
        0.0,
        books_of(snapshot.state),
        complete={edge.receiver for edge in edges} - unsettled,
        given_up={edge.receiver for edge in edges if edge.phase is OutPhase.DEAD},
    )


class _Claim(NamedTuple):
    """What one end of an edge says: so many units, until then; the other end must agree.

    Attributes:
        kind: Whether the teller "heard" so much from the other, which must have sent it; or was
            "acknowledged" so much by the other, which must have heard it.
    """

    teller: Key
    other: Key
    kind: Literal["heard", "acknowledged"]
    name: str
    time: float
    units: int


class LiveAudit:
    """Audits a network while it runs; to be asked again and again.

    A claim of one end that is newer than the reading of the other waits for the next reading. What
    was found wrong stays so until the two ends agree.
    """

    def __init__(self) -> None:
        self._waiting: dict[_Edge, _Claim] = {}
        self._problems: dict[_Edge, str] = {}

    def check(self, readings: Mapping[Key, Reading], unreadable: Collection[str] = ()) -> MassView:
        """Compare the last reading of every peer with its own numbers, and with the others'.

        Args:
            readings: By public key; a peer that has no books yet has no reading.
            unreadable: What is wrong with books that cannot be read, in sentences.
        """
        self._settle(readings)
        every = [reading.books for reading in readings.values()]
        held, brought = sum(books.held for books in every), sum(books.brought for books in every)
        in_flight = wrapped(
            sum(sum(books.sent.values()) - sum(books.heard.values()) for books in every)
        )
        unbalanced = [
            f"the books of {reading.name} do not balance: it holds {reading.books.held:,} units, "
            f"and by what came and went it must be {reading.books.owed:,}"
            for reading in readings.values()
            if not reading.books.balances
        ]
        problems = [*unreadable, *unbalanced, *filter(None, self._problems.values())]
        if held + in_flight != brought and not problems:
            # Cannot be while all books balance, unless a number outgrew 64 bits.
            problems.append(
                f"{held:,} units are held and {in_flight:,} are on their way, and {brought:,} were "
                "brought"
            )
        return MassView(
            held=held,
            in_flight=in_flight,
            brought=brought,
            is_exact=not problems,
            problems=problems,
        )

    def _settle(self, readings: Mapping[Key, Reading]) -> None:
        """Compare what waited, then what is new, with the other end; keep what has to wait."""
        claims = [*self._waiting.values(), *_claims(readings)]
        self._waiting = {}
        for claim in claims:
            edge, other = claim[:3], readings.get(claim.other)
            if other is None or other.time < claim.time:
                # The oldest: the other end's next reading may answer it.
                self._waiting.setdefault(edge, claim)
            else:
                self._problems[edge] = _disagreement(claim, other)


def _claims(readings: Mapping[Key, Reading]) -> Iterator[_Claim]:
    for key, reading in readings.items():
        name, time, books = reading.name, reading.time, reading.books
        for sender, units in books.heard.items():
            yield _Claim(key, sender, "heard", name, time, units)
        for receiver in books.sent.keys() & set(reading.complete):
            yield _Claim(key, receiver, "acknowledged", name, time, books.sent[receiver])


def _disagreement(claim: _Claim, other: Reading) -> str:
    """What is wrong by a claim and what the other end says then or later; empty if nothing."""
    passed = other.books.sent if claim.kind == "heard" else other.books.heard
    missing = wrapped(claim.units - passed.get(claim.teller, 0))
    if missing <= 0 or (claim.kind == "heard" and claim.teller in other.given_up):
        return ""
    if claim.kind == "heard":
        return f"{claim.name} heard {missing:,} units from {other.name} that were never sent"
    return f"{other.name} acknowledged {missing:,} units from {claim.name} and did not take them in"
