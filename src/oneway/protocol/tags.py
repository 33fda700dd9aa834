"""Digests of totals, and a peer's own signature over its totals and lives.

A sender that was restored from a backup must believe its receiver about what it once sent. It
believes only what carries its own tag: otherwise a receiver could claim to have heard more than was
ever sent, and rob it. Only the sender checks its tags, so a keyed hash is signature enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from hmac import compare_digest
from struct import pack
from threading import Thread

from oneway.protocol.fixed_point import Fixed
from oneway.protocol.memo import LARGE_BYTES, once_per_array

SIZE = 16
"""Bytes of a digest and of a tag."""

NO_TAG = bytes(SIZE)
"""Carried by claims about totals of zero, which need no proof."""


@once_per_array
def digest_of(total: Fixed) -> bytes:
    """A hash of the total's bytes, little endian whatever the machine is."""
    return blake2b(total.astype("<i8", copy=False).data, digest_size=SIZE).digest()


def digest_meanwhile(total: Fixed) -> Callable[[], bytes]:
    """Begin to compute a digest, in a thread of its own if that takes long; call it to wait."""
    if total.nbytes < LARGE_BYTES:
        return partial(digest_of, total)
    worker = Thread(target=digest_of, args=(total,), name="digest")
    worker.start()

    def wait() -> bytes:
        worker.join()
        return digest_of(total)

    return wait


def sign(secret: bytes, ledger: int, receiver: bytes, epoch: int, seq: int, digest: bytes) -> bytes:
    """The tag by which the sender with this ledger recognises its own total again."""
    statement = pack("<QQQ", ledger, epoch, seq) + digest + receiver
    return blake2b(statement, key=secret, digest_size=SIZE, person=b"oneway total").digest()


def sign_life(secret: bytes, boot: int, over: int) -> bytes:
    """The tag by which a peer recognises a life of its own key."""
    return blake2b(
        pack("<QQ", boot, over), key=secret, digest_size=SIZE, person=b"oneway life"
    ).digest()


def is_mine(
    tag: bytes, secret: bytes, ledger: int, receiver: bytes, epoch: int, seq: int, digest: bytes
) -> bool:
    """Whether I, with this ledger, once sent this total to this receiver."""
    return compare_digest(tag, sign(secret, ledger, receiver, epoch, seq, digest))
