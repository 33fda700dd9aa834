"""Inbox of a peer: frames in, a new state out; and what is to be answered once that is durable."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from msgspec.structs import replace

from oneway.errors import WireError
from oneway.peer.conduct import COPIES_SECONDS, ConductLog, Mismatches
from oneway.peer.inflow import AskLimit, Inflow
from oneway.peer.stream_progress import ToldProgress
from oneway.protocol.incoming import Absorbed
from oneway.protocol.lives import is_copied, life_of, lifted, meet
from oneway.protocol.messages import (
    Closed,
    Compact,
    Data,
    Gone,
    Hello,
    News,
    Push,
    Receipt,
    Reply,
    Superseded,
)
from oneway.protocol.outgoing import supersede
from oneway.protocol.replies import receive_receipt, receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import LIVE, EdgeId, Key, PeerState
from oneway.protocol.transitions import ask_everybody, receive_push
from oneway.records.status import REPEATED
from oneway.task.task import Task
from oneway.transport.base import Arrival, Via
from oneway.transport.wire import Body, Versions, decode

MOST_STRANGERS = 256
"""Senders that are listened to without having been named, where anyone is admitted."""

MOST_ANSWERS = 64
"""Answers of each kind that are owed to one peer: while the disk fails, nobody is answered."""

REOPEN_SECONDS = 60.0
"""After a receiver closed an edge itself, this long until the next attempt."""


@dataclass
class Copies:
    """What neighbours told of other lives of this peer; `lives` has the rules.

    Attributes:
        proven_by: Who told of a copy that runs, so that this one must stop.
        told_by: Who last told of another life, over which this one was lifted.
        told_at: When.
    """

    clock: Callable[[], float]
    proven_by: Key | None = None
    told_by: Key | None = None
    told_at: float = 0.0

    def meet(self, state: PeerState, teller: Key, message: Superseded, rules: Rules) -> PeerState:
        """Take in that another life of this peer has spoken."""
        if is_copied(state, message.newer, rules):
            self.proven_by = teller
            return state
        after = lifted(state, message.newer, rules)
        if after is state:
            return state
        self.told_by, self.told_at = teller, self.clock()
        # At once, not with the next push: what the other life did is not known here, and it must
        # hear of this one, should it run.
        return ask_everybody(after)

    def why_to_stop(self, name: str, name_of: Callable[[Key], str]) -> str:
        """Reason to stop, or an empty string."""
        if self.proven_by is None:
            return ""
        return (
            f"another copy of {name} runs with the same key: it spoke to {name_of(self.proven_by)} "
            "and ran before this one, so this one stops; keep one of the two folders and delete "
            "the other, and never run a copy while the first one runs"
        )

    def warning(self, name: str, name_of: Callable[[Key], str]) -> str:
        """What is to be said of another life that was met lately, as a sentence; or nothing."""
        if self.told_by is None or self.clock() - self.told_at > COPIES_SECONDS:
            return ""
        return (
            f"another life of {name} with the same key spoke to {name_of(self.told_by)}: if a "
            "backup was restored here, that is how it should be; otherwise a copy of its folder "
            "was started somewhere: delete it"
        )


@dataclass(eq=False)
class Answers:
    """What is owed to others once the state is durable.

    Attributes:
        questions: Pushes to be answered.
        ends: Edges whose receiver is to know that this peer knows how they ended.
        receipts: Receipts that are kept now: to whom, over whose connection, which.
    """

    questions: dict[EdgeId, Push] = field(default_factory=dict)
    ends: set[EdgeId] = field(default_factory=set)
    receipts: list[tuple[Key, Via, Receipt]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.questions or self.ends or self.receipts)


class Inbox:
    """Takes in what other peers say, and keeps count of how they behave.

    Attributes:
        guard: Who behaved how.
        inflow: How far each sender may move this peer.
        heard: When anything last came from each peer in this life.
        pushed: When each sender last pushed in this life.
        answered: When each receiver last answered in this life.
        reopen_at: When to try again with receivers that closed an edge.
        claims: How often a receiver, or this peer, had to be set right after a restored backup.
        words: What to say at once, without a commit.
        copies: What was told of copies of this peer that run elsewhere.
        listed: Peers that this one's owner named; of others, only so many are listened to.
        told: How far this peer's own stream had come, by what receivers heard of it.
    """

    def __init__(
        self,
        key: Key,
        task: Task,
        guard: ConductLog,
        clock: Callable[[], float],
        inflow: Inflow,
        told: ToldProgress,
    ) -> None:
        """Nothing has come yet in this life."""
        self.guard = guard
        self.told = told
        self.inflow = inflow
        self.heard: dict[Key, float] = {}
        self.pushed: dict[Key, float] = {}
        self.answered: dict[Key, float] = {}
        self.reopen_at: dict[Key, float] = {}
        self.claims: Counter[Key] = Counter()
        self.words: list[tuple[Key, Via, Body | Versions]] = []
        self.copies = Copies(clock)
        self.listed: Set[Key] = frozenset()
        self._key = key
        self._task = task
        self._clock = clock
        self._mismatches = Mismatches(task, guard)
        self._asks = AskLimit()
        self._resyncs = AskLimit()
        self._answers = Answers()
        self._confirmed: set[EdgeId] = set()
        self._strangers: set[Key] = set()

    @property
    def has_answers(self) -> bool:
        """Whether somebody is to be answered."""
        return bool(self._answers)

    def take_answers(self) -> Answers:
        """What is to be answered; it is up to the caller now."""
        answers, self._answers = self._answers, Answers()
        return answers

    def put_back(self, answers: Answers) -> None:
        """What could not be answered yet."""
        since, self._answers = self._answers, Answers(ends=answers.ends | self._answers.ends)
        for (sender, _), question in {**answers.questions, **since.questions}.items():
            self._owe(sender, question)
        for told in (*answers.receipts, *since.receipts):
            self._owe_receipt(*told)

    def _owe(self, sender: Key, question: Push) -> None:
        known, edge_id = self._answers.questions, (sender, question.epoch)
        if edge_id in known or _has_room(sender, [key for key, _ in known]):
            known[edge_id] = question

    def _owe_receipt(self, peer: Key, via: Via, receipt: Receipt) -> None:
        told = self._answers.receipts
        if _has_room(peer, [key for key, _, _ in told]):
            told.append((peer, via, receipt))

    def take(self, state: PeerState, arrival: Arrival, rules: Rules) -> PeerState:
        """Take in a frame from the network."""
        peer, via = arrival.peer, arrival.via
        if peer not in self.listed and peer not in state.lives and peer not in self._strangers:
            if self._is_crowded(state):
                return state
            self._strangers.add(peer)
        if self.guard.is_quarantined(peer):
            self.guard.count(peer, "quarantined")
            return state
        if arrival.flaw:
            self.guard.strike(peer, "malformed", f"it sent {arrival.flaw}")
            return state
        try:
            task, message = decode(arrival.frame)
        except WireError as error:
            self.guard.strike(peer, "undecodable", str(error))
            return state
        self.heard[peer] = self._clock()
        if task != self._task.fingerprint or not isinstance(message, Push | Reply | News):
            told = self._mismatches.meet(peer, message, self._clock())
            if told is not None:
                self.words.append((peer, _back(via), told))
            return state
        self.guard.agrees(peer)
        if isinstance(message, News):
            return self._take_news(state, peer, message, via, rules)
        if via == "push" and isinstance(message, Push):
            done = self._take_push(state, peer, message, rules)
        elif via == "reply" and isinstance(message, Reply):
            done = self._take_reply(state, peer, message, rules)
        else:
            self.guard.strike(peer, "out of place", "it answers what was not asked")
            return state
        if done.strike is not None:
            self.guard.strike(peer, done.strike.kind, done.strike.sentence)
        if done.is_older_life and self.guard.is_news(peer):
            newest = supersede(done.state, peer, message.life, rules)
            if newest is not None:
                self.words.append((peer, _back(via), newest))
        return done.state

    def _take_push(self, state: PeerState, sender: Key, message: Push, rules: Rules) -> Absorbed:
        now = self._clock()
        self.pushed[sender] = now
        may = {Hello: self._asks.may_ask, Compact: self._asks.has_left}.get(type(message))
        if may is not None and not may(sender, now):
            self.guard.count(sender, "asked too often")
            return Absorbed(state)
        allowance = None
        if not math.isinf(rules.clip):
            allowance = self.inflow.allowance(sender, now, state.mass)
        done = receive_push(state, sender, message, rules, allowance)
        if done.misleads:
            # The answer makes an honest sender ask. Others say it for ever: in a hundred bytes, and
            # a digest of all the model's numbers shows it.
            self._asks.may_ask(sender, now)
        if not done.is_older_life:
            self._owe(sender, message)
            self.inflow.moved(sender, done.moved, now)
        refused = done.waits or done.strike is not None
        if isinstance(message, Data | Compact) and done.state is state and not refused:
            self.guard.count(sender, REPEATED)
        if done.waits:
            self.guard.count(sender, done.waits)
        if done.clipped:
            self.guard.clip(sender, done.clipped)
        return done

    def _take_reply(
        self, state: PeerState, receiver: Key, message: Reply, rules: Rules
    ) -> Absorbed:
        now, edge_id = self._clock(), (receiver, message.epoch)
        self.answered[receiver] = now
        if not self.told.hear(message):
            self.guard.count(receiver, "false progress")
        done = receive_reply(state, receiver, message, rules)
        edge = state.out.get(edge_id)
        asks = done.state.out.get(edge_id)
        is_new = edge is not None and asks is not None and asks.session > edge.session
        if is_new and not self._resyncs.may_ask(receiver, now):
            # A reply that is repeated makes an edge ask, and each question costs a commit.
            self.guard.count(receiver, "made to ask too often")
            return Absorbed(state)
        if edge is not None and edge_id not in done.state.out:
            closed_by_them = edge.phase in LIVE and not isinstance(message, Gone)
            self.reopen_at[receiver] = now + REOPEN_SECONDS if closed_by_them else now
        if isinstance(message, Closed) and edge_id in done.state.settled:
            # What a settled edge is confirmed with is answered again: every other one is enough.
            if edge is not None or edge_id not in self._confirmed:
                self._answers.ends.add(edge_id)
                # Edges that are not settled any more are forgotten here as well.
                self._confirmed = {edge_id, *(self._confirmed & done.state.settled.keys())}
            else:
                self._confirmed.discard(edge_id)
        if done.is_claim:
            self.claims[receiver] += 1
        return done

    def _take_news(
        self, state: PeerState, peer: Key, message: News, via: Via, rules: Rules
    ) -> PeerState:
        if isinstance(message, Receipt):
            # Who is kept something of counts as known: of strangers, only so many are.
            state = meet(state, peer, message.life) or state
            if peer == message.receiver and self._key != message.sender:
                # To keep one is a promise to who leaves: given once it is durable, and to nobody
                # else, or two who keep it would assure each other for ever.
                # In one's own life: the teller would take its own for a newer one of this peer.
                kept = replace(message, life=life_of(state, rules))
                self._owe_receipt(peer, _back(via), kept)
            return receive_receipt(state, self._key, peer, message, rules)
        return self.copies.meet(state, peer, message, rules)

    def _is_crowded(self, state: PeerState) -> bool:
        """Whether as many are known as may be: with anyone admitted, keys cost nothing."""
        known = state.lives.keys() | self._strangers
        return len(known) >= MOST_STRANGERS + len(self.listed)


def _has_room(peer: Key, owed: Sequence[Key]) -> bool:
    """Whether one more answer may be owed to a peer; it asks again if not."""
    return len(owed) < MOST_ANSWERS or owed.count(peer) < MOST_ANSWERS


def _back(via: Via) -> Via:
    """The way back: who pushed gets a reply, who replied a push."""
    return "reply" if via == "push" else "push"
