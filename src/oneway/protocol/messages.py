"""What travels: running totals and what was heard of them. No sample, no gradient.

An edge is named by its two peers, whom the transport knows, and by `epoch`, a random number its
sender chose. Pushes go from the sender to the receiver of an edge, replies come back.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from oneway.protocol.fixed_point import Fixed
from oneway.protocol.tags import SIZE

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
"""A number from the network stays below 2^62, so that one more never overflows."""

Tag: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=SIZE, max_length=SIZE)]
"""A digest or a tag (see `tags`)."""


class Message(msgspec.Struct, frozen=True, array_like=True, eq=False, forbid_unknown_fields=True):
    """One statement about one edge."""

    epoch: Count


class Data(Message, frozen=True, array_like=True, eq=False, tag="data"):
    """All that I have ever handed over on this edge is `total`, the `seq`-th such total.

    Attributes:
        ledger: The receiver's ledger, as far as the sender knows.
        session: Grows whenever the sender may have forgotten what it sent.
        granted: In which of its lives (its boot) the receiver took up this session.
        tag: The sender's own proof that it once said this (see `tags`).
    """

    ledger: Count
    session: Count
    granted: Count
    seq: Count
    total: Fixed
    tag: Tag


class Hello(Message, frozen=True, array_like=True, eq=False, tag="hello"):
    """I may have forgotten what I sent: what did you hear? A ledger of 0 means: tell me yours."""

    ledger: Count
    session: Count


class Close(Message, frozen=True, array_like=True, eq=False, tag="close"):
    """No more will come; count what I know you heard, `total`, and say what you heard."""

    ledger: Count
    seq: Count
    total: Fixed
    tag: Tag


class Ack(Message, frozen=True, array_like=True, eq=False, tag="ack"):
    """I hold the `seq`-th total, with this digest, durably."""

    seq: Count
    digest: Tag
    tag: Tag
    boot: Count


class State(Message, frozen=True, array_like=True, eq=False, tag="state"):
    """What I heard on this edge, for a sender that asked in `session`."""

    ledger: Count
    session: Count
    granted: Count
    seq: Count
    total: Fixed
    tag: Tag
    boot: Count


class Closed(Message, frozen=True, array_like=True, eq=False, tag="closed"):
    """This edge is closed for good; this is what I heard in the end."""

    seq: Count
    total: Fixed
    tag: Tag
    boot: Count


class Stale(Message, frozen=True, array_like=True, eq=False, tag="stale"):
    """I do not know your session: I was restored from a backup. Say hello."""

    boot: Count


class Gone(Message, frozen=True, array_like=True, eq=False, tag="gone"):
    """The ledger you speak to is lost; my new one is another."""

    ledger: Count


Push: TypeAlias = Data | Hello | Close
"""What the sender of an edge says."""

Reply: TypeAlias = Ack | State | Closed | Stale | Gone
"""What the receiver of an edge answers."""
