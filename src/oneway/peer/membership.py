"""Membership in a network: a peer's card, whom it sends to and who may send to it, in Python."""

from __future__ import annotations

from oneway.peer import trust
from oneway.peer.home.home import Home
from oneway.peer.identity.card import Card, parse_card_or_key
from oneway.peer.node import Node
from oneway.peer.runtime import Runtime
from oneway.transport.keys import KeyPair


class Membership:
    """The part of a `Peer` that is about other peers; what `oneway peer trust` and `admit` do."""

    home: Home
    node: Node
    _keys: KeyPair
    _runtime: Runtime | None

    @property
    def name(self) -> str:
        """What others call it."""
        return self.node.config.name

    @property
    def card(self) -> str:
        """The line to hand to others: who this peer is and where it listens; no secret."""
        return str(self.node.config.card(self._keys.public))

    def trust(self, card: str | Membership, weight: float = 1.0) -> None:
        """Send to a peer from now on, given its card; one that runs follows in half a second.

        Args:
            card: The other's `card`, or the other itself, if it lives in this process.
            weight: How much it gets, compared with the other receivers.

        Raises:
            CardError: It is no card.
            ConfigError: The card is this peer's own, or the weight is not positive.
        """
        trust.send_to(self.home, Card.parse(_card_of(card)), weight)
        self._follow()

    def distrust(self, who: str) -> None:
        """Send no more to a receiver, by its name; a `ConfigError` if it is none."""
        trust.send_no_more_to(self.home, who)
        self._follow()

    def admit(self, card: str | Membership) -> None:
        """Let a peer send to this one, given its card or its key; without this nobody may.

        Raises:
            CardError: It is no card, this peer's own, or its name belongs to another key.
        """
        trust.admit_one(self.home, parse_card_or_key(_card_of(card)))
        self._follow()

    def _follow(self) -> None:
        """Do as peer.toml says now; a runtime looks at it by itself."""
        if self._runtime is None:
            self.node.follow(self.home.config())


def _card_of(card: str | Membership) -> str:
    return card.card if isinstance(card, Membership) else str(card)
