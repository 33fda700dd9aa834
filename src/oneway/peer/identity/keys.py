"""Key text and key file: a public key as people copy it, and the one file with the secret."""

from __future__ import annotations

import os
import stat
from base64 import b32decode, b32encode
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from oneway.errors import CardError, ConfigError, KeyFileError
from oneway.files.private_file import check_private
from oneway.sentences import shown
from oneway.transport.keys import SIZE, KeyPair, public_of

TEXT_LENGTH = 52
"""Characters of a key as text."""

_HEADER = (
    "# The secret key of a oneway peer: whoever reads it can speak as this peer. Never share it."
)
_PREFIX = "secret:"
_LARGEST_FILE = 4096


def signing_secret(pair: KeyPair) -> bytes:
    """Return the secret by which a peer recognises its own running totals.

    It is derived, so that the key that opens connections is used for nothing else.
    """
    return blake2b(pair.secret, digest_size=SIZE, person=b"oneway signing").digest()


@lru_cache(maxsize=4096)
def key_text(key: bytes) -> str:
    """Return a key as 52 lowercase base32 characters, safe in shells and addresses.

    >>> key_text(bytes(32)) == "a" * 52
    True
    """
    return b32encode(key).decode().rstrip("=").lower()


def parse_key(text: str) -> bytes:
    """Return the 32 bytes of a key given as text, in either case.

    Raises:
        CardError: If it is not a key.
    """
    if len(text) != TEXT_LENGTH:
        raise CardError(
            f"the key {shown(text)} is {len(text)} long; a key has {TEXT_LENGTH} characters: "
            "copy it again, whole"
        )
    lower = text.lower()
    if not (text.isascii() and set(lower) <= set("abcdefghijklmnopqrstuvwxyz234567")):
        raise CardError(
            f"the key {shown(text)} has characters that no key has; a key is made of the letters a "
            "to z and the digits 2 to 7: copy it again"
        )
    key = b32decode(f"{lower.upper()}====")
    if key_text(key) != lower:
        raise CardError(f"the key {shown(text)} ends wrongly; copy it again, whole")
    return key


def check_key(key: object) -> bytes:
    """Return the raw bytes of a key.

    Raises:
        ConfigError: If they are not as many as a key has.
    """
    if not isinstance(key, bytes) or len(key) != SIZE:
        raise ConfigError(f"a key has {SIZE} bytes, not {shown(key)}")
    return key


def save(pair: KeyPair, path: Path) -> None:
    """Write the secret key into a new file that only its owner can read.

    Raises:
        KeyFileError: If the file exists (a key is never overwritten) or cannot be written.
    """
    try:
        # The mode is given at creation: there is no moment at which others could open the file.
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise KeyFileError(
            f"{path} exists, and a key is never overwritten; move it away if you want a new key"
        ) from None
    except OSError as error:
        raise KeyFileError(f"cannot write the key to {path}: {error.strerror}") from error
    try:
        with os.fdopen(number, "w") as file:
            file.write(f"{_HEADER}\n{_PREFIX}{key_text(pair.secret)}\n")
            file.flush()
            os.fsync(number)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise KeyFileError(f"cannot write the key to {path}: {error.strerror}") from error


def load(path: Path) -> KeyPair:
    """Read the key pair back.

    Raises:
        KeyFileError: If the file is missing, malformed, another user's, or open to others.
    """
    try:
        # Not blocking, so that a named pipe in its place cannot hold us up.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise KeyFileError(
            f"there is no key file {path}; put it back from your backup, "
            "or make a new peer with oneway peer init"
        ) from None
    except OSError as error:
        raise KeyFileError(f"cannot read the key file {path}: {error.strerror}") from error
    try:
        # The open file is checked, not the path, which may name another file a moment later.
        _check_private(path, os.fstat(number))
        content = os.read(number, _LARGEST_FILE)
    except OSError as error:
        raise KeyFileError(f"cannot read the key file {path}: {error.strerror}") from error
    finally:
        os.close(number)
    return _parse_file(path, content)


def _check_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise KeyFileError(f"{path} is not a file; a key file is an ordinary file")
    check_private(path, status, "key file", "secret key", KeyFileError)


def _parse_file(path: Path, content: bytes) -> KeyPair:
    try:
        lines = [line.strip() for line in content.decode("ascii").splitlines()]
        (line,) = [line for line in lines if line and not line.startswith("#")]
        if not line.startswith(_PREFIX):
            raise ValueError
        secret = parse_key(line.removeprefix(_PREFIX).strip())
    except (ValueError, CardError):
        # Neither the text nor its length: an error message may end up in a log.
        raise KeyFileError(
            f"{path} is not a key file: it should hold one line, {_PREFIX} and "
            f"{TEXT_LENGTH} characters; put it back from your backup"
        ) from None
    return KeyPair(public_of(secret), secret)
