"""What travels: running totals and what was heard of them. No sample, no gradient.

An edge is named by its two peers, whom the transport knows, and by `epoch`, a random number its
sender chose. Pushes go from the sender to the receiver of an edge, replies come back.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from oneway.protocol.fixed_point import Fixed


class Message(msgspec.Struct, frozen=True, array_like=True, eq=False, forbid_unknown_fields=True):
    """One statement about one edge."""

    epoch: int


class Data(Message, frozen=True, array_like=True, eq=False, tag="data"):
    """All that I have ever handed over on this edge is `total`, the `seq`-th such total.

    Attributes:
        ledger: The receiver's ledger, as far as the sender knows.
        session: Grows whenever the sender may have forgotten what it sent.
        granted: In which of its lives (its boot) the receiver took up this session.
        tag: The sender's own proof that it once said this (see `tags`).
    """

    ledger: int
    session: int
    granted: int
    seq: int
    total: Fixed
    tag: bytes


class Hello(Message, frozen=True, array_like=True, eq=False, tag="hello"):
    """I may have forgotten what I sent: what did you hear? A ledger of 0 means: tell me yours."""

    ledger: int
    session: int


class Close(Message, frozen=True, array_like=True, eq=False, tag="close"):
    """No more will come; count what I know you heard, `total`, and say what you heard."""

    ledger: int
    seq: int
    total: Fixed
    tag: bytes


class Ack(Message, frozen=True, array_like=True, eq=False, tag="ack"):
    """I hold the `seq`-th total, with this digest, durably."""

    seq: int
    digest: bytes
    tag: bytes
    boot: int


class State(Message, frozen=True, array_like=True, eq=False, tag="state"):
    """What I heard on this edge, for a sender that asked in `session`."""

    ledger: int
    session: int
    granted: int
    seq: int
    total: Fixed
    tag: bytes
    boot: int


class Closed(Message, frozen=True, array_like=True, eq=False, tag="closed"):
    """This edge is closed for good; this is what I heard in the end."""

    seq: int
    total: Fixed
    tag: bytes
    boot: int


class Stale(Message, frozen=True, array_like=True, eq=False, tag="stale"):
    """I do not know your session: I was restored from a backup. Say hello."""

    boot: int


class Gone(Message, frozen=True, array_like=True, eq=False, tag="gone"):
    """The ledger you speak to is lost; my new one is another."""

    ledger: int


Push: TypeAlias = Data | Hello | Close
"""What the sender of an edge says."""

Reply: TypeAlias = Ack | State | Closed | Stale | Gone
"""What the receiver of an edge answers."""
