"""All that a peer must never forget, as frozen values: a state in, a new state out.

They are structs, since a copy with a change is made for nearly everything that happens, and one of
a dataclass takes thirty times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from oneway.protocol.compact import Packed
from oneway.protocol.fixed_point import ONE, Fixed, extent, freeze, mass_of, zeros
from oneway.protocol.layout import Layout
from oneway.protocol.memo import extent_of_all
from oneway.protocol.messages import NO_PROGRESS, Life, Progress
from oneway.protocol.tags import NO_TAG
from oneway.records import Vector

Key: TypeAlias = bytes
"""A peer's public key."""

EdgeId: TypeAlias = tuple[Key, int]
"""The peer at the other end, and the epoch of the edge."""


class OutPhase(StrEnum):
    """What the sender of an edge is doing."""

    OPEN = "open"
    RESYNC = "resync"
    """Asking the receiver what it heard; nothing is handed over meanwhile."""
    CLOSING = "closing"
    """Trust was withdrawn; waiting to hear how much had arrived."""
    DEAD = "dead"
    """The receiver is presumed dead; what it never acknowledged was taken back."""


class Told(StrEnum):
    """Who knows, besides the receiver, how an edge ended."""

    NOBODY = "nobody"
    WITNESS = "witness"
    """Another peer keeps a receipt for the sender."""
    SENDER = "sender"


LIVE = (OutPhase.OPEN, OutPhase.RESYNC)
"""The phases of an edge over which more is to be handed over."""


class OutEdge(msgspec.Struct, frozen=True, eq=False):
    """What I handed to one receiver.

    Attributes:
        ledger: The receiver's ledger; 0 until it has told.
        session: Grows whenever I may have forgotten what I sent.
        granted: The boot of the receiver in which it took up the session.
        seq: Number of the last total.
        acked: Number of the last total that the receiver is known to hold.
        totals: Running totals by number, from `acked` to `seq`.
        their_boot: The newest boot of the receiver that I heard of.
        packed: How the last total follows from the acknowledged one, if it is said like that; it
            may be forgotten with a restart.
    """

    receiver: Key
    epoch: int
    session: int
    phase: OutPhase
    totals: Mapping[int, Fixed]
    seq: int = 0
    acked: int = 0
    ledger: int = 0
    granted: int = 0
    their_boot: int = 0
    packed: Packed | None = None

    def __post_init__(self) -> None:
        """Take ownership of the totals: they are as immutable as the edge."""
        freeze(*self.totals.values())

    @property
    def sent(self) -> Fixed:
        """All that was ever handed over."""
        return self.totals[self.seq]

    @property
    def confirmed(self) -> Fixed:
        """All that the receiver is known to hold."""
        return self.totals[self.acked]

    @property
    def counted(self) -> Fixed:
        """What the ledger counts as handed over: of the dead, only what was confirmed."""
        return self.confirmed if self.phase is OutPhase.DEAD else self.sent

    @property
    def in_flight(self) -> int:
        """How many totals are not yet acknowledged."""
        return self.seq - self.acked

    @property
    def mass_in_flight(self) -> int:
        """What mass, in units, is not yet acknowledged."""
        return mass_of(self.sent[-1:] - self.confirmed[-1:])

    @property
    def is_at_rest(self) -> bool:
        """Whether the edge is open and the receiver is known to hold all of it."""
        return self.phase is OutPhase.OPEN and self.in_flight == 0

    @property
    def waits(self) -> bool:
        """Whether something of the receiver is still to come: an answer, or a confirmation."""
        return self.phase is not OutPhase.DEAD and not self.is_at_rest


class InEdge(msgspec.Struct, frozen=True, eq=False):
    """What I heard from one sender: its `seq`-th total, with the sender's tag.

    The epoch 0 stands for all edges that are retired: `heard` is their sum, and `seq` the last
    epoch among them.

    A session counts only together with the boot in which it was taken up. Restored from a backup
    twice, a peer could otherwise know the session from one life, and have answered in another.

    `packed` is how `heard` followed from what was heard before it, if it came like that; it may be
    forgotten.
    """

    sender: Key
    epoch: int
    heard: Fixed
    seq: int = 0
    tag: bytes = NO_TAG
    session: int = 0
    granted: int = 0
    closed: bool = False
    told: Told = Told.NOBODY
    packed: Packed | None = None

    def __post_init__(self) -> None:
        """Take ownership of the total: it is as immutable as the edge."""
        freeze(self.heard)


class Settled(msgspec.Struct, frozen=True, eq=False):
    """An edge that is closed on both sides, and the total it ended with.

    The epoch 0 stands for all edges that are retired, as for an `InEdge`.
    """

    receiver: Key
    epoch: int
    ledger: int
    seq: int
    total: Fixed


