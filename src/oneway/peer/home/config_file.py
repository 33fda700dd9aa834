"""The settings of one peer as files: peer.toml, which its owner writes, and peers.toml.

No command changes a peer.toml once it is there. Trust, admission, pauses and faults, which commands
and pages do change, are in a peers.toml of their own, written anew at each change.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from oneway.errors import ConfigError
from oneway.files.atomic import write_atomically
from oneway.files.toml import parse_toml, read_text, toml_text
from oneway.files.validation import comments_of, convert
from oneway.peer.home.config import PeerConfig, Peers
from oneway.peer.home.limits import Limits
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.identity.card import Card
from oneway.peer.identity.keys import key_text, parse_key
from oneway.transport import Faults

PEERS_FILE = "peers.toml"
"""Beside peer.toml."""

_HEADER = """\
# This peer. While it runs it follows every change except to listen, transport, allow and
# [privacy]. No command changes this file; whom it sends to and who may send to it is in peers.toml.
"""
_PEERS_HEADER = """\
# Whom this peer sends to, and who may send to it. oneway peer trust, distrust, admit and leave
# write this file anew: comments are not kept.
"""
_PEERS = tuple(field.name for field in fields(Peers))


def read_config(path: Path) -> PeerConfig:
    """Return the configuration in a peer.toml and the peers.toml beside it.

    Raises:
        ConfigError: If one cannot be read, is not TOML, or a key is missing, unknown or breaks its
            rule.
    """
    remedy = "make a peer with oneway peer init NAME --task task.toml"
    beside = path.with_name(PEERS_FILE)
    text = read_text(path, ConfigError, remedy)
    peers = read_text(beside, ConfigError, "put it back from your backup")
    return parse_config(text, peers, str(path), str(beside))


def parse_config(
    text: str, peers: str = "", where: str = "peer.toml", where_peers: str = PEERS_FILE
) -> PeerConfig:
    """Return the configuration that the texts of a peer.toml and a peers.toml describe.

    Raises:
        ConfigError: As for `read_config`.
    """
    table = parse_toml(text, where, ConfigError)
    for name in table:
        if name in _PEERS:
            raise ConfigError(f"{where} has a key {name!r}, which belongs in peers.toml; move it")
    others = _peers(parse_toml(peers, where_peers, ConfigError), where_peers)
    config = convert(table, PeerConfig, where)
    return replace(config, **{name: getattr(others, name) for name in _PEERS})


def write_peers(config: Peers, path: Path) -> None:
    """Write a peers.toml, whole or not at all.

    Raises:
        ConfigError: If it cannot be written.
    """
    _write(peers_toml(config), path)


def write_config(config: PeerConfig, path: Path) -> None:
    """Write a new peer.toml, and the peers.toml beside it, each whole or not at all.

    Raises:
        ConfigError: If one cannot be written.
    """
    write_peers(config, path.with_name(PEERS_FILE))
    _write(config_toml(config), path)


def config_toml(config: PeerConfig) -> str:
    """Return the text of a new peer.toml."""
    comments = comments_of(PeerConfig) | comments_of(Limits) | comments_of(OwnPrivacy)
    written = {name: value for name, value in asdict(config).items() if name not in _PEERS}
    return toml_text(written, comments, _HEADER)


def peers_toml(config: Peers) -> str:
    """Return the text of a peers.toml."""
    table: dict[str, Any] = {name: getattr(config, name) for name in comments_of(Peers)}
    if config.faults != Faults():
        table["faults"] = asdict(config.faults)
    table["receivers"] = [
        {"card": str(peer.card), "weight": peer.weight} for peer in config.receivers
    ]
    table["senders"] = [{"name": peer.name, "key": key_text(peer.key)} for peer in config.senders]
    return toml_text(
        {name: value for name, value in table.items() if value != []},
        comments_of(Peers),
        _PEERS_HEADER,
    )


def _peers(table: dict[str, Any], where: str) -> Peers:
    """Return the trust that a peers.toml describes; cards and keys are text there."""
    try:
        for name, key, parse in (("receivers", "card", Card.parse), ("senders", "key", parse_key)):
            for entry in table[name] if isinstance(table.get(name), list) else ():
                if isinstance(entry, dict) and isinstance(entry.get(key), str):
                    entry[key] = parse(entry[key])
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return convert(table, Peers, where)


def _write(text: str, path: Path) -> None:
    try:
        write_atomically(path, text)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; it is as it was") from error
