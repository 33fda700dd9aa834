"""What one peer is told: its name, where it listens, whom it sends to and who may send to it.

Trust is changed by making a new configuration out of the old one; `config_file` stores it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TypeVar

from oneway.errors import CardError, ConfigError
from oneway.files.toml import checked_bool, checked_number
from oneway.peer.home.limits import Faults, Limits
from oneway.peer.identity.address import parse_address
from oneway.peer.identity.card import Card, check_name
from oneway.peer.identity.keys import SIZE, key_text
from oneway.records.weight import WEIGHT_RULE, is_weight
from oneway.sentences import listed, nearest, shown
from oneway.transport.address import is_wildcard

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

    card: Card
    weight: float = 1.0

    def __post_init__(self) -> None:
        weight = checked_number(
            f"the weight of {self.card.name}",
            self.weight,
            WEIGHT_RULE,
            is_weight,
            ConfigError,
        )
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

    key: bytes
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.key, bytes) or len(self.key) != SIZE:
            raise ConfigError(f"a key has {SIZE} bytes, not {shown(self.key)}")
        if self.name:
            check_name(self.name)


@dataclass(frozen=True)
class PeerConfig:
    """All that one peer is told, besides its key and the task.

    Attributes:
        name: What it calls itself.
        listen: The address it listens on, `host:port`.
        advertise: The address on its card, if others reach it under another one.
        keep: The share of its mass that it keeps at a push.
        receivers: Whom it sends to.
        senders: Who may send to it.
        anyone: Whether everybody may.
        leaving: Whether it hands over all it has and stops.
        paused: Whether it neither learns nor pushes for the time being; it still answers.
        limits: How far it trusts the network.
        faults: What goes wrong on purpose; for labs and tests only.

    Raises:
        ConfigError: If one of them breaks its rule.
    """

    name: str
    listen: str
    advertise: str = ""
    keep: float = 0.5
    receivers: tuple[Receiver, ...] = ()
    senders: tuple[Sender, ...] = ()
    anyone: bool = False
    leaving: bool = False
    paused: bool = False
    limits: Limits = field(default_factory=Limits)
    faults: Faults = field(default_factory=Faults)

    def __post_init__(self) -> None:
        check_name(self.name)
        _check_address("listen", self.listen)
        if self.advertise:
            _check_address("advertise", self.advertise)
            if is_wildcard(parse_address(self.advertise)[0]):
                raise ConfigError(
                    f"advertise is {shown(self.advertise)}, which nobody can dial; it must be an "
                    "address under which others reach this machine"
                )
        keep = checked_number(
            "keep", self.keep, "a share between 0 and 1, 0.5 is good", _is_share, ConfigError
        )
        object.__setattr__(self, "keep", keep)
        checked_bool("anyone", self.anyone, ConfigError)
        checked_bool("leaving", self.leaving, ConfigError)
        checked_bool("paused", self.paused, ConfigError)
        for what, known in (("receivers", self.receivers), ("senders", self.senders)):
            _refuse_twice(what, "key", [key_text(peer.key) for peer in known])
            _refuse_twice(what, "name", [peer.name for peer in known if peer.name])

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
        gone = _find("receiver", name, self.receivers)
        return replace(self, receivers=tuple(peer for peer in self.receivers if peer is not gone))

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
        gone = _find("sender", name, self.senders)
        return replace(self, senders=tuple(peer for peer in self.senders if peer is not gone))

    @property
    def _peers(self) -> list[Receiver | Sender]:
        return [*self.receivers, *self.senders]

    def _check_stranger(self, key: bytes, name: str, own_key: bytes) -> None:
        if key == own_key:
            raise CardError(
                "that is your own card; ask the other peer for the line that oneway peer card "
                "prints there"
            )
        taken = {peer.name: peer.key for peer in self._peers if peer.name}
        holder = (taken | {self.name: own_key}).get(name, key)
        if holder != key:
            whose = "yourself" if holder == own_key else f"the key {key_text(holder)[:8]}..."
            raise CardError(
                f"the name {name} is taken by {whose}, and this card has the key "
                f"{key_text(key)[:8]}...; give it another name by changing the end of the card, "
                f"?name={name}2, or first remove the other"
            )


def _put(peers: tuple[_Peer, ...], new: _Peer) -> tuple[_Peer, ...]:
    """Return the peers with a new one, in the place of the one with its key if there is one."""
    by_key = {peer.key: peer for peer in peers}
    by_key[new.key] = new
    return tuple(by_key.values())


def _find(what: str, name: str, peers: tuple[_Peer, ...]) -> _Peer:
    found = {key_text(peer.key): peer for peer in peers}
    found |= {peer.name: peer for peer in peers if peer.name}
    if name not in found:
        names = [peer.name or key_text(peer.key) for peer in peers]
        known = f"; there are {listed(names)}" if names else f"; there is no {what} at all"
        raise ConfigError(f"there is no {what} {shown(name)}{nearest(name, names) or known}")
    return found[name]


def _is_share(value: float) -> bool:
    return 0 < value < 1


def _check_address(name: str, value: object) -> None:
    try:
        if not isinstance(value, str):
            raise ConfigError("an address is text in quotes")
        parse_address(value)
    except ConfigError as error:
        raise ConfigError(f"{name} is {shown(value)}: {error}") from None


def _refuse_twice(what: str, which: str, values: list[str]) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            raise ConfigError(f"two {what} have the {which} {value}; remove one of them")
