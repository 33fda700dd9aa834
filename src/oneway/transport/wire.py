"""Wire format: messages as MessagePack with a version, the task's fingerprint and raw arrays.

Nothing in here can be executed: no pickle, no type names, only the messages of `protocol`, each
with its exact fields, and integers that fit.

The envelope `[version, task, body]` is the same in every release, and so is version 0: its body is
the list of versions that its sender speaks, and it answers a frame of a version that its sender
does not know.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from oneway.errors import WireError
from oneway.protocol.messages import News, Push, Reply

VERSION = 1
"""The version that this release speaks."""

NEGOTIATION = 0
"""The version of a frame that lists versions."""

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


class Versions(msgspec.Struct, frozen=True):
    """I do not know your version; these are mine."""

    spoken: tuple[int, ...]


class OtherVersion(msgspec.Struct, frozen=True):
    """Stands for a message of a version that this release does not know; it never travels."""

    version: int


Body: TypeAlias = Push | Reply | News | Foreign
Message: TypeAlias = Body | Versions | OtherVersion


class _Envelope(msgspec.Struct, frozen=True, array_like=True, eq=False, forbid_unknown_fields=True):
    """What every frame of every version is: version, task, message."""

    version: int
    task: bytes
    body: msgspec.Raw


def _array(_kind: type, value: Any) -> Any:
    if not isinstance(value, bytes) or not value or len(value) % 8:
        raise ValueError("an array is not a whole number of 8-byte integers")
    return np.frombuffer(value, dtype="<i8").astype(np.int64, copy=False)


_encoder = msgspec.msgpack.Encoder(enc_hook=lambda array: array.astype("<i8", copy=False).tobytes())
_envelope = msgspec.msgpack.Decoder(_Envelope)
_body = msgspec.msgpack.Decoder(Body, dec_hook=_array)
_versions = msgspec.msgpack.Decoder(Annotated[tuple[int, ...], msgspec.Meta(max_length=16)])


def encode(message: Body | Versions, task: bytes) -> bytes:
    """A frame that carries this message under this task."""
    version, body = VERSION, _encoder.encode(message)
    if isinstance(message, Versions):
        version, body = NEGOTIATION, _encoder.encode(message.spoken)
    return _encoder.encode(_Envelope(version, task, msgspec.Raw(body)))


def decode(frame: bytes) -> tuple[bytes, Message]:
    """The fingerprint of the sender's task, and the message.

    Raises:
        WireError: If the frame is anything but a message.
    """
    try:
        envelope = _envelope.decode(frame)
        if envelope.version == VERSION:
            return envelope.task, _body.decode(envelope.body)
        if envelope.version == NEGOTIATION:
            return envelope.task, Versions(_versions.decode(envelope.body))
        return envelope.task, OtherVersion(envelope.version)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        # The reason may quote what arrived, which can be long and contain anything.
        reason = ascii(str(error)[:LONGEST_REASON])[1:-1]
        raise WireError(f"{len(frame)} bytes that are no message arrived: {reason}") from error
