"""Endpoint of a local server as flags give it: `[HOST:]PORT`, and a file with the token."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from oneway.errors import ConfigError
from oneway.files.private_file import check_private
from oneway.transport.address import parse_address
from oneway.web.access_control import check_bind, is_loopback

DEFAULT_HOST = "127.0.0.1"
_LARGEST_FILE = 4096


@dataclass(frozen=True)
class Endpoint:
    """Where something is served to this machine.

    Attributes:
        host: What is listened on.
        port: 0 for any that is free.
        token: What every request has to show; empty for nothing.
        token_file: Where the token is from.
    """

    host: str
    port: int
    token: str = ""
    token_file: Path | None = None

    @classmethod
    def read(
        cls,
        address: str,
        token_file: Path | None,
        what: str = "the local API",
        *,
        own_file: Path | None = None,
    ) -> Endpoint:
        """Read an endpoint from flags.

        Args:
            address: `[HOST:]PORT`.
            token_file: Where the token is.
            what: What is served there, for messages.
            own_file: Without `token_file` and on loopback, where the token is; made if missing.

        Raises:
            ConfigError: If the address is invalid, or the token cannot be read, is too weak, or is
                missing where other machines could reach the endpoint.
        """
        whole = address if ":" in address else f"{DEFAULT_HOST}:{address}"
        found = parse_address(whole, lowest_port=0)
        if token_file is None and own_file is not None and is_loopback(found.host):
            token_file = _own_token_file(own_file)
        token = read_token(token_file)
        check_bind(found.host, token, what)
        return cls(found.host, found.port, token, token_file)


def _own_token_file(file: Path) -> Path:
    """Return a token file after making it, with a random token, if there is none.

    Raises:
        ConfigError: If it cannot be written.
    """
    try:
        with open(file, "x", opener=partial(os.open, mode=0o600)) as opened:
            opened.write(f"{secrets.token_urlsafe(24)}\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(
            f"cannot write the token file {file}: {error.strerror}; name another with --token-file"
        ) from error
    return file


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
