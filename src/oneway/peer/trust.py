"""Changes of peers.toml: whom a peer sends to and who may send to it; a running one follows.

Each function returns what has changed, as a sentence.
"""

from __future__ import annotations

from dataclasses import replace

from oneway.errors import ConfigError
from oneway.peer.home.config import PeerConfig, Receiver
from oneway.peer.home.home import Home
from oneway.peer.identity.card import Card


def send_to(home: Home, card: Card, weight: float) -> str:
    """Send to a peer from now on.

    Raises:
        ConfigError: If this peer is leaving, the card is its own, the weight is not positive, or
            the task promises less privacy than this peer requires.
    """
    own_key = home.keys().public

    def with_it(config: PeerConfig) -> PeerConfig:
        _check_privacy(home, config)
        if config.leaving:
            raise ConfigError(
                f"{config.name} is leaving or has left, and sends to nobody new; to take part "
                "again, make a new peer in another folder with oneway peer init"
            )
        return config.with_receiver(card, weight, own_key=own_key)

    _, changed = home.change(with_it)
    return f"{changed.name} sends to {card.name} with weight {weight:g}."


def send_no_more_to(home: Home, name_or_key: str) -> tuple[Receiver, str]:
    """Send no more to a peer, which is returned too; a `ConfigError` if it is no receiver."""
    config, changed = home.change(lambda config: config.without_receiver(name_or_key))
    (gone,) = set(config.receivers) - set(changed.receivers)
    return gone, f"{config.name} sends no more to {gone.name}."


def admit_one(home: Home, card_or_key: Card | bytes) -> str:
    """Let a peer send to this one.

    Raises:
        CardError: If it is this peer's own card, or its name belongs to another key.
        ConfigError: If the task promises less privacy than this peer requires.
    """
    own_key = home.keys().public

    def with_it(config: PeerConfig) -> PeerConfig:
        _check_privacy(home, config)
        return config.with_sender(card_or_key, own_key=own_key)

    _, changed = home.change(with_it)
    key = card_or_key if isinstance(card_or_key, bytes) else card_or_key.key
    return f"{changed.name} admits {changed.name_of(key)}."


def admit_no_more(home: Home, name_or_key: str) -> str:
    """Take an admission back; a `ConfigError` if there is none."""
    config, changed = home.change(lambda config: config.without_sender(name_or_key))
    (gone,) = set(config.senders) - set(changed.senders)
    return f"{config.name} takes in nothing more from {config.name_of(gone.key)}."


def admit_anyone(home: Home, *, revoke: bool) -> str:
    """Let everybody send to this one, or only those it knows.

    Raises:
        ConfigError: If the task promises less privacy than this peer requires.
    """

    def with_them(config: PeerConfig) -> PeerConfig:
        if not revoke:
            _check_privacy(home, config)
        return replace(config, anyone=not revoke)

    _, changed = home.change(with_them)
    return f"{changed.name} admits {'only those it knows' if revoke else 'anyone'}."


def how_it_follows(home: Home) -> str:
    """When a changed peers.toml takes effect, as a sentence."""
    name, process = home.config().name, home.running_process()
    if process is None:
        return f"{name} is not running; it will do so once you start it with oneway peer run."
    return f"{name} is running (process {process}) and follows within half a second."


def _check_privacy(home: Home, config: PeerConfig) -> None:
    """Check that peers of this task promise enough: they have the same one, or are not heard."""
    if config.privacy.require_epsilon != "any":
        config.privacy.check(home.task())
