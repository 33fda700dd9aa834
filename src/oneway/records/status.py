"""What a running peer says about itself: for `status`, `doctor`, the local API, lab and pages.

Only what this peer can know by itself. Times are seconds since 1970, ages are seconds.
"""

from __future__ import annotations

import msgspec

from oneway.records.measures import Measures

REPEATED = "repeated"
"""Why most messages are not taken in: the network, or a careful sender, said them twice."""

REST_SECONDS = 4.0
"""A running peer writes its status at least this often, and within a second of a change."""

SILENT_SECONDS = 75.0
"""A sender repeats itself every 30 s even at rest: after two that did not come it is silent."""


def is_possible_mass(mass: float, limit: float) -> bool:
    """Whether a peer of a task can come to hold so much; a `limit` of 0 is not known.

    >>> is_possible_mass(3.0, 256.0), is_possible_mass(-1.0, 256.0), is_possible_mass(300.0, 256.0)
    (True, False, False)
    """
    return mass >= 0.0 and (not limit or mass <= limit)


class ReceiverStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One receiver: somebody I send to, or sent to.

    Attributes:
        phase: open, resync, closing or dead; "none" while there is no edge yet.
        weight: The receiver's weight among mine; 0 once it is no longer trusted.
        link: The state of the connection, as `oneway.transport.base.LinkState` says.
        seq: Number of the last total handed over.
        acked: Number of the last total the receiver is known to hold.
        lag: For how long nothing more has been acknowledged; 0 if everything is.
        last_answer: When the receiver last answered; 0 if it never did in this life.
        problem: What is wrong, as a sentence; empty if nothing is.
        has_dead_edge: Whether there is an edge to it in phase dead, perhaps beside a newer one:
            what it never acknowledged there was taken back, and it may hold that all the same.
        left: Whether it said that it is leaving or has left.
        in_flight_mass: Mass handed over that it has not acknowledged.
        held_back: Why nothing is handed over at the moment, say "the link is down"; empty if
            nothing stands in the way.
        claims: How often in this life it claimed to have been restored from a backup: that it had
            heard less or more than this peer remembers.
        round_trip: Seconds until it acknowledges, commits at both ends included, as a running mean;
            0 if it never did in this life.
    """

    name: str
    key: str
    address: str
    phase: str
    weight: float
    link: str
    link_since: float
    seq: int
    acked: int
    lag: float
    last_answer: float
    problem: str = ""
    has_dead_edge: bool = False
    left: bool = False
    in_flight_mass: float = 0.0
    held_back: str = ""
    claims: int = 0
    round_trip: float = 0.0


class SenderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One sender: somebody who may send to me, or did.

    Attributes:
        admitted: Whether it may send to me now.
        seq: Number of the last total heard.
        last_push: When it last pushed; 0 if it never did in this life.
        rejected: How many of its messages were rejected, by reason.
        clipped: How many of its pushes were clipped.
        strikes: How many rejections count against it at the moment.
        quarantined: Whether it is ignored for the time being.
        problem: What is wrong, as a sentence; empty if nothing is.
        left: Whether it said that it is leaving or has left.
        last_heard: When a message of any kind last came from it; 0 if none did in this life.
    """

    name: str
    key: str
    admitted: bool
    seq: int
    closed: bool
    last_push: float
    rejected: dict[str, int]
    clipped: int
    strikes: int
    quarantined: bool
    problem: str = ""
    left: bool = False
    last_heard: float = 0.0

    @property
    def num_rejected(self) -> int:
        """How many of its messages were rejected, those that came twice aside."""
        return sum(count for reason, count in self.rejected.items() if reason != REPEATED)


class PrivacyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a peer promises about its own samples.

    Attributes:
        brief: The guarantee in force in a few words; that there is none, or nothing is sent.
        sentence: The same in full.
        epsilon, delta: The guarantee in numbers; None where there is none.
        floor: What every peer of the task promises at least, in a few words.
        floor_epsilon: The same as a number; None where the task promises nothing.
        samples_per_push: Its own pushes carry the steps of so many samples; 0 if nothing is sent.
        waiting: How many samples are in the batch that is not full, and have not been sent.
        needs_restart: Whether peer.toml has asked for something else since the peer started.
    """

    brief: str
    sentence: str
    epsilon: float | None = None
    delta: float | None = None
    floor: str
    floor_epsilon: float | None = None
    samples_per_push: int
    waiting: int = 0
    needs_restart: bool = False

    @property
    def is_none(self) -> bool:
        """Whether samples can be read from what is sent."""
        return self.epsilon is None and self.samples_per_push > 0

    @property
    def progress(self) -> str:
        """How full the batch is, in words; empty if nothing is sent."""
        if not self.samples_per_push:
            return ""
        return f"{self.waiting:,} of {self.samples_per_push:,} samples for the next push"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of one peer.

    Attributes:
        average_loss: Of its personal predictions over all samples so far; None before the first.
        recent_loss: Over the last 200 or so; None before the first.
        accuracy: Share of right predictions so far; None where that has no meaning.
        last_sample: When the last sample was learned from; 0 if none was in this life.
        mass_units: omega in units of 2^-40, exact. At every moment it is `brought_units`, plus all
            `heard_units`, minus all `sent_units`; in 64 bits, as running totals wrap.
        replenished: The mass that it minted besides its unit, since less came back than it handed
            out.
        brought_units: What the peer brought into the network.
        sent_units: What it counts as handed over, by the receiver's key, former ones included.
        heard_units: What it took in, by the sender's key, former ones included.
        minted: Whether the peer has brought its unit of mass.
        drained: Leaving, and nothing is left to hand over or to be acknowledged.
        paused: Neither learning nor pushing for the time being.
        finished: The stream has ended; the peer goes on serving and exchanging.
        disk_problem: Why the state or this status cannot be written, as a sentence with its remedy;
            empty if they can.
        commit_seconds: How long a commit takes, a recent mean.
        refused: Frames from keys that are not admitted.
        undecodable: Frames that were too large, or not one part; what cannot be decoded is counted
            as rejected, by sender.
        frames_in, frames_out, bytes_in, bytes_out: What went over the wire in this life.
        mass_limit: More mass than this a peer of the task cannot come to hold; 0 if not known.
        owed: Mass that receivers proved was handed over in a life that this peer, restored from a
            backup, forgot; it is paid back from what comes in.
        stopped: Why the peer stopped itself, as a sentence; empty if it did not.
        copies: That another life of the peer with the same key was met lately, as a sentence.
        unheard: Leaving: the senders that have not confirmed that they know.
        receipts: How many receipts of peers that left are kept for others.
        forgotten: Samples that were learned from in a life that a restored backup does not
            remember, by what receivers heard of it; they are not learned from again.
        waits_for: The receivers that must first tell how far the stream had come before this
            life: no row is learned until then.
        privacy: What it promises about its samples.
        measures: How good its predictions were, beside baselines; None before the first that was
            measured.
        personal: What there is to know about its personal predictions, in sentences: that the model
            has none, that they began anew, or that an expert is off; empty if nothing.
        restarts: After about how many samples its learning rate restarted, the last times.
        measured_samples: How many samples `average_loss`, `recent_loss`, `accuracy` and `measures`
            go up to: `samples`, or fewer where the peer discloses them rounded (`disclosure`); 0
            before they are disclosed.
        disk_problem_since: When the disk problem began; 0 if there is none.
    """

    name: str
    key: str
    card: str
    task: str
    pid: int
    started: float
    time: float
    samples: int
    average_loss: float | None
    recent_loss: float | None
    accuracy: float | None
    last_sample: float
    skipped: int
    last_skipped: str
    mass: float
    mass_units: int
    minted: bool
    replenished: float = 0.0
    leaving: bool
    drained: bool
    paused: bool
    finished: bool
    commits: int
    commit_seconds: float
    disk_problem: str
    refused: int
    undecodable: int
    frames_in: int
    frames_out: int
    bytes_in: int
    bytes_out: int
    api: str
    receivers: list[ReceiverStatus]
    senders: list[SenderStatus]
    brought_units: int = 0
    sent_units: dict[str, int] = {}
    heard_units: dict[str, int] = {}
    mass_limit: float = 0.0
    owed: float = 0.0
    stopped: str = ""
    copies: str = ""
    unheard: list[str] = []
    receipts: int = 0
    forgotten: int = 0
    waits_for: list[str] = []
    privacy: PrivacyStatus | None = None
    measures: Measures | None = None
    personal: str = ""
    restarts: list[int] = []
    measured_samples: int = 0
    disk_problem_since: float = 0.0

    @property
    def has_possible_mass(self) -> bool:
        """Whether a peer of the task can have come to hold this mass."""
        return is_possible_mass(self.mass, self.mass_limit)

    def silent_since(self, sender: SenderStatus) -> float | None:
        """When a sender was last heard, if it should speak and that is too long ago; else None."""
        # By the peer's own time: a peer that is halted has not been left by everybody.
        last = max(sender.last_heard, sender.last_push) or self.started
        has_ended = sender.closed or sender.left or not sender.admitted
        if has_ended or sender.quarantined or not sender.seq:
            return None
        return last if self.time - last > SILENT_SECONDS else None
