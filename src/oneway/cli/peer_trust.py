"""Changing whom a peer sends to and who may send to it, whoever asks: a command or a page.

Changes go into peer.toml; a running peer follows. Each function returns the configuration that
holds now (`send_no_more_to` the peer it was), and what has changed, as a sentence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.peer.home.config import PeerConfig, Receiver
    from oneway.peer.home.home import Home
    from oneway.peer.identity.card import Card


def send_to(mine: Home, card: Card, weight: float) -> tuple[PeerConfig, str]:
    """Send to a peer from now on.

    Raises:
        ConfigError: If this peer is leaving, the card is its own, or the weight is not positive.
    """
    own_key = mine.keys().public

    def with_it(config: PeerConfig) -> PeerConfig:
        if config.leaving:
            raise ConfigError(
                f"{config.name} is leaving or has left, and sends to nobody new; to take part "
                "again, make a new peer in another folder with oneway peer init"
            )
        return config.with_receiver(card, weight, own_key=own_key)

    _, changed = mine.change(with_it)
    return changed, f"{changed.name} sends to {card.name} with weight {weight:g}."


def send_no_more_to(mine: Home, name_or_key: str) -> tuple[Receiver, str]:
    """Send no more to a peer.

    Raises:
        ConfigError: If there is no such receiver.
    """
    config, changed = mine.change(lambda config: config.without_receiver(name_or_key))
    (gone,) = set(config.receivers) - set(changed.receivers)
    return gone, f"{config.name} sends no more to {gone.name}."


def admit_one(mine: Home, card_or_key: Card | bytes) -> tuple[PeerConfig, str]:
    """Let a peer send to this one.

    Raises:
        CardError: If it is this peer's own card, or its name belongs to another key.
    """
    own_key = mine.keys().public
    _, changed = mine.change(lambda config: config.with_sender(card_or_key, own_key=own_key))
    key = card_or_key if isinstance(card_or_key, bytes) else card_or_key.key
    return changed, f"{changed.name} admits {changed.name_of(key)}."


def admit_no_more(mine: Home, name_or_key: str) -> tuple[PeerConfig, str]:
    """Take an admission back.

    Raises:
        ConfigError: If there is no such sender.
    """
    config, changed = mine.change(lambda config: config.without_sender(name_or_key))
    (gone,) = set(config.senders) - set(changed.senders)
    return changed, f"{config.name} takes in nothing more from {config.name_of(gone.key)}."


def admit_anyone(mine: Home, *, revoke: bool) -> tuple[PeerConfig, str]:
    """Let everybody send to this one, or only those it knows."""
    _, changed = mine.change(lambda config: replace(config, anyone=not revoke))
    who = "only those it knows" if revoke else "anyone"
    return changed, f"{changed.name} admits {who}."
