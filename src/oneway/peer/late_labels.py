"""Delayed labels: predictions that wait for their label, each to be learned from once.

What a sample was encoded to is kept in the peer's store until its label is told, and nowhere else.
The gradient is taken when the label comes, at the model of that moment, which is what descends;
the loss that is counted is that of the prediction that was made, with the model it was made with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from oneway.errors import DataError, OnewayError, TicketError
from oneway.peer.lesson import Sample
from oneway.records import Vector
from oneway.sentences import listed, shown
from oneway.tables.cells import group_name, is_empty
from oneway.tables.labels import ClassName
from oneway.tables.rows import Position

if TYPE_CHECKING:
    from oneway.peer.node import Node

DAY = 86400.0


@dataclass(frozen=True)
class Ticket:
    """A prediction whose label is to come.

    Attributes:
        id: What to tell the label with; valid until then, also after a restart.
        prediction: The label that is expected.
    """

    id: str
    prediction: ClassName | float


class Waiting(msgspec.Struct, frozen=True, eq=False):
    """What is kept of a prediction until its label is told.

    Attributes:
        made: When, in seconds since 1970.
        boot: In which life of the peer.
        features: The sample, encoded.
        params: The model that predicted.
        owner: Whose the sample is, hashed; empty if the task does not ask.
    """

    made: float
    boot: int
    features: Vector
    params: Vector
    owner: bytes = b""


Open: TypeAlias = Mapping[str, Waiting]
"""The predictions that wait, by ticket; the oldest first."""


class LateLabels:
    """Predictions of a node that wait for their labels; its lock is held while they change."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def predict(
        self, x: Mapping[str, object], position: Position | None = None, name: str = ""
    ) -> Ticket:
        """Predict a sample, and keep it until its label is told.

        Args:
            x: The sample.
            position: Where the stream goes on after it, if it is one of the stream.
            name: The ticket, if its owner has a name for it; by default a new one.

        Raises:
            DataError: The sample cannot be used.
            TicketError: Too many wait already, or one of that name does.
        """
        node = self._node
        with node.lock:
            features, group = node.learner.encoded(x), node.groups.name_of(x)
            self.drop_expired()
            known = node.snapshot.tickets
            self._require_room(known)
            chosen = name or f"{node.new_stamp():x}"
            if chosen in known:
                raise TicketError(
                    f"a prediction waits under the ticket {shown(chosen)} already; tell its label "
                    "first, or give the new one another name"
                )
            params, boot = node.settled, node.snapshot.state.boot
            prediction = node.learner.fitted(params).predict_one(x)
            waiting = Waiting(node.wall_clock(), boot, features, params, group)
            node.snapshot = node.snapshot.with_tickets({**known, chosen: waiting}, position)
            return Ticket(chosen, prediction)

    def tell(self, ticket: str, y: object, position: Position | None = None) -> float:
        """Learn from a prediction's label; return the loss of that prediction.

        Raises:
            TicketError: No prediction waits under the ticket; or it was made in a former life, and
                receivers have not told yet whether that one had learned from it.
            DataError: The label cannot be used; the prediction goes on waiting.
        """
        node = self._node
        with node.lock:
            self.drop_expired()
            waiting = node.snapshot.tickets.get(ticket)
            if waiting is None:
                raise TicketError(
                    f"no prediction waits under the ticket {shown(ticket)}: its label was told "
                    "before, it is another peer's, or it was made more than "
                    f"{node.config.limits.ticket_days:g} days ago (ticket_days in peer.toml); "
                    "every label is learned from once"
                )
            # A stream has waited for them before its first row.
            is_old = position is None and waiting.boot != node.snapshot.state.boot
            if is_old and node.unanswered:
                names = listed(map(node.name_of, node.unanswered), 3)
                raise OnewayError(
                    f"the peer waits for {names} to tell how far it had come before it was started "
                    f"anew; tell the label of {shown(ticket)} again in a moment"
                )
            before = node.before_sample()
            groups = node.groups.counted_name(before.groups, waiting.owner)
            left = {name: it for name, it in before.tickets.items() if name != ticket}
            sample = Sample(waiting.features, y, groups, position, waiting.params)
            return node.take_lesson(replace(before, tickets=left), sample)

    def take_row(self, cells: Mapping[str, object], column: str, position: Position) -> None:
        """Take a row of a stream of two kinds: without a label it is predicted, with one it tells.

        Args:
            cells: The row.
            column: Names the prediction that a row makes, or tells the label of.
            position: Where the stream goes on after it.

        Raises:
            DataError: The row cannot be used, as `predict` and `tell` say; or names nothing.
        """
        name, y = group_name(cells.get(column)), cells.get(self._node.task.label)
        if not name:
            raise DataError(
                f"column {shown(column)} is {shown(cells.get(column))}; it must name the "
                "prediction that the row asks for, or tells the label of"
            )
        if is_empty(y):
            self.predict(cells, position, name)
        else:
            self.tell(name, y, position)

    def drop_expired(self) -> None:
        """Forget predictions that are too old for a label to come."""
        node = self._node
        known = node.snapshot.tickets
        oldest = node.wall_clock() - DAY * node.config.limits.ticket_days
        old = sum(1 for _ in takewhile(lambda it: it.made < oldest, known.values()))
        if old:
            kept = dict(list(known.items())[old:])
            node.snapshot = node.snapshot.with_tickets(kept)

    def _require_room(self, known: Open) -> None:
        node = self._node
        most = node.config.limits.tickets_for(len(node.learner.start))
        if len(known) >= most:
            raise TicketError(
                f"{len(known):,} predictions wait for their labels, and a peer with this model "
                f"keeps at most {most:,}; tell some labels, or set open_tickets (at most so many) "
                "or ticket_days (how long) under [limits] in peer.toml"
            )