ReceiptId: TypeAlias = tuple[Key, Key, int]
"""The receiver that left, the sender that is to know, and the epoch of their edge."""


class KeptReceipt(msgspec.Struct, frozen=True):
    """How an edge between two others ended, and who told: `messages.Receipt` has the words."""

    seq: int
    digest: bytes
    tag: bytes
    teller: Key


class PeerState(msgspec.Struct, frozen=True, eq=False):
    """One peer: what it holds, where that came from, and where it went.

    The ledger identity holds at every moment (`audit.expected_holding`):

        holding = minted - gradient_steps - clipped + owed + sum(heard) - sum(handed over)

    Attributes:
        ledger: A random number that names this state's history; a lost disk means a new one.
        boot: A stamp that grows with every start of the process.
        holding: z and omega.
        minted: What this peer brought into the network: nothing at first, one unit of mass at a
            model, and what it minted since because it had too little (`transitions.keep_mass`).
        gradient_steps: The sum of the steps taken, for the audit.
        clipped: What senders tried to move this peer by beyond the limit, mass that was burned
            because it was too much, or what was written off by a command; for the audit.
        owed: What this peer handed over in a life it forgot, and no longer has: it is paid back
            from what comes in, so that mass is never below zero (see `bookkeeping`).
        settled: Edges closed on both sides, until the receiver retires them: restored from a
            backup it may come back with them, and to have forgotten them would cost their mass.
        over: The boot of another life, over which this one was lifted (see `lives`).
        lives: The newest life of every other peer that was heard.
        former_lives: The lives before it, the last ones first; may be forgotten with a restart.
        receipts: Of peers that left, kept for those of their senders that had not heard.
        leaving: Whether the peer is handing everything over.
        layout: What the numbers of an amount are.
        progress: How far this peer's own stream had come with all that it pushed.
        heard_progress: The furthest that each sender's stream had come, by its own words; kept
            whether or not a push was taken in: this peer has seen it.
    """

    ledger: int
    boot: int
    holding: Fixed
    minted: Fixed
    gradient_steps: Fixed
    clipped: Fixed
    owed: Fixed
    out: Mapping[EdgeId, OutEdge] = msgspec.field(default_factory=dict)
    in_: Mapping[EdgeId, InEdge] = msgspec.field(default_factory=dict)
    settled: Mapping[EdgeId, Settled] = msgspec.field(default_factory=dict)
    leaving: bool = False
    over: int = 0
    lives: Mapping[Key, Life] = msgspec.field(default_factory=dict)
    former_lives: Mapping[Key, tuple[Life, ...]] = msgspec.field(default_factory=dict)
    receipts: Mapping[ReceiptId, KeptReceipt] = msgspec.field(default_factory=dict)
    layout: Layout = msgspec.field(default_factory=Layout)
    progress: Progress = NO_PROGRESS
    heard_progress: Mapping[Key, Progress] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take ownership of what is held: it is as immutable as the state."""
        freeze(self.holding)

    @classmethod
    def new(cls, dim: int, ledger: int, boot: int, layout: Layout | None = None) -> PeerState:
        """A peer that has nothing yet, not even mass; amounts have `dim` numbers beside it."""
        nothing = zeros(dim)
        return cls(
            ledger, boot, nothing, nothing, nothing, nothing, nothing, layout=layout or Layout()
        )

    @property
    def dim(self) -> int:
        """How many numbers an amount has besides its mass."""
        return len(self.holding) - 1

    @property
    def mass(self) -> float:
        """omega, as an ordinary number."""
        return mass_of(self.holding) / ONE

    @property
    def debt(self) -> float:
        """The mass that is owed, as an ordinary number."""
        return mass_of(self.owed) / ONE

    @property
    def has_minted(self) -> bool:
        """Whether this peer has brought its unit of mass."""
        return mass_of(self.minted) > 0

    @property
    def estimate(self) -> Vector | None:
        """The model to predict with, x = z / omega; None without a positive mass."""
        return self.layout.model_in(self.holding) if mass_of(self.holding) > 0 else None

    def is_sound(self, radius: float) -> bool:
        """Whether the estimate may be shown to others.

        It may not without mass, or while the peer, restored from a backup, has heard back from some
        of its edges only: its estimate can then be anything.
        """
        held, layout = self.holding, self.layout
        if mass_of(held) <= 0:
            return False
        limit = layout.model_limit(held, radius)
        return extent_of_all(held) <= limit or extent(held[layout.model]) <= limit
