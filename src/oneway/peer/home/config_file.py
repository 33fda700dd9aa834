"""peer.toml: what one peer is told, as a file that people read and edit."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from oneway.errors import ConfigError
from oneway.files.atomic import write_atomically
from oneway.files.toml import parse_toml, read_text, refuse_unknown, toml_value
from oneway.peer.home.config import PeerConfig, Receiver, Sender
from oneway.peer.home.limits import Faults, Limits
from oneway.peer.identity.card import Card
from oneway.peer.identity.keys import key_text, parse_key
from oneway.sentences import shown

_HEADER = """\
# This peer. While it runs it follows every change, except to listen and max_message_bytes.
# oneway peer trust, distrust, admit and leave rewrite this file and do not keep your comments.
"""

_COMMENTS = {
    "name": "what others see; names are for people, keys decide",
    "listen": "where this peer listens",
    "advertise": 'where others reach it, if not there; "" if there',
    "keep": "the share of its mass that it keeps at a push",
    "anyone": "whether everybody may send to it, not only the senders below",
    "leaving": "true: hand everything over and stop",
    "paused": "true: neither learn nor push for the time being, but answer",
    "window": 'pushes to one receiver that may be unacknowledged; "auto" goes by the model\'s size',
    "max_strikes": "rejected messages after which a sender is quarantined",
    "clip": "how far a sender's model may lie from one's own, relative to that; or \"off\"",
    "max_message_bytes": "larger messages are refused",
    "pushes_per_second": "how often to push at most",
    "presume_dead_after": "seconds of silence after which a receiver is given up",
}


def read_config(path: Path) -> PeerConfig:
    """Return the configuration in a file.

    Raises:
        ConfigError: If it cannot be read, is not TOML, or a key is missing, unknown or breaks its
            rule.
    """
    remedy = "make a peer with oneway peer init NAME --task task.toml"
    return parse_config(read_text(path, ConfigError, remedy), str(path))


def write_config(config: PeerConfig, path: Path) -> None:
    """Replace a peer.toml, whole or not at all; it keeps its mode.

    Raises:
        ConfigError: If it cannot be written.
    """
    try:
        write_atomically(path, config_toml(config))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; it is as it was") from error


def parse_config(text: str, where: str = "peer.toml") -> PeerConfig:
    """Return the configuration that a TOML text describes.

    Raises:
        ConfigError: As for `read_config`.
    """
    parsed = parse_toml(text, where, ConfigError)
    table = refuse_unknown(parsed, _names(PeerConfig), where, ConfigError)
    for name in ("name", "listen"):
        if name not in table:
            raise ConfigError(f"{where} has no {name}; add it: {_COMMENTS[name]}")
    try:
        parts = {
            "limits": _limits(table.get("limits", {})),
            "faults": Faults(**_known(table.get("faults", {}), Faults, "[faults]")),
            "receivers": tuple(_receiver(item) for item in _tables(table, "receivers")),
            "senders": tuple(_sender(item) for item in _tables(table, "senders")),
        }
        return PeerConfig(**(table | parts))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def config_toml(config: PeerConfig) -> str:
    """Return the text of a peer.toml that reads back as this configuration."""
    top = {name: getattr(config, name) for name in _COMMENTS if hasattr(config, name)}
    limits = asdict(config.limits) | {"clip": config.limits.clip or "off"}
    lines = [_HEADER, *_lines(top), "", "[limits]", *_lines(limits)]
    for receiver in config.receivers:
        item = {"card": str(receiver.card), "weight": receiver.weight}
        lines += ["", "[[receivers]]", *_lines(item)]
    for sender in config.senders:
        item = {"name": sender.name, "key": key_text(sender.key)}
        lines += ["", "[[senders]]", *_lines(item)]
    if config.faults != Faults():
        lines += ["", "[faults]", *_lines(asdict(config.faults))]
    return "\n".join([*lines, ""])


def _lines(table: dict[str, Any]) -> list[str]:
    return [
        f"{f'{name} = {toml_value(value)}':<32}  # {_COMMENTS[name]}"
        if name in _COMMENTS and name != "name"
        else f"{name} = {toml_value(value)}"
        for name, value in table.items()
    ]


def _tables(table: dict[str, Any], name: str) -> list[object]:
    items = table.get(name, [])
    if not isinstance(items, list):
        raise ConfigError(f"{name} is {shown(items)}; each begins with a line [[{name}]]")
    return items


def _limits(item: object) -> Limits:
    table = _known(item, Limits, "[limits]")
    clip = table.get("clip")
    if clip == 0:
        # Zero is how `Limits` says "off"; who writes it means the opposite.
        raise ConfigError(f'clip is {shown(clip)}; it must be a number above 0, or "off"')
    return Limits(**(table | {"clip": 0.0} if clip == "off" else table))


def _receiver(item: object) -> Receiver:
    table = refuse_unknown(item, ("card", "weight"), "[[receivers]]", ConfigError)
    card = Card.parse(_text("receivers", "card", table))
    return Receiver(card, table.get("weight", 1.0))


def _sender(item: object) -> Sender:
    table = refuse_unknown(item, ("name", "key"), "[[senders]]", ConfigError)
    name = _text("senders", "name", table) if "name" in table else ""
    return Sender(parse_key(_text("senders", "key", table)), name)


def _text(where: str, name: str, table: dict[str, Any]) -> str:
    value = table.get(name)
    if not isinstance(value, str):
        raise ConfigError(f"{name} under [[{where}]] is {shown(value)}; it must be text in quotes")
    return value


def _known(table: object, kind: type[Limits | Faults], where: str) -> dict[str, Any]:
    return refuse_unknown(table, _names(kind), where, ConfigError)


def _names(kind: type[PeerConfig | Limits | Faults]) -> list[str]:
    return [item.name for item in fields(kind)]
