"""Arguments of the peer commands: which peer, whose card, how long to wait."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from oneway.cli.options import option
from oneway.cli.output import on_interrupt
from oneway.errors import CardError

if TYPE_CHECKING:
    from oneway.peer.home.home import Home

_LONGEST_FILE = 4096

HomeFolder: TypeAlias = Annotated[
    Path | None, option("DIR", "The peer's folder.", "the current folder", envvar="ONEWAY_PEER")
]

CARD_HELP = "The line that `oneway peer card` prints there, in quotes; or a file with it; or -."


def folder_of(home: Path | None) -> Path:
    """The folder that was named, or the current one under its full name."""
    return Path.cwd() if home is None else home


def open_home(home: Path | None) -> Home:
    """The peer that was named, or the one in the current folder.

    Raises:
        ConfigError: If there is none.
    """
    from oneway.peer.home.home import Home

    return Home.open(folder_of(home))


def handed_over(text: str) -> str:
    """A card or a key as it was given: itself, the content of a file, or of standard input for -.

    Raises:
        CardError: If the file cannot be read.
    """
    if text == "-":
        return sys.stdin.readline(_LONGEST_FILE)
    try:
        path = Path(text)
        if text.startswith("oneway:") or not path.is_file():
            return text
        with path.open("rb") as file:
            return file.read(_LONGEST_FILE).decode()
    except UnicodeDecodeError:
        raise CardError(f"{text} is not a text file; it should hold a card, one line") from None
    except OSError as error:
        raise CardError(f"cannot read a card from {text}: {error.strerror}") from error


def name_or_key(text: str) -> str:
    """What a peer is looked up by: a name or a key as it is, of a card the key.

    Raises:
        CardError: If it is a malformed card.
    """
    from oneway.peer.identity.card import Card
    from oneway.peer.identity.keys import key_text

    line = handed_over(text).strip()
    return key_text(Card.parse(line).key) if line.startswith("oneway:") else line


def waiting() -> AbstractContextManager[None]:
    """Let Ctrl-C end the waiting in the block, with exit code 130, and nothing else."""
    return on_interrupt("No longer waiting; the peer goes on.")
