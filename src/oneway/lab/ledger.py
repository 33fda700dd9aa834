"""Is every unit of mass accounted for, at this very moment, while everybody learns and pushes?

Peers cannot be stopped to be counted, so each is read at a moment of its own. Two things are true
all the same, in whole numbers: the books of each peer balance, and of what a peer has heard until
one moment, all was sent before. A third catches what is lost on the way: once a receiver has
acknowledged everything, it must have heard everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from oneway.protocol.audit import Books, wrapped
from oneway.protocol.state import Key
from oneway.records.network import MassView


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


@dataclass(frozen=True)
class _Claim:
    """What one end of an edge says: so many units, until then."""

    time: float
    units: int


@dataclass
class _Edge:
    """What waits for a word from the other end, and what is wrong until it is put right."""

    heard: _Claim | None = None
    sent: _Claim | None = None
    invented: str = ""
    lost: str = ""


class Ledger:
    """Audits a network while it runs; to be asked again and again."""

    def __init__(self) -> None:
        self._edges: dict[tuple[Key, Key], _Edge] = {}

    def check(self, readings: Mapping[Key, Reading], unreadable: Collection[str] = ()) -> MassView:
        """Compare the last reading of every peer with its own numbers, and with the others'.

        A reading that is newer than that of the other end is kept, and compared with the next.

        Args:
            readings: By public key; a peer that has no books yet has no reading.
            unreadable: What is wrong with books that cannot be read, in sentences.
        """
        for (sender, receiver), edge in self._all_edges(readings):
            _compare_heard(edge, readings.get(sender), readings.get(receiver), (sender, receiver))
            _compare_sent(edge, readings.get(sender), readings.get(receiver), (sender, receiver))
        held = sum(reading.books.held for reading in readings.values())
        brought = sum(reading.books.brought for reading in readings.values())
        in_flight = wrapped(
            sum(sum(reading.books.sent.values()) for reading in readings.values())
            - sum(sum(reading.books.heard.values()) for reading in readings.values())
        )
        problems = [*unreadable, *_unbalanced(readings)]
        for edge in self._edges.values():
            problems += filter(None, (edge.invented, edge.lost))
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

    def _all_edges(
        self, readings: Mapping[Key, Reading]
    ) -> Iterator[tuple[tuple[Key, Key], _Edge]]:
        pairs = {(sender, key) for key, of in readings.items() for sender in of.books.heard}
        pairs |= {(key, receiver) for key, of in readings.items() for receiver in of.books.sent}
        for pair in sorted(pairs):
            yield pair, self._edges.setdefault(pair, _Edge())


def _unbalanced(readings: Mapping[Key, Reading]) -> Iterator[str]:
    for reading in readings.values():
        books = reading.books
        if not books.balances:
            yield (
                f"the books of {reading.name} do not balance: it holds {books.held:,} units, and "
                f"by what came and went it must be {books.owed:,}"
            )


def _compare_heard(
    edge: _Edge, sender: Reading | None, receiver: Reading | None, pair: tuple[Key, Key]
) -> None:
    """Nothing may have been heard that was not sent."""
    now = _claim(receiver, receiver.books.heard.get(pair[0])) if receiver else None
    waiting = None
    for claim in filter(None, (edge.heard, now)):
        if sender is None or sender.time < claim.time:
            waiting = waiting or claim  # the oldest: the sender's next word may answer it
            continue
        more = -wrapped(sender.books.sent.get(pair[1], 0) - claim.units)
        wrong = more > 0 and pair[1] not in sender.given_up
        edge.invented = (
            f"{_name(receiver)} heard {more:,} units from {sender.name} that were never sent"
            if wrong
            else ""
        )
    edge.heard = waiting


def _compare_sent(
    edge: _Edge, sender: Reading | None, receiver: Reading | None, pair: tuple[Key, Key]
) -> None:
    """What was acknowledged in full must have been heard in full."""
    complete = sender is not None and pair[1] in sender.complete
    now = _claim(sender, sender.books.sent.get(pair[1])) if sender and complete else None
    waiting = None
    for claim in filter(None, (edge.sent, now)):
        if receiver is None or receiver.time < claim.time:
            waiting = waiting or claim
            continue
        missing = wrapped(claim.units - receiver.books.heard.get(pair[0], 0))
        edge.lost = (
            f"{receiver.name} acknowledged {missing:,} units from {_name(sender)} and did not "
            "take them in"
            if missing > 0
            else ""
        )
    edge.sent = waiting


def _claim(reading: Reading, units: int | None) -> _Claim | None:
    return None if units is None else _Claim(reading.time, units)


def _name(reading: Reading | None) -> str:
    return "a peer without books" if reading is None else reading.name
