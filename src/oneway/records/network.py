"""What a lab's HTTP API and its page exchange: the lab at one moment, and commands to it.

Peers are named; names are unique. Every value is plain enough for JSON.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from oneway.records.values import MASS_UNITS

PeerLife: TypeAlias = Literal["starting", "up", "paused", "down"]
"""What a peer's process does; "starting" until it has said something about itself."""

LabPhase: TypeAlias = Literal[
    "starting", "learning", "all samples are learned from", "finishing", "done"
]
"""What a lab does; "starting" until every peer has said something about itself."""


class PeerView(msgspec.Struct, frozen=True, kw_only=True):
    """One peer.

    Attributes:
        x, y: Where to draw it, each from 0 to 1; it stays there.
        samples: How many it has learned from.
        average_loss: Over all samples so far; None before the first.
        recent_loss: Over the last 200 or so; None before the first.
        accuracy: Share of right predictions so far; None where that has no meaning.
        mass_units: What it holds, in units.
        restarts: How often it was started again.
        finished: Whether it has learned from all its samples.
        shared_loss, alone_loss, base_loss: Of the shared model, of learning alone and of the base
            rate, on the same samples as the average loss, which is that of the peer's own answers.
        believes: Whom its personal predictions believe, in words.
    """

    name: str
    state: PeerLife
    x: float
    y: float
    samples: int
    average_loss: float | None
    recent_loss: float | None
    accuracy: float | None
    mass_units: int
    restarts: int
    finished: bool = False
    shared_loss: float | None = None
    alone_loss: float | None = None
    base_loss: float | None = None
    believes: str = ""

    @property
    def mass(self) -> float:
        """omega, as an ordinary number."""
        return self.mass_units / MASS_UNITS


class EdgeView(msgspec.Struct, frozen=True, kw_only=True):
    """Trust of one peer in another: the sender is willing to send to the receiver.

    Attributes:
        arrived: Number of the last push that is known to have arrived; grows.
        waiting: How many pushes have not been acknowledged.
        cut: Whether the line between the two was cut on purpose.
    """

    sender: str
    receiver: str
    arrived: int
    waiting: int
    cut: bool


class MassView(msgspec.Struct, frozen=True, kw_only=True):
    """All the mass there is, in units, by the books of all peers.

    Attributes:
        held: In the peers, also those that are down.
        in_flight: Handed over by a sender, and not yet taken in by its receiver. Peers are read at
            slightly different moments, so for a moment this may be below 0; the total is exact.
        brought: What peers brought into the network when they joined.
        is_exact: Whether every unit is accounted for.
        problems: What is wrong, in sentences.
    """

    held: int
    in_flight: int
    brought: int
    is_exact: bool
    problems: list[str] = []

    @property
    def total(self) -> int:
        """All there is, in units."""
        return self.held + self.in_flight


class NetworkFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A lab at one moment.

    Attributes:
        number: Grows by one with every frame.
        seconds: Since the lab began.
        disagreement: Mean squared distance of the peers' models from the network's mean; None
            before there are models.
        messages_per_second, bytes_per_second: What all peers send together.
        loss_rate: The share of messages that are lost on purpose.
        num_events: How many events there were; `events` has the last of them.
        events: What happened, in sentences, oldest first.
        privacy: What the task promises about samples, in a few words.
        acts: Whether commands are taken.
        result: What the audit and the comparison said, once the lab is done.
        result_is_exact: What the audit found; None until then.
    """

    number: int
    seconds: float
    phase: LabPhase
    title: str
    peers: list[PeerView]
    edges: list[EdgeView]
    mass: MassView
    disagreement: float | None
    messages_per_second: float
    bytes_per_second: float
    loss_rate: float
    num_events: int
    events: list[str]
    privacy: str = ""
    acts: bool = True
    result: list[str] = []
    result_is_exact: bool | None = None


class ReferenceCurve(msgspec.Struct, frozen=True, kw_only=True):
    """What the simulator makes of the graph of the start, and the same samples and order.

    Attributes:
        method: The name of a method, as it is registered.
        arrows: How many edges that graph has.
        one_way: How many of them have no edge back.
        samples: After how many samples of each peer.
        average_loss: Over all samples of all peers until then.
    """

    method: str
    arrows: int
    one_way: int
    samples: list[int]
    average_loss: list[float]


class Kill(msgspec.Struct, frozen=True, tag="kill", tag_field="do"):
    """End a peer's process with SIGKILL."""

    peer: str


class Restart(msgspec.Struct, frozen=True, tag="restart", tag_field="do"):
    """Start a peer that is down."""

    peer: str


class Cut(msgspec.Struct, frozen=True, tag="cut", tag_field="do"):
    """Let nothing pass between two peers."""

    one: str
    other: str


class Heal(msgspec.Struct, frozen=True, tag="heal", tag_field="do"):
    """Undo a cut."""

    one: str
    other: str


class SetLoss(msgspec.Struct, frozen=True, tag="set_loss", tag_field="do"):
    """Lose this share of all messages from now on."""

    loss: float


class AddPeer(msgspec.Struct, frozen=True, tag="add_peer", tag_field="do"):
    """Let a newcomer join that sends to these, and is sent to by those; "" for a name of ours."""

    name: str
    receivers: list[str]
    senders: list[str]


class Trust(msgspec.Struct, frozen=True, tag="trust", tag_field="do"):
    """Let one peer send to another, which admits it."""

    sender: str
    receiver: str


class Distrust(msgspec.Struct, frozen=True, tag="distrust", tag_field="do"):
    """Let one peer send nothing more to another."""

    sender: str
    receiver: str


class Finish(msgspec.Struct, frozen=True, tag="finish", tag_field="do"):
    """Stop learning, let everything arrive, and audit."""


Command: TypeAlias = Kill | Restart | Cut | Heal | SetLoss | AddPeer | Trust | Distrust | Finish
