"""peer.toml: what one peer is told, as a file that people read and edit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oneway.errors import ConfigError
from oneway.files.atomic import write_atomically
from oneway.files.toml import changed_toml, parse_toml, read_text, toml_lines
from oneway.files.typed_values import comments_of, from_table
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.limits import Limits
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.identity.card import Card
from oneway.peer.identity.keys import key_text
from oneway.transport import Faults

_HEADER = """\
# This peer. While it runs it follows every change except to listen, transport, allow and
# [privacy].
# oneway peer trust, distrust, admit and leave change their lines of this file, and no others.
"""


def read_config(path: Path) -> PeerConfig:
    """Return the configuration in a file.

    Raises:
        ConfigError: If it cannot be read, is not TOML, or a key is missing, unknown or breaks its
            rule.
    """
    return parse_config(_read(path), str(path))


def write_config(config: PeerConfig, path: Path) -> None:
    """Write a peer.toml, whole or not at all; one that is there is changed, its comments stay.

    Args:
        config: What it shall say.
        path: Where.

    Raises:
        ConfigError: If it cannot be written, or the one that is there cannot be read.
    """
    text = _changed(_read(path), config, path) if path.exists() else config_toml(config)
    try:
        write_atomically(path, text)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; it is as it was") from error


def _changed(text: str, config: PeerConfig, path: Path) -> str:
    before = parse_config(text, str(path))
    with suppress(ConfigError, ValueError, LookupError):
        changed = changed_toml(text, _table(before), _table(config), _identity)
        if parse_config(changed) == config:
            return changed
    # A layout that the change was mistaken in: what the file says counts more than how.
    return config_toml(config)


def parse_config(text: str, where: str = "peer.toml") -> PeerConfig:
    """Return the configuration that a TOML text describes.

    Raises:
        ConfigError: As for `read_config`.
    """
    return from_table(parse_toml(text, where, ConfigError), PeerConfig, where)


def config_toml(config: PeerConfig) -> str:
    """Return the text of a new peer.toml that reads back as this configuration."""
    table = _table(config)
    comments = comments_of(PeerConfig) | comments_of(Limits) | comments_of(OwnPrivacy)
    top = {name: value for name, value in table.items() if not isinstance(value, list | dict)}
    lines = [_HEADER, *toml_lines(top, comments)]
    for name, value in table.items():
        if isinstance(value, dict):
            lines += ["", f"[{name}]", *toml_lines(value, comments)]
        for item in value if isinstance(value, list) else []:
            lines += ["", f"[[{name}]]", *toml_lines(item, {})]
    return "\n".join([*lines, ""])


def _read(path: Path) -> str:
    return read_text(path, ConfigError, "make a peer with oneway peer init NAME --task task.toml")


def _table(config: PeerConfig) -> dict[str, Any]:
    """Return a configuration as TOML has it."""
    table: dict[str, Any] = {name: getattr(config, name) for name in comments_of(PeerConfig)}
    table["limits"] = asdict(config.limits) | {"clip": config.limits.clip or "off"}
    table["privacy"] = asdict(config.privacy)
    table["receivers"] = [
        {"card": str(peer.card), "weight": peer.weight} for peer in config.receivers
    ]
    table["senders"] = [{"name": peer.name, "key": key_text(peer.key)} for peer in config.senders]
    if config.faults != Faults():
        faults = asdict(config.faults)
        table["faults"] = faults | {"cut": list(faults["cut"])}
    return table


def _identity(item: Mapping[str, Any]) -> object:
    """Return by what a receiver or sender is known in peer.toml: its key, as it stands there."""
    return Card.parse(item["card"]).key if "card" in item else item["key"]
