"""A peer as its runtime drives it, in virtual time: retries, heartbeats, verdicts of death.

It learns that the model is 0, from noisy samples, by Relay where it has parcels.
"""

from __future__ import annotations

import math
import random

import numpy as np
from builders import replace
from storm import LONGEST, any_step

from oneway.methods import Relay
from oneway.methods.base import State
from oneway.peer.inflow import Inflow, handed_on
from oneway.peer.learner import part_within
from oneway.protocol import lives, transitions
from oneway.protocol.bookkeeping import RETIRED
from oneway.protocol.fixed_point import ONE
from oneway.protocol.incoming import Absorbed, mint
from oneway.protocol.messages import Closed, Gone, Push, Receipt, Superseded
from oneway.protocol.outgoing import answer, receipts, remind, report, say, supersede
from oneway.protocol.pace import DRAINED
from oneway.protocol.replies import receive_receipt, receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import LIVE, EdgeId, Key, OutPhase, PeerState, Told
from oneway.testing.memory_network import MemoryEndpoint
from oneway.transport.base import Via
from oneway.transport.wire import Body, decode, encode

TASK = b"the task of tests"
HEARTBEAT = 30.0
PRESUME_DEAD = 120.0
REOPEN = 60.0
RELAY = Relay(learning_rate=LONGEST)


