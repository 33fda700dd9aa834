"""Interface between a peer and its page: what the page shows, and what it can ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.tables.cells import label_text
from oneway.tables.encoder import ClassName
from oneway.task.task import Task


class Prediction(NamedTuple):
    """What is expected for a sample.

    Attributes:
        label: A class or a number, as text.
        probabilities: How probable each class is; empty where the model does not say.
        is_live: Whether the running peer said it; if not, it is by the model on the disk.
    """

    label: str
    probabilities: Mapping[str, float]
    is_live: bool

    @classmethod
    def of(
        cls,
        label: ClassName | float,
        probabilities: Mapping[ClassName, float] | Mapping[str, float],
        *,
        is_live: bool,
    ) -> Prediction:
        """What a model said; a number is written with six digits at most."""
        said = label_text(label) if isinstance(label, str | bool) else f"{label:.6g}"
        shares = {label_text(name): share for name, share in probabilities.items()}
        return cls(said, shares, is_live)


class ToldEdge(NamedTuple):
    """An edge that a peer is told to have: to a receiver with its weight, or from a sender."""

    name: str
    key: str
    weight: float | None = None


@dataclass(frozen=True)
class PeerLook:
    """One look at a peer, running or not.

    Attributes:
        name: What it calls itself.
        folder: Where its files are.
        card: What to hand to others; empty if it has none.
        card_problem: Why it has none, as a sentence.
        process: The process that runs it; None if none does.
        status: What it last said about itself; None if it never did.
        curve: How its loss went.
        task: What it learns; None if that cannot be found out.
        receivers: Whom it is told to send to.
        senders: Who may send to it.
        anyone: Whether everybody may.
        disk_free: Bytes that its disk has left; None if that cannot be found out.
        store_bytes: Bytes that its durable state takes.
        time: When this was, in seconds since 1970.
        problem: Why not all of this could be found out, as a sentence; what could not is as it was.
        note: What is worth knowing besides, as a sentence.
    """

    name: str
    folder: str
    card: str = ""
    card_problem: str = ""
    process: int | None = None
    status: Status | None = None
    curve: Curve = field(default_factory=Curve)
    task: Task | None = None
    receivers: tuple[ToldEdge, ...] = ()
    senders: tuple[ToldEdge, ...] = ()
    anyone: bool = False
    disk_free: int | None = None
    store_bytes: int = 0
    time: float = 0.0
    problem: str = ""
    note: str = ""

    @property
    def is_running(self) -> bool:
        """Whether a process runs it, which may be silent all the same."""
        return self.process is not None

    @property
    def classifies(self) -> bool:
        """Whether it predicts classes, so that a prediction is right or wrong."""
        return self.task is not None and self.task.classifies


class PeerSource(Protocol):
    """Reads and changes a peer; may take seconds, and raises `OnewayError` with a sentence.

    What changes something returns what has changed, in sentences.
    """

    def look(self) -> PeerLook:
        """How the peer is doing; whatever is wrong is said in what is returned."""

    def predict(self, sample: Mapping[str, str]) -> Prediction:
        """What is expected for a sample."""

    def trust(self, card: str, weight: float) -> str:
        """Let the peer send to the one with this card."""

    def admit(self, card_or_key: str) -> str:
        """Let the one with this card or key send to the peer."""

    def distrust(self, key: str) -> str:
        """Let the peer send no more to a receiver."""

    def revoke(self, key: str) -> str:
        """Let a sender send no more to the peer."""
