"""Endpoint of a local server as flags give it: `[HOST:]PORT`, and a file with the token."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from oneway.errors import ConfigError
from oneway.files.private_file import check_private
from oneway.transport.address import parse_address
from oneway.web.access_control import check_bind

DEFAULT_HOST = "127.0.0.1"
_LARGEST_FILE = 4096


@dataclass(frozen=True)
class Endpoint:
    """Where something is served to this machine.

    Attributes:
        host: What is listened on.
        port: 0 for any that is free.
        token: What every request has to show; empty for nothing.
    """

    host: str
    port: int
    token: str = ""

    @classmethod
    def read(cls, address: str, token_file: Path | None, what: str = "the local API") -> Endpoint:
        """Read an endpoint from flags; `what` is served there, for messages.

        Raises:
            ConfigError: If the address is invalid, or the token cannot be read, is too weak, or is
                missing where other machines could reach the endpoint.
        """
        whole = address if ":" in address else f"{DEFAULT_HOST}:{address}"
        found = parse_address(whole, lowest_port=0)
        token = read_token(token_file)
        check_bind(found.host, token, what)
        return cls(found.host, found.port, token)


def read_token(file: Path | None) -> str:
    """Return the token in a file; nothing if there is no file.

    Raises:
        ConfigError: If it cannot be read, is empty, or open to others.
    """
    if file is None:
        return ""
    try:
        with file.open("rb") as opened:
            check_private(file, os.fstat(opened.fileno()), "token file", "token", ConfigError)
            token = opened.read(_LARGEST_FILE + 1).decode().strip()
    except FileNotFoundError:
        raise ConfigError(f"there is no {file}; name a file with a token") from None
    except OSError as error:
        raise ConfigError(f"cannot read the token file {file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError(
            f"{file} holds no text; it should hold a token, one line of ASCII characters"
        ) from None
    if not token or len(token) > _LARGEST_FILE:
        size = "empty" if not token else f"longer than {_LARGEST_FILE:,} characters"
        raise ConfigError(f"{file} is {size}; it should hold a token, one line")
    return token
