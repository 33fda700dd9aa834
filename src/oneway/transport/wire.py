"""Messages as bytes: MessagePack with a version, the task's fingerprint and raw arrays.

Nothing in here can be executed: no pickle, no type names, only the messages of `protocol`, each
with its exact fields, and integers that fit.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import numpy as np

from oneway.errors import WireError
from oneway.protocol.messages import Push, Reply
from oneway.protocol.tags import SIZE

VERSION = 1

LARGEST = 1 << 62
"""Counters from the network stay below this, so that one more never overflows."""

LONGEST_REASON = 80
"""Characters of a decoder's complaint that are passed on."""


class Foreign(
    msgspec.Struct,
    frozen=True,
    array_like=True,
    eq=False,
    forbid_unknown_fields=True,
    tag="foreign",
):
    """Your task is not mine; this is mine, field by field, as JSON."""

    fields: bytes


Body: TypeAlias = Push | Reply | Foreign


class _Envelope(msgspec.Struct, frozen=True, array_like=True, eq=False, forbid_unknown_fields=True):
    """What every frame is: version, task, message."""

    version: int
    task: bytes
    body: msgspec.Raw


_encoder = msgspec.msgpack.Encoder(enc_hook=lambda array: array.astype("<i8", copy=False).tobytes())
_envelope = msgspec.msgpack.Decoder(_Envelope)


def _array(_kind: type, value: Any) -> Any:
    if not isinstance(value, bytes) or not value or len(value) % 8:
        raise ValueError("an array is not a whole number of 8-byte integers")
    return np.frombuffer(value, dtype="<i8").astype(np.int64, copy=False)


_body = msgspec.msgpack.Decoder(Body, dec_hook=_array)


def encode(message: Body, task: bytes) -> bytes:
    """A frame that carries this message under this task."""
    return _encoder.encode(_Envelope(VERSION, task, msgspec.Raw(_encoder.encode(message))))


def decode(frame: bytes) -> tuple[bytes, Body]:
    """The fingerprint of the sender's task, and the message.

    Raises:
        WireError: If the frame is anything but a message of this version.
    """
    try:
        envelope = _envelope.decode(frame)
        if envelope.version != VERSION:
            raise WireError(
                f"a message of version {envelope.version} arrived; this peer speaks version "
                f"{VERSION}: let both run the same release of oneway"
            )
        body = _body.decode(envelope.body)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        # The reason may quote what arrived, which can be long and contain anything.
        reason = ascii(str(error)[:LONGEST_REASON])[1:-1]
        raise WireError(f"{len(frame)} bytes that are no message arrived: {reason}") from error
    _check(body)
    return envelope.task, body


def _check(body: Body) -> None:
    for name in body.__struct_fields__:
        value = getattr(body, name)
        if isinstance(value, int) and not 0 <= value < LARGEST:
            raise WireError(f"{name} is {value} in a message; it must be from 0 to 2^62")
        if name in ("digest", "tag") and len(value) != SIZE:
            raise WireError(f"{name} has {len(value)} bytes in a message instead of {SIZE}")
