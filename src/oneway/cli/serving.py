"""Where to serve something to one's own machine, and the token to show there, as flags say it."""

from __future__ import annotations

from pathlib import Path

from oneway.errors import ConfigError

DEFAULT_HOST = "127.0.0.1"


def host_and_port(address: str) -> tuple[str, int]:
    """Read `[HOST:]PORT`.

    Raises:
        ConfigError: If it is not an address.
    """
    from oneway.peer.identity.address import parse_address

    whole = f"{DEFAULT_HOST}:{address}" if ":" not in address else address
    host, _, port = whole.rpartition(":")
    if set(port) == {"0"}:
        # Any port that is free; an address that others are told has none like that.
        return parse_address(f"{host}:1")[0], 0
    return parse_address(whole)


def token_in(file: Path) -> str:
    """Read a token.

    Raises:
        ConfigError: If it cannot be read, or is empty.
    """
    from oneway.files.toml import read_text

    token = read_text(file, ConfigError, "name a file with a token").strip()
    if not token:
        raise ConfigError(f"{file} is empty; it should hold a token, one line")
    return token
