"""Key pairs: a peer is a Curve25519 public key, and the secret that proves it."""

from __future__ import annotations

from dataclasses import dataclass, field

from oneway.errors import KeyFileError
from oneway.protocol.state import Key

SIZE = 32
"""Bytes of a key."""


@dataclass(frozen=True)
class KeyPair:
    """A public key, which names a peer, and the secret that proves it; 32 raw bytes each."""

    public: Key
    secret: bytes = field(repr=False)


def generate() -> KeyPair:
    """Return a new key pair."""
    import zmq
    from zmq.utils import z85

    public, secret = zmq.curve_keypair()
    return KeyPair(z85.decode(public), z85.decode(secret))


def public_of(secret: bytes) -> Key:
    """Return the public key that belongs to a secret one.

    Raises:
        KeyFileError: The secret does not have 32 bytes.
    """
    import zmq
    from zmq.utils import z85

    if len(secret) != SIZE:
        raise KeyFileError(
            f"the secret key has {len(secret)} bytes, but a Curve25519 secret has {SIZE}; "
            "restore the key file from a backup"
        )
    return bytes(z85.decode(zmq.curve_public(z85.encode(secret))))
