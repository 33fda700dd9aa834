"""What the page of a peer is shown, and what it may ask for; who provides it is another matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from oneway.records.curve import Curve
from oneway.records.status import Status


@dataclass(frozen=True)
class FeatureField:
    """A number that a prediction needs.

    Attributes:
        name: As the task calls it.
        typical: A value in the middle of what there is, in the unit of the data.
    """

    name: str
    typical: float

    def sample(self, value: str) -> dict[str, str]:
        """What is typed, by feature."""
        return {self.name: value}


@dataclass(frozen=True)
class ChoiceField:
    """One of several features is 1, the others are 0.

    Attributes:
        name: What is chosen.
        features: The feature that each option stands for.
        typical: The most frequent option.
    """

    name: str
    features: Mapping[str, str]
    typical: str

    def sample(self, option: str) -> dict[str, str]:
        """What an option means, by feature."""
        chosen = self.features[option]
        return {name: "1" if name == chosen else "0" for name in self.features.values()}


SampleField: TypeAlias = FeatureField | ChoiceField


@dataclass(frozen=True)
class PredictForm:
    """What is predicted, and from what."""

    label: str
    fields: tuple[SampleField, ...]


@dataclass(frozen=True)
class Prediction:
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
        cls, label: str | float, probabilities: Mapping[str, float] | None, *, is_live: bool
    ) -> Prediction:
        """What a model said; a number is written with six digits at most."""
        said = label if isinstance(label, str) else f"{label:.6g}"
        return cls(said, probabilities or {}, is_live)


@dataclass(frozen=True)
class Receiver:
    """Somebody whom the peer is told to send to."""

    name: str
    key: str
    address: str
    weight: float


@dataclass(frozen=True)
class Sender:
    """Somebody who may send to the peer."""

    name: str
    key: str


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
        form: What its model predicts; None if that cannot be found out.
        has_classes: Whether it predicts classes, so that a prediction is right or wrong.
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
    form: PredictForm | None = None
    has_classes: bool = False
    receivers: tuple[Receiver, ...] = ()
    senders: tuple[Sender, ...] = ()
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


class PeerSource(Protocol):
    """Where the page gets everything from. Its functions may take seconds: they read files."""

    def look(self) -> PeerLook:
        """Return how the peer is doing; whatever is wrong is said in what is returned."""
        ...

    def predict(self, sample: Mapping[str, str]) -> Prediction:
        """Return what is expected for a sample.

        Raises:
            OnewayError: If the sample has a value that is no number, or there is no model.
        """
        ...

    def trust(self, card: str, weight: float) -> str:
        """Let the peer send to the one with this card; return what has changed, in sentences.

        Raises:
            OnewayError: If the card is malformed, or the peer cannot send to it.
        """
        ...

    def admit(self, card_or_key: str) -> str:
        """Let the one with this card send to the peer; return what has changed, in sentences.

        Raises:
            OnewayError: If it is neither a card nor a key, or it is the peer's own.
        """
        ...

    def distrust(self, key: str) -> str:
        """Let the peer send no more to a receiver; return what has changed, in sentences.

        Raises:
            OnewayError: If there is no such receiver.
        """
        ...

    def revoke(self, key: str) -> str:
        """Let a sender send no more to the peer; return what has changed, in sentences.

        Raises:
            OnewayError: If there is no such sender.
        """
        ...
