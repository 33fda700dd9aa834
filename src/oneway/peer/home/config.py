"""Peer configuration: name, addresses, whom the peer sends to and who may send to it.

Trust is changed by making a new configuration out of the old one; `config_file` stores it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeVar

from msgspec import Meta

from oneway.errors import CardError, ConfigError
from oneway.files.validation import check_fields, checked, nearest_of
from oneway.peer.home.limits import Limits
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.identity.card import Card, check_name
from oneway.peer.identity.keys import check_key, key_text
from oneway.records.weight import Weight
from oneway.sentences import listed, nearest, shown
from oneway.transport import TRANSPORTS, Faults
from oneway.transport.address import is_wildcard, parse_address

DEFAULT_KEEP = 0.5
"""The share of its mass that a peer keeps at a push, unless it is set."""

_Peer = TypeVar("_Peer", "Receiver", "Sender")


@dataclass(frozen=True)
class Receiver:
    """A peer that this one sends to.

    Attributes:
        card: Who it is and where it listens.
        weight: How much it gets of what is handed out, compared with the other receivers.

    Raises:
        ConfigError: If the weight is not a positive number.
    """

    card: Annotated[Card, Meta(extra={"rule": "a card, as oneway peer card prints it"})]
    weight: Weight = 1.0

    def __post_init__(self) -> None:
        weight = checked(f"the weight of {self.name}", self.weight, Weight)
        object.__setattr__(self, "weight", weight)

    @property
    def name(self) -> str:
        """What it calls itself."""
        return self.card.name

    @property
    def key(self) -> bytes:
        """Its public key."""
        return self.card.key

    @property
    def address(self) -> str:
        """Where to dial: `host:port`."""
        return self.card.address


@dataclass(frozen=True)
class Sender:
    """A peer that may send to this one: its public key, and a name if one is known.

    Raises:
        ConfigError: If the key or the name breaks its rule.
    """

    key: Annotated[bytes, Meta(extra={"rule": "a public key in quotes"})]
    name: str = ""

    def __post_init__(self) -> None:
        check_key(self.key)
        if self.name:
            check_name(self.name)


def _check_address(address: str) -> str:
    parse_address(address)
    return address


def _check_advertised(address: str) -> str:
    if address and is_wildcard(parse_address(address)[0]):
        raise ConfigError(
            "it means every interface, which nobody can dial; it must be an address under which "
            "others reach this machine"
        )
    return address


def _check_transport(name: str) -> str:
    if name not in TRANSPORTS:
        raise ConfigError(nearest_of(name, TRANSPORTS))
    return name


@dataclass(frozen=True, kw_only=True)
class Peers:
    """What commands and pages change: peers.toml.

    Attributes:
        receivers: Whom it sends to.
        senders: Who may send to it.
        faults: What goes wrong on purpose; for labs and tests only.
    """

    anyone: Annotated[
        bool, Meta(description="whether everybody may send to it, not only the senders below")
    ] = False
    leaving: Annotated[bool, Meta(description="true: hand everything over and stop")] = False
    paused: Annotated[
        bool, Meta(description="true: neither learn nor push for the time being, but answer")
    ] = False
    faults: Faults = field(default_factory=Faults)
    receivers: tuple[Receiver, ...] = ()
    senders: tuple[Sender, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        for what, known in (("receivers", self.receivers), ("senders", self.senders)):
            _refuse_twice(what, "key", [key_text(peer.key) for peer in known])
            _refuse_twice(what, "name", [peer.name.lower() for peer in known if peer.name])


@dataclass(frozen=True)
class PeerConfig(Peers):
    """All settings of one peer: peer.toml, which its owner writes, and peers.toml.

    Attributes:
        limits: How far it trusts the network.
        privacy: What it asks for beyond the task.

    Raises:
        ConfigError: If one of them breaks its rule.
    """

    name: Annotated[
        str,
        Meta(
            description="what others see; names are for people, keys decide",
            extra={"check": check_name},
        ),
    ]
    listen: Annotated[
        str, Meta(description="where this peer listens", extra={"check": _check_address})
    ]
    advertise: Annotated[
        str,
        Meta(
            description='where others reach it, if not there; "" if there',
            extra={"check": _check_advertised},
        ),
    ] = ""
    transport: Annotated[
        str,
        Meta(
            description="how messages travel; every peer needs the same",
            extra={"check": _check_transport},
        ),
    ] = "zeromq"
    keep: Annotated[
        float, Meta(gt=0, lt=1, description="the share of its mass that it keeps at a push")
    ] = DEFAULT_KEEP
    allow: Annotated[
        tuple[str, ...],
        Meta(description='code that the task may name, as "package.module:function"'),
    ] = ()
    limits: Limits = field(default_factory=Limits)
    privacy: OwnPrivacy = field(default_factory=OwnPrivacy)

    def unfollowed(self, before: PeerConfig, own: OwnPrivacy) -> list[str]:
        """Return a sentence for every change that a running peer, with `own` privacy, ignores."""
        changed = {
            "[privacy]": self.privacy not in (before.privacy, own),
            "allow": self.allow != before.allow,
        }
        return [
            f"{name} in peer.toml was changed, which a running peer does not follow"
            for name, is_new in changed.items()
            if is_new
        ]

    @property
    def shares(self) -> dict[bytes, float]:
        """How much of what the peer holds a push hands to each receiver, by key."""
        total = sum(peer.weight for peer in self.receivers)
        return {peer.key: (1.0 - self.keep) * peer.weight / total for peer in self.receivers}

    def card(self, key: bytes) -> Card:
        """Return the card to hand to others; `key` is this peer's public key.

        Raises:
            ConfigError: If it listens on every interface and does not say under which address
                others reach it.
        """
        host, port = parse_address(self.advertise or self.listen)
        if is_wildcard(host):
            raise ConfigError(
                f"the peer listens on every interface ({self.listen}), so its card needs the "
                f'address under which others reach it: set advertise = "HOST:{port}" in peer.toml'
            )
        return Card(key, host, port, self.name)

    def name_of(self, key: bytes) -> str:
        """Return the name of a receiver or sender, or the beginning of its key."""
        names = (peer.name for peer in self._peers if peer.key == key)
        return next(filter(None, names), f"{key_text(key)[:8]}...")

    def with_receiver(self, card: Card, weight: float = 1.0, *, own_key: bytes) -> PeerConfig:
        """Return a configuration that sends to this peer; a known key gets the new card and weight.

        Raises:
            CardError: If it is one's own card, or its name belongs to another key.
            ConfigError: If the weight is not a positive number.
        """
        self._check_stranger(card.key, card.name, own_key)
        receiver = Receiver(card, weight)
        return replace(self, receivers=_put(self.receivers, receiver))

    def without_receiver(self, name: str) -> PeerConfig:
        """Return a configuration that does not send to this peer, given by name or key.

        Raises:
            ConfigError: If there is no such receiver.
        """
        return replace(self, receivers=_without("receiver", name, self.receivers))

    def with_sender(self, card_or_key: Card | bytes, *, own_key: bytes) -> PeerConfig:
        """Return a configuration that lets this peer send; a known key gets the card's name.

        Raises:
            CardError: If it is one's own card, or its name belongs to another key.
        """
        if isinstance(card_or_key, Card):
            sender = Sender(card_or_key.key, card_or_key.name)
        else:
            known = (peer for peer in self.senders if peer.key == card_or_key)
            sender = next(known, Sender(card_or_key))
        self._check_stranger(sender.key, sender.name, own_key)
        return replace(self, senders=_put(self.senders, sender))

    def without_sender(self, name: str) -> PeerConfig:
        """Return a configuration that does not let this peer send, given by name or key.

        Raises:
            ConfigError: If there is no such sender.
        """
        return replace(self, senders=_without("sender", name, self.senders))

    @property
    def _peers(self) -> list[Receiver | Sender]:
        return [*self.receivers, *self.senders]

    def _check_stranger(self, key: bytes, name: str, own_key: bytes) -> None:
        if key == own_key:
            raise CardError(
                "that is your own card; ask the other peer for the line that oneway peer card "
                "prints there"
            )
        known = [(peer.name, peer.key) for peer in self._peers if peer.name]
        for other, holder in [(self.name, own_key), *known]:
            if other.lower() == name.lower() and holder != key:
                whose = "yourself" if holder == own_key else f"the key {key_text(holder)[:8]}..."
                raise CardError(
                    f"the name {name} is taken by {whose}, and this card has the key "
                    f"{key_text(key)[:8]}...; give it another name by changing the end of the "
                    f"card, ?name={name}2, or first remove the other"
                )


def _put(peers: tuple[_Peer, ...], new: _Peer) -> tuple[_Peer, ...]:
    """Return the peers with a new one, in the place of the one with its key if there is one."""
    by_key = {peer.key: peer for peer in peers}
    by_key[new.key] = new
    return tuple(by_key.values())


def _without(what: str, name: str, peers: tuple[_Peer, ...]) -> tuple[_Peer, ...]:
    """Return the peers without the one of this name or key."""
    found = {key_text(peer.key): peer for peer in peers}
    found |= {peer.name: peer for peer in peers if peer.name}
    if name not in found:
        names = [peer.name or key_text(peer.key) for peer in peers]
        known = f"; there are {listed(names)}" if names else f"; there is no {what} at all"
        raise ConfigError(f"there is no {what} {shown(name)}{nearest(name, names) or known}")
    return tuple(peer for peer in peers if peer is not found[name])


def _refuse_twice(what: str, which: str, values: list[str]) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            raise ConfigError(f"two {what} have the {which} {value}; remove one of them")
