"""Peer cards, by which peers are introduced to each other: `oneway:KEY@host:port?name=alice`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import quote, unquote

from oneway.errors import CardError, ConfigError
from oneway.peer.identity.keys import TEXT_LENGTH, check_key, key_text, parse_key
from oneway.sentences import shown
from oneway.transport.address import is_wildcard, join_address, parse_address

EXAMPLE = "oneway:zvajrjq4wqzsoqyilhjwabcefqrudj6jbiued7jpr37bxnomynkq@192.168.1.20:7701?name=alice"
"""A well-formed card, for messages."""

_SCHEME = "oneway:"
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LONGEST_CARD = 1000


@dataclass(frozen=True)
class Card:
    """Who a peer is and where it listens; nothing in it is secret.

    Attributes:
        key: The public key, 32 bytes.
        host: A host name or IP address, IPv6 without brackets.
        port: Where it listens.
        name: What the peer calls itself; names are for people, keys decide.

    Raises:
        CardError: If one of them breaks its rule.
    """

    key: bytes
    host: str
    port: int
    name: str

    def __post_init__(self) -> None:
        try:
            check_key(self.key)
            parse_address(self.address)
            check_name(self.name)
        except ConfigError as error:
            raise CardError(str(error)) from None
        if is_wildcard(self.host):
            raise CardError(
                f"the host {self.host} means every interface of one's own machine, and nobody can "
                "dial it; its owner sets advertise in peer.toml to an address others can reach"
            )

    @classmethod
    def parse(cls, text: str) -> Card:
        """Return the card that a line holds.

        Raises:
            CardError: If it is malformed; says what is wrong and shows a correct card.

        >>> Card.parse(EXAMPLE).name
        'alice'
        """
        line = text.strip()
        if not line.startswith(_SCHEME):
            _malformed(line, f"it does not begin with {_SCHEME}")
        if len(line) > _LONGEST_CARD:
            _malformed(line, f"it is longer than {_LONGEST_CARD} characters")
        key, at, rest = line.removeprefix(_SCHEME).partition("@")
        if not at:
            _malformed(line, "it has no @ between the key and the address")
        address, mark, query = rest.partition("?")
        if not mark or not query.startswith("name="):
            _malformed(line, "it does not end with ?name= and a name")
        try:
            name = unquote(query.removeprefix("name="), errors="strict")
            return cls(parse_key(key), *parse_address(address), name)
        except UnicodeDecodeError:
            _malformed(line, "its name is not percent-encoded UTF-8")
        except ConfigError as error:
            _malformed(line, str(error))

    @property
    def address(self) -> str:
        """Where to dial: `host:port`."""
        return join_address(self.host, self.port)

    def __str__(self) -> str:
        return f"{_SCHEME}{key_text(self.key)}@{self.address}?name={quote(self.name, safe='')}"


def parse_card_or_key(text: str) -> Card | bytes:
    """Return a card, or the key if the text is a bare key.

    Raises:
        CardError: If it is neither.
    """
    line = text.strip()
    if ":" in line or "@" in line:
        return Card.parse(line)
    try:
        return parse_key(line)
    except CardError as error:
        raise CardError(
            f"{shown(line)} is neither a card nor a key: {error}; a key has {TEXT_LENGTH} "
            f"characters, a card looks like {EXAMPLE}"
        ) from None


def check_name(name: object) -> str:
    """Return a name that a peer may have.

    It begins with a letter or digit, so that it cannot be taken for an option of a command.

    Raises:
        ConfigError: If the name breaks the rule.
    """
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise ConfigError(
        f"the name {shown(name)} cannot be used; a name has 1 to 64 letters a to z, digits, '-', "
        "'_' or '.', no spaces, and begins with a letter or digit, for example alice"
    )


def _malformed(line: str, reason: str) -> NoReturn:
    raise CardError(f"{shown(line)} is not a card: {reason}; a card looks like {EXAMPLE}") from None