class Resident:
    """One honest peer: what it knows, what is durable, its backups, and when it heard from whom.

    Attributes:
        trusted: Its receivers, in an order that no hash decides.
        online: Whether it has power.
        departed: Whether it has left for good.
        stopped: Whether it found out that it is one of two copies, and stopped.
        strikes: Whom it accused, and of what.
        gives_receipts: Whether it waits, when leaving, until every sender has heard or has a
            witness; a rule that can be taken out.
        keeps_mass: Whether it keeps its mass within bounds; another one.
    """

    presume_dead_after = PRESUME_DEAD
    gives_receipts = True
    keeps_mass = True

    def __init__(self, endpoint: MemoryEndpoint, rules: Rules, saved: PeerState, seed: str) -> None:
        self.endpoint = endpoint
        self.key: Key = endpoint.key
        self.rules = rules
        self.current = self.durable = saved
        self.backups: list[tuple[PeerState, dict[frozenset[Key], int]]] = []
        self.trusted: list[Key] = []
        self.rng = random.Random(seed)
        self.online, self.departed, self.stopped = True, False, False
        self.strikes: list[tuple[Key, str]] = []
        self.num_steps = 0
        self.regains = False
        self.forget()

    def forget(self) -> None:
        """Lose what only the process knew."""
        self.inflow = Inflow(LONGEST, self.num_steps, 0.0)
        self.questions: dict[EdgeId, Push] = {}
        self.words: list[tuple[Key, Via, Body]] = []
        self.ends: list[EdgeId] = []
        self.echoes = False
        self.reopen_at: dict[Key, float] = {}
        self.lagging: dict[EdgeId, tuple[int, float]] = {}
        self.said: dict[EdgeId, object] = {}
        self.last_heartbeat = -HEARTBEAT

    @property
    def runs(self) -> bool:
        return self.online and not self.departed and not self.stopped

    @property
    def shares(self) -> dict[Key, float]:
        return {key: 0.5 / len(self.trusted) for key in self.trusted}

    # What happens to it.

    def start(self, saved: PeerState, boot: int) -> None:
        """Come back with a saved state: the last one after a crash, or an old backup."""
        self.online = True
        self.forget()
        while self.endpoint.receive_now() is not None:
            pass  # what was received and not committed is lost with the process
        self.current = self.durable = transitions.restart(saved, boot)

    def receive(self, now: float) -> None:
        """Take in all that was delivered."""
        while self.runs and (arrival := self.endpoint.receive_now()) is not None:
            _, message = decode(arrival.frame)
            peer, via = arrival.peer, arrival.via
            if isinstance(message, Superseded):
                if lives.is_copied(self.current, message.newer, self.rules):
                    self.stopped = True
                else:
                    self.current = lives.lifted(self.current, message.newer, self.rules)
                continue
            if isinstance(message, Receipt):
                self.current = receive_receipt(self.current, self.key, peer, message, self.rules)
                self.echoes = True
                continue
            if via == "push":
                done = self._take_push(peer, message, now)
            else:
                done = self._take_reply(peer, message, now)
            if done.is_older_life:
                self.questions.pop((peer, message.epoch), None)
                newer = supersede(done.state, peer, message.life, self.rules)
                if newer is not None:
                    self.words.append((peer, "reply" if via == "push" else "push", newer))
            if done.strike is not None:
                self.strikes.append((peer, done.strike.sentence))
            self.current = done.state

    def _take_push(self, peer: Key, message: Push, now: float) -> Absorbed:
        self.questions[peer, message.epoch] = message
        allowance = None if math.isinf(self.rules.clip) else self.inflow.allowance(peer, now)
        done = transitions.receive_push(self.current, peer, message, self.rules, allowance)
        if not done.is_older_life:
            self.inflow.moved(peer, done.moved, now)
        return done

    def _take_reply(self, peer: Key, message: Body, now: float) -> Absorbed:
        edge_id, before = (peer, message.epoch), self.current
        done = receive_reply(before, peer, message, self.rules)
        edge = before.out.get(edge_id)
        if edge is not None and edge_id not in done.state.out:
            closed_by_them = edge.phase in LIVE and not isinstance(message, Gone)
            self.reopen_at[peer] = now + REOPEN if closed_by_them else now
        if isinstance(message, Closed):
            self.ends.append(edge_id)  # its receiver must know that both know
        return done

    # What it does by itself.

    def tick(self, now: float, learns: bool) -> None:
        """Whatever is due: verdicts of death, new edges, a step of learning, a push."""
        for edge_id, edge in list(self.current.out.items()):
            waits = edge.in_flight or edge.phase is OutPhase.CLOSING
            if not waits or edge.phase is OutPhase.DEAD:
                self.lagging.pop(edge_id, None)
                continue
            if self.lagging.get(edge_id, (None,))[0] != edge.acked:
                self.lagging[edge_id] = (edge.acked, now)
            if now - self.lagging[edge_id][1] > self.presume_dead_after:
                self.current = transitions.presume_dead(self.current, edge_id)
        for receiver in self.trusted:
            if now >= self.reopen_at.get(receiver, now):
                epoch = (int(now) << 30) | self.rng.getrandbits(30)
                self.current = transitions.trust(self.current, receiver, epoch)
        if learns and not self.current.leaving:
            self._learn(now)
        if learns or self.current.leaving:
            self.push(now)

    def _learn(self, now: float) -> None:
        if not self.current.has_minted:
            self.current = mint(self.current, np.zeros(self.current.dim))
        state = self.current = self._kept_mass(self.current)
        if state.mass <= 0:
            return
        layout, step = state.layout, np.append(any_step(self.rng, state), 0.0)
        if not layout.copies_model:
            gradient = layout.model_in(state.holding)
            gradient += [self.rng.gauss(0, 1) for _ in gradient]
            gradient *= LONGEST / max(1.0, float(np.linalg.norm(gradient)))
            self.inflow.stepped(float(np.linalg.norm(gradient)), now)
            if layout.parcel is None:
                step[layout.model] = min(1.0, state.mass) * gradient
            else:
                step[layout.model], step[layout.parcel[0]] = 0.0, -gradient
        self.num_steps += 1
        self.current = transitions.descend(state, step[:-1])

    def _kept_mass(self, state: PeerState) -> PeerState:
        if not self.keeps_mass or not state.is_sound(self.rules.radius):
            return state
        return transitions.keep_mass(state, RELAY.suited_to_peers().bounds)

    def _deposited(self, state: PeerState, now: float) -> PeerState:
        """A state after Relay has deposited some of its parcel."""
        if state.layout.parcel is None or state.leaving or not state.is_sound(self.rules.radius):
            return state
        held, places = state.holding / ONE, {**state.layout.places, "mass": slice(-1, None)}
        row = State({name: held[None, place] for name, place in places.items()}, {})
        after = RELAY.before_push(row, np.random.default_rng(0))
        part = part_within(RELAY, row, after, self.rules)
        self.inflow.deposited(part * float(RELAY.fractions(row)[0, 0]), state.mass, now)
        step = np.zeros(state.dim)
        for name, place in state.layout.places.items():
            step[place] = part * (row.segments[name] - after.segments[name])[0]
        return transitions.descend(state, step)

    def push(self, now: float) -> None:
        ready = self._deposited(self._kept_mass(self.current), now)
        after = transitions.push(ready, self.shares, self.rules)
        if not self.trusted and ready.is_sound(self.rules.radius):
            hears = any(edge.seq and not edge.closed for edge in after.in_.values())
            after = transitions.let_go(after, 0.5 if hears else 0.0)
        if self.regains and after is not ready:
            regained = transitions.recover(after)
            self.regains, after = regained is not after, regained
        self.inflow.handed_on(handed_on(ready, after))
        self.current = after

    def commit(self, now: float, says_all: bool = False) -> None:
        """Make the current state durable; then, and only then, speak about it."""
        state = self.durable = self.current
        heartbeat = says_all or now - self.last_heartbeat >= HEARTBEAT
        for edge_id, edge in state.out.items():
            what = (edge.phase, edge.session, edge.seq, state.boot)
            if heartbeat or not edge.is_at_rest or self.said.get(edge_id) != what:
                self.said[edge_id] = what
                self._send(edge.receiver, "push", say(state, edge, self.rules))
        for (sender, _), question in self.questions.items():
            for reply in answer(state, sender, question, self.rules):
                self._send(sender, "reply", reply)
        for edge_id in self.ends:
            if edge_id in state.settled:
                self._send(edge_id[0], "push", remind(state, state.settled[edge_id], self.rules))
        for peer, via, word in self.words:
            self._send(peer, via, word)
        if heartbeat or state.leaving:
            for heard in state.in_.values():
                if heard.epoch != RETIRED:
                    self._send(heard.sender, "reply", report(state, heard, self.rules))
        if (heartbeat or state.leaving or self.echoes) and self.gives_receipts:
            self._send_receipts(state)
        if heartbeat:
            self.last_heartbeat = now
            for end in state.settled.values():
                if end.epoch != RETIRED:
                    self._send(end.receiver, "push", remind(state, end, self.rules))
        self.questions, self.words, self.ends, self.echoes = {}, [], [], False
        self.departed = self.departed or self._has_left

    def _send_receipts(self, state: PeerState) -> None:
        for receipt in receipts(state, self.key, self.rules):
            for receiver in dict.fromkeys(edge.receiver for edge in state.out.values()):
                self._send(receiver, "push", receipt)
            for sender in dict.fromkeys(edge.sender for edge in state.in_.values()):
                self._send(sender, "reply", receipt)

    @property
    def _has_left(self) -> bool:
        state = self.durable
        if not state.leaving or state.layout.booked(state.holding).any():
            return False
        if any(edge.waits for edge in state.out.values()):
            return False
        if not self.gives_receipts:
            return True
        # Should one of those whom it presumed dead live, nobody else could set it right.
        in_doubt = any(edge.in_flight for edge in state.out.values())
        return not in_doubt and all(
            edge.told is not Told.NOBODY for edge in state.in_.values() if edge.seq
        )

    def _send(self, peer: Key, via: Via, word: Body) -> None:
        send = self.endpoint.push if via == "push" else self.endpoint.reply
        send(peer, encode(word, TASK))

    # What its owner does.

    def distrust(self, receiver: Key) -> None:
        self.current = transitions.distrust(self.current, receiver)
        self.regains = self.keeps_mass and self.current.mass < DRAINED

    def leave(self) -> None:
        self.current = transitions.leave(self.current)

    def save_backup(self, closings: dict[frozenset[Key], int]) -> None:
        self.backups.append((self.durable, dict(closings)))

    def copied_to(self, endpoint: MemoryEndpoint, saved: PeerState, boot: int) -> Resident:
        """A live copy, started from a saved state of this peer, with the same key and secret."""
        copy = Resident(endpoint, self.rules, saved, f"copy of {self.key[0]} at {boot}")
        copy.trusted = list(self.trusted)
        copy.start(replace(saved), boot)
        return copy

    def counts_more_than(self, receiver: Resident) -> int:
        """By how many units the two disagree on all that was ever handed over."""
        state = self.current
        sent = [edge.counted for edge in state.out.values() if edge.receiver == receiver.key]
        sent += [end.total for end in state.settled.values() if end.receiver == receiver.key]
        heard = [it.heard for it in receiver.current.in_.values() if it.sender == self.key]
        nothing = 0 * state.holding
        error = sum(sent, start=nothing) - sum(heard, start=nothing)
        return int(np.abs(state.layout.booked(error)).max())


def facts(state: PeerState) -> object:
    """What must no longer change in a network at rest."""
    return (
        state.holding.tolist(),
        state.owed.tolist(),
        [
            (name, edge.phase, edge.session, edge.seq, edge.acked)
            for name, edge in state.out.items()
        ],
        [(name, it.session, it.seq, it.closed, it.told) for name, it in state.in_.items()],
        [(name, end.seq) for name, end in state.settled.items()],
    )
