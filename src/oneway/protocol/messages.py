"""What travels: running totals and what was heard of them. No sample, no gradient.

An edge is named by its two peers, whom the transport knows, and by `epoch`, a random number its
sender chose. Pushes go from the sender to the receiver of an edge, replies come back.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from oneway.protocol.compact import Packed
from oneway.protocol.fixed_point import Fixed
from oneway.protocol.stamps import Count
from oneway.protocol.tags import SIZE

Tag: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=SIZE, max_length=SIZE)]
"""A digest or a tag (see `tags`)."""

PeerKey: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
"""A peer's public key."""


class Life(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Which life of its key a peer is in (see `lives`).

    Attributes:
        boot: Names the life, and orders it among those of its key.
        over: The boot of another life, over which this one was lifted; 0 if it was not.
        leaving: Whether the peer is handing everything over, or has.
        proof: The peer's own tag over both boots: only whoever has its key can make one.
    """

    boot: Count
    over: Count
    leaving: bool
    proof: Tag


class Progress(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How far a sender's stream had come with all that it had pushed.

    Receivers keep the furthest one and tell it to a sender that may have forgotten: what it learned
    in a life before its backup was restored, it is not to learn again.

    Attributes:
        learned: How many samples are in what was pushed, in all lives.
        mark: The place in the stream after them, which only the sender can read, and only the
            sender can have made.
    """

    learned: Count
    mark: Annotated[bytes, msgspec.Meta(max_length=64)]


NO_PROGRESS = Progress(0, b"")
"""Of a sender that pushed nothing of a sample, or of which nothing was heard."""


class Message(msgspec.Struct, frozen=True, array_like=True, eq=False, forbid_unknown_fields=True):
    """One statement about one edge, by a peer in one of its lives."""

    epoch: Count
    life: Life


class Data(Message, frozen=True, array_like=True, eq=False, tag="data"):
    """All that I have ever handed over on this edge is `total`, the `seq`-th such total.

    Attributes:
        ledger: The receiver's ledger, as far as the sender knows.
        session: Grows whenever the sender may have forgotten what it sent.
        granted: In which of its lives (its boot) the receiver took up this session.
        tag: The sender's own proof that it once said this (see `tags`).
        progress: How far the stream had come with this total, or further.
    """

    ledger: Count
    session: Count
    granted: Count
    seq: Count
    total: Fixed
    tag: Tag
    progress: Progress


class Compact(Message, frozen=True, array_like=True, eq=False, tag="compact"):
    """As `Data`, but the total is told by how it follows from one that you acknowledged.

    Attributes:
        packed: How it follows, perhaps from itself: then nothing is new.
        digest: Of the total: whoever finds another has another base, and takes nothing in.
    """

    ledger: Count
    session: Count
    granted: Count
    seq: Count
    packed: Packed
    digest: Tag
    tag: Tag
    progress: Progress


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
    progress: Progress


class Ack(Message, frozen=True, array_like=True, eq=False, tag="ack"):
    """I hold the `seq`-th total, with this digest, durably."""

    seq: Count
    digest: Tag
    tag: Tag


class State(Message, frozen=True, array_like=True, eq=False, tag="state"):
    """What I heard on this edge, for a sender that asked in `session`.

    Here and in every reply that ends a question, `progress` is the furthest that I heard from you.
    """

    ledger: Count
    session: Count
    granted: Count
    seq: Count
    total: Fixed
    tag: Tag
    progress: Progress


class Closed(Message, frozen=True, array_like=True, eq=False, tag="closed"):
    """This edge is closed for good; this is what I heard in the end."""

    seq: Count
    total: Fixed
    tag: Tag
    progress: Progress


class Stale(Message, frozen=True, array_like=True, eq=False, tag="stale"):
    """I do not know your session, or the base of your total: I was restored. Say hello."""


class Gone(Message, frozen=True, array_like=True, eq=False, tag="gone"):
    """The ledger you speak to is lost; my new one is another."""

    ledger: Count
    progress: Progress


class Retired(Message, frozen=True, array_like=True, eq=False, tag="retired"):
    """We both knew how this edge ended, and I keep no record of edges up to the epoch `until`."""

    until: Count
    progress: Progress


class Superseded(Message, frozen=True, array_like=True, eq=False, tag="superseded"):
    """A newer life of your key has spoken to me: `newer`. You may be one of two copies."""

    newer: Life


class Receipt(Message, frozen=True, array_like=True, eq=False, tag="receipt"):
    """A peer that leaves has heard the `seq`-th total on this edge; pass it on to its sender.

    Attributes:
        receiver: Who leaves.
        sender: Who is to know.
        digest: Of the total.
        tag: The sender's own proof that it once said this.
    """

    receiver: PeerKey
    sender: PeerKey
    seq: Count
    digest: Tag
    tag: Tag


Push: TypeAlias = Data | Compact | Hello | Close
"""What the sender of an edge says."""

Reply: TypeAlias = Ack | State | Closed | Stale | Gone | Retired
"""What the receiver of an edge answers."""

News: TypeAlias = Superseded | Receipt
"""What either end says, not about its own edge."""
