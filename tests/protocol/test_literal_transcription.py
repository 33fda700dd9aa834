"""Every transition against a slow, literal transcription of the protocol with unbounded integers.

The transcription keeps dictionaries and lists, and a set of all that a key ever said instead of
keyed hashes. Both get the same random schedule of learning, pushing, loss, repetition, reordering,
crashes, old backups, live copies, revocation, death, leaving and staying, and must agree on every
integer and every word.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from copy import deepcopy

import numpy as np
from builders import replace
from hypothesis import given
from hypothesis import strategies as st
from literal_protocol import (
    CAP,
    DIM,
    LIMIT,
    LONGEST,
    MOST_EDGES,
    NOTHING_LEARNED,
    RADIUS,
    WINDOW,
    Transcript,
    minus,
    size_of,
)

from oneway.protocol.audit import expected_holding
from oneway.protocol.fixed_point import ONE
from oneway.protocol.incoming import Allowance, Move, mint
from oneway.protocol.layout import Layout
from oneway.protocol.lives import is_copied, lifted
from oneway.protocol.messages import Life, Progress, Receipt, Superseded
from oneway.protocol.outgoing import answer, receipts, remind, report, say, supersede
from oneway.protocol.replies import receive_receipt, receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import RANDOM_BITS, first_stamp
from oneway.protocol.state import OutPhase, PeerState
from oneway.protocol.tags import NO_TAG, digest_of, sign_life
from oneway.protocol.transitions import (
    TOO_MANY,
    descend,
    distrust,
    keep_mass,
    leave,
    presume_dead,
    push,
    receive_push,
    restart,
    stay,
    trust,
)
from oneway.records import Segment

# The implementation, in the same terms.


RELAY = Layout.of(
    [
        Segment("numerator", "split"),
        Segment("parcel", "forwarded"),
        Segment("count", "forwarded", is_vector=False),
    ],
    DIM,
)


class Real:
    """One peer of `oneway.protocol`, driven as the transcription is."""

    def __init__(self, key, state, clip):
        self.key = key
        self.rules = Rules(
            secret=key * 2,
            window=WINDOW,
            mass_cap=CAP,
            mass_limit=LIMIT,
            radius=RADIUS,
            longest_step=LONGEST,
            clip=clip,
            most_edges=MOST_EDGES,
        )
        self.strikes = self.claims = 0
        self.clips = 0.0
        self.moves = []
        self.waits = []
        self.questions = {}
        self.now = self.durable = state

    def commit(self):
        self.durable = self.now
        words = [
            (edge.receiver, "push", say(self.durable, edge, self.rules))
            for edge in self.durable.out.values()
        ]
        for (sender, _), question in self.questions.items():
            replies = answer(self.durable, sender, question, self.rules)
            words += [(sender, "reply", reply) for reply in replies]
        self.questions = {}
        return words

    def heartbeat(self, neighbours):
        words = [
            (edge.sender, "reply", report(self.durable, edge, self.rules))
            for edge in self.durable.in_.values()
            if edge.epoch
        ] + [
            (end.receiver, "push", remind(self.durable, end, self.rules))
            for end in self.durable.settled.values()
            if end.epoch
        ]
        for receipt in receipts(self.durable, self.key, self.rules):
            words += [(neighbour, "push", receipt) for neighbour in neighbours]
        return words

    def restart(self, saved, boot):
        self.questions = {}
        self.now = self.durable = restart(saved, boot)

    def hear(self, peer, via, word, allowance):
        if isinstance(word, Superseded):
            if is_copied(self.now, word.newer, self.rules):
                return "stop"
            self.now = lifted(self.now, word.newer, self.rules)
            return None
        if isinstance(word, Receipt):
            self.now = receive_receipt(self.now, self.key, peer, word, self.rules)
            return None
        if via == "push":
            may = None
            if allowance is not None:
                moved, waits, most = allowance
                may = Allowance(Move(moved, waits) if moved.any() or waits.any() else None, most)
            done = receive_push(self.now, peer, word, self.rules, may)
        else:
            done = receive_reply(self.now, peer, word, self.rules)
        self.strikes += done.strike is not None
        self.claims += done.is_claim
        self.clips += done.clipped
        self.waits += [done.waits] if done.waits else []
        if (move := done.moved) is not None:
            self.moves.append((move.now, 0.0 * move.now if move.steps is None else move.steps))
        self.now = done.state
        if done.is_older_life:
            return supersede(self.now, peer, word.life, self.rules)
        if via == "push":
            self.questions[peer, word.epoch] = word
        return None


def units(amount):
    return tuple(amount.tolist())


def told(progress):
    return progress.learned, progress.mark


def life_facts(life):
    return {"boot": life.boot, "over": life.over, "leaving": life.leaving}


def facts_of(real):
    """A state as the transcription would write it; for proofs there are no words."""
    state = real.now
    return {
        "ledger": state.ledger,
        "boot": state.boot,
        "over": state.over,
        "holding": units(state.holding),
        "minted": units(state.minted),
        "steps": units(state.gradient_steps),
        "clipped": units(state.clipped),
        "owed": units(state.owed),
        "leaving": state.leaving,
        "out": {
            name: {
                "receiver": edge.receiver,
                "epoch": edge.epoch,
                "ledger": edge.ledger,
                "session": edge.session,
                "granted": edge.granted,
                "seq": edge.seq,
                "acked": edge.acked,
                "history": {seq: units(total) for seq, total in edge.totals.items()},
                "their_boot": edge.their_boot,
                "phase": str(edge.phase),
            }
            for name, edge in state.out.items()
        },
        "in": {
            name: {
                "epoch": edge.epoch,
                "session": edge.session,
                "granted": edge.granted,
                "seq": edge.seq,
                "heard": units(edge.heard),
                "closed": edge.closed,
                "told": str(edge.told),
            }
            for name, edge in state.in_.items()
        },
        "settled": {
            name: {"ledger": end.ledger, "seq": end.seq, "total": units(end.total)}
            for name, end in state.settled.items()
        },
        "lives": {peer: life_facts(life) for peer, life in state.lives.items()},
        "former": {
            peer: [life_facts(life) for life in lives] for peer, lives in state.former_lives.items()
        },
        "receipts": [
            (name, {"teller": kept.teller, "seq": kept.seq, "digest": kept.digest})
            for name, kept in state.receipts.items()
        ],
        "progress": told(state.progress),
        "heard progress": {peer: told(it) for peer, it in state.heard_progress.items()},
    }


def facts_of_transcript(transcript):
    now = transcript.now

    def without_proofs(entries):
        return {
            name: {key: value for key, value in entry.items() if key != "proof"}
            for name, entry in entries.items()
        }

    kept = without_proofs(now["receipts"])
    heard = now["heard progress"].items()
    return now | {
        "heard progress": {peer: it for peer, it in heard if it != NOTHING_LEARNED},
        "in": without_proofs(now["in"]),
        "lives": without_proofs(now["lives"]),
        "former": {
            peer: list(without_proofs(dict(enumerate(lives))).values())
            for peer, lives in now["former"].items()
        },
        "receipts": [
            (name, entry | {"digest": digest_of(np.array(entry["digest"]))})
            for name, entry in kept.items()
        ],
    }


def same_word(word, literal, key):
    """Whether a message says what a dictionary says; tags are left to other tests."""
    if type(word).__name__.lower() != literal["kind"]:
        return False
    for name in word.__struct_fields__:
        value = getattr(word, name)
        if name == "tag":
            same = True
        elif name == "digest":
            same = value == digest_of(np.array(literal["digest"]))
        elif name == "progress":
            same = told(value) == literal["progress"]
        elif isinstance(value, Life):
            said = literal[name]
            same = (value.boot, value.over, value.leaving) == (
                said["boot"],
                said["over"],
                said["leaving"],
            )
            if name == "life":
                same = same and value.proof == sign_life(key * 2, value.boot, value.over)
        else:
            same = (units(value) if name == "total" else value) == literal[name]
        if not same:
            return False
    return True


class Comparison:
    """Both networks under one schedule."""

    def __init__(self, seed, num_peers=3, clips=(math.inf, 0.5)):
        self.rng = random.Random(seed)
        self.keys = [bytes([index + 1]) * 32 for index in range(num_peers)]
        self.clip = self.rng.choice(clips)
        self.relays = self.rng.random() < 0.5
        said = set()
        self.real, self.literal, self.backups = {}, {}, defaultdict(list)
        for index, key in enumerate(self.keys):
            states = self.new(100 + index)
            self.real[key] = [Real(key, states[0], self.clip)]
            self.literal[key] = [Transcript(key, said, states[1], self.clip, self.relays)]
            self.backups[key].append(states)
        self.said = said
        self.num_learned = 0
        self.has_accounts = self.rng.random() < 0.7
        self.in_flight = []
        self.kinds, self.seen = Counter(), Counter()
        backups, verdicts = self.rng.choice([0, 0.5]), self.rng.choice([0.2, 1, 5])
        self.weights = {
            self.learn: 6,
            self.push: 10,
            self.commit: 14,
            self.deliver: 30,
            self.quiet: self.rng.choice([0, 1]),
            self.lose: self.rng.choice([0, 4]),
            self.repeat: self.rng.choice([0, 2]),
            self.trust: 3 + verdicts,
            self.distrust: verdicts,
            self.presume_dead: verdicts,
            self.mint: 1,
            self.keep_mass: 2,
            self.leave: 0.5,
            self.stay: 0.4,
            self.heartbeat: 2 + verdicts,
            self.restart: verdicts,
            self.backup: 1,
            self.restore: backups,
            self.lose_disk: 0.1,
            self.copy: self.rng.choice([0, 0.2]),
            self.forge: 0.5,
        }

    def new(self, ledger):
        layout, width = (RELAY, RELAY.width) if self.relays else (Layout(), DIM)
        return PeerState.new(width, ledger, 1, layout), Transcript.nothing(ledger, self.relays)

    def in_good_weather(self):
        return {self.learn, self.push, self.commit, self.deliver, self.trust, self.mint}

    def run(self, num_steps):
        events = self.rng.choices(list(self.weights), list(self.weights.values()), k=num_steps)
        for event in events:
            key = self.rng.choice(self.keys)
            event(key, self.rng.randrange(len(self.real[key])))
            self.compare(event.__name__)

    def compare(self, event):
        for key in self.keys:
            for real, literal in zip(self.real[key], self.literal[key], strict=True):
                assert facts_of(real) == facts_of_transcript(literal), event
                assert real.strikes == literal.strikes == 0, event
                assert real.claims == literal.claims, event
                assert real.clips == literal.clips, event
                assert len(real.waits) == len(literal.waits), event
                assert np.array_equal(real.moves, literal.moves), event
                # The ledger identity, and what no state may be, at every moment.
                state = real.now
                assert units(expected_holding(state)) == units(state.holding), event
                assert state.holding[-1] >= 0, event
                assert state.owed[-1] >= 0, event
                assert state.owed[-1] > 0 or not state.owed.any(), event

    def both(self, key, index):
        return self.real[key][index], self.literal[key][index]

    def sent(self, key, peer, via, word, literal):
        assert same_word(word, literal, key), (word, literal)
        self.in_flight.append((key, peer, via, word, literal))
        self.kinds[literal["kind"]] += 1

    def speak(self, key, index, method, *args):
        real, literal = self.both(key, index)
        words, literals = getattr(real, method)(*args), getattr(literal, method)(*args)
        assert len(words) == len(literals)
        for (peer, via, word), (to, over, said) in zip(words, literals, strict=True):
            assert (peer, via) == (to, over)
            self.sent(key, peer, via, word, said)

    # What can happen.

    def learn(self, key, index):
        # Always downhill, but not out of the radius: so the running totals leave 64 bits.
        real, literal = self.both(key, index)
        *numerator, mass = (*literal.now["holding"][:DIM], literal.now["holding"][-1])
        far = self.rng.random() < 0.05 or max(numerator) < RADIUS * mass // 3
        size = self.rng.choice([2**40, 2**59]) if far else 2**10
        step = [-self.rng.randrange(2**10) * (size >> 10) for _ in range(DIM)]
        if self.relays:  # and a step no longer than they may be, which travels on
            far = LONGEST / math.sqrt(DIM) * ONE
            step += [-round(self.rng.uniform(-far, far)) for _ in range(DIM)] + [-ONE]
        self.num_learned += 1
        progress = (self.num_learned, str(size).encode())
        real.now = replace(real.now, progress=Progress(*progress))
        literal.now["progress"] = progress
        try:
            real.now = descend(real.now, np.array(step) / ONE)
        except OverflowError:
            assert size_of(minus(literal.now["holding"], (*step, 0))) > 2**62
        else:
            literal.learn(step)

    def push(self, key, index):
        shares = {other: self.rng.choice([0.1, 0.3, 0.45]) for other in self.keys if other != key}
        real, literal = self.both(key, index)
        real.now = push(real.now, shares, real.rules)
        literal.push(shares)

    def commit(self, key, index):
        self.speak(key, index, "commit")

    def heartbeat(self, key, index):
        self.speak(key, index, "heartbeat", [other for other in self.keys if other != key])

    def deliver(self, _key, _index):
        if not self.in_flight:
            return
        parcel = self.in_flight.pop(self.rng.randrange(len(self.in_flight)))
        sender, receiver, via, word, said = parcel
        index = self.rng.randrange(len(self.real[receiver]))
        real, literal = self.both(receiver, index)
        allowance = self.allowance()
        told = real.hear(sender, via, word, allowance)
        also = literal.hear(sender, via, said, allowance)
        if told is None or told == "stop":
            assert told == also
        else:
            self.sent(receiver, sender, "reply" if via == "push" else "push", told, also)
        if told == "stop":
            self.seen["stopped"] += 1
            assert len(self.real[receiver]) > 1
            del self.real[receiver][index], self.literal[receiver][index]

    def allowance(self):
        """What a sender did, what of it waits, and how far it may go; None without a limit."""
        if not self.has_accounts or self.rng.random() < 0.5:
            return None
        most = 10.0 ** self.rng.uniform(-3, 6)
        if self.rng.random() < 0.2:
            return np.zeros(DIM), np.zeros(DIM), most
        moved, waits = (
            most / DIM * np.array([self.rng.uniform(-1, 1) for _ in range(DIM)]) for _ in range(2)
        )
        return moved, waits, most

    def quiet(self, _key, _index):
        """For a while, everything arrives at once."""
        for key in self.keys * 2:
            self.speak(key, -1, "commit")
            self.speak(key, -1, "heartbeat", [other for other in self.keys if other != key])
            while self.in_flight:
                self.deliver(key, -1)

    def lose(self, _key, _index):
        if self.in_flight:
            self.in_flight.pop(self.rng.randrange(len(self.in_flight)))

    def repeat(self, _key, _index):
        if self.in_flight:
            self.in_flight.append(self.rng.choice(self.in_flight))

    def trust(self, key, index):
        other = self.rng.choice([other for other in self.keys if other != key])
        epoch = self.rng.getrandbits(40)
        real, literal = self.both(key, index)
        real.now = trust(real.now, other, epoch)
        literal.trust(other, epoch)

    def distrust(self, key, index):
        other = self.rng.choice([other for other in self.keys if other != key])
        real, literal = self.both(key, index)
        real.now = distrust(real.now, other)
        literal.distrust(other)

    def presume_dead(self, key, index):
        real, literal = self.both(key, index)
        if real.now.out:
            name = self.rng.choice(list(real.now.out))
            real.now = presume_dead(real.now, name)
            literal.presume_dead(name)

    def mint(self, key, index):
        real, literal = self.both(key, index)
        if not real.now.has_minted:
            at = [self.rng.randrange(-5, 5) for _ in range(DIM)]
            beside = real.now.dim - DIM
            real.now = mint(real.now, np.array(at + [0] * beside, dtype=float))
            literal.mint([number * ONE for number in at])

    def keep_mass(self, key, index):
        real, literal = self.both(key, index)
        if not real.now.is_sound(RADIUS):
            return
        bounds = self.rng.choice([0.01, 0.5, 1.0]), self.rng.choice([1.0, 1.5])
        before = real.now
        real.now = keep_mass(real.now, bounds)
        literal.keep_mass(*(round(bound * ONE) for bound in bounds))
        self.seen["minted more"] += real.now.minted is not before.minted
        self.seen["burned"] += real.now.clipped is not before.clipped

    def leave(self, key, index):
        real, literal = self.both(key, index)
        real.now = leave(real.now)
        literal.leave()

    def stay(self, key, index):
        real, literal = self.both(key, index)
        real.now = stay(real.now)
        literal.stay()

    def restart(self, key, index):
        real, literal = self.both(key, index)
        self.start(key, index, (real.durable, literal.durable))

    def backup(self, key, index):
        real, literal = self.both(key, index)
        self.backups[key].append((real.durable, deepcopy(literal.durable)))

    def restore(self, key, index):
        self.start(key, index, self.rng.choice(self.backups[key]))

    def lose_disk(self, key, index):
        if len(self.real[key]) == 1:
            ledger = self.rng.getrandbits(60)
            self.backups[key] = [self.new(ledger)]
            self.restore(key, index)

    def copy(self, key, index):
        """A second process with the same key: from a backup, or from what is durable now."""
        if len(self.real[key]) > 2:
            return
        real, literal = self.both(key, index)
        saved = self.rng.choice([(real.durable, literal.durable), *self.backups[key]])
        self.real[key].append(Real(key, saved[0], self.clip))
        copy = Transcript(key, self.said, saved[1], self.clip, self.relays)
        self.literal[key].append(copy)
        self.seen["copied"] += 1
        self.start(key, -1, saved)

    def forge(self, key, _index):
        """Somebody without the key says that a newer life of it runs, over its present one."""
        other = self.rng.choice([other for other in self.keys if other != key])
        boot = self.rng.choice(self.real[key]).now.boot
        newer = {"boot": boot + self.rng.choice([0, 1, 2**30]), "over": boot, "leaving": False}
        word = Superseded(0, Life(2, 0, False, NO_TAG), Life(*newer.values(), NO_TAG))
        said = {"kind": "superseded", "newer": newer | {"proof": None}}
        self.in_flight.append((other, key, "push", word, said))

    def start(self, key, index, saved):
        boot = first_stamp(self.rng.randrange(2**30), self.rng.getrandbits(RANDOM_BITS))
        real, literal = self.both(key, index)
        real.restart(saved[0], boot)
        literal.restart(saved[1], boot)


@given(st.integers(0, 2**32 - 1))
def test_every_transition_is_the_literal_one_integer_by_integer(seed):
    Comparison(seed).run(300)


def test_the_comparison_meets_every_message_every_phase_and_every_rule():
    """Guards against the test above passing vacuously."""
    kinds, phases, seen = Counter(), set(), Counter()
    for seed in range(20):
        comparison = Comparison(seed)
        for _ in range(20):
            comparison.run(30)
            for real in (real for copies in comparison.real.values() for real in copies):
                state = real.now
                phases.update(edge.phase for edge in state.out.values())
                seen["owed"] += state.owed.any()
                seen["retired"] += any(epoch == 0 for _, epoch in state.settled)
                seen["kept"] += bool(state.receipts)
                seen["lifted"] += state.over > 0
                seen.update(f"told {edge.told}" for edge in state.in_.values())
                seen.update(real.waits)
                seen["clipped"] += real.clips > 0
                seen["moved"] += bool(real.moves)
                seen["full"] += state.mass == LIMIT
                seen["relayed"] += comparison.relays and state.in_ != {}
                seen["claims"] += real.claims
                seen["progress"] += bool(state.heard_progress)
        kinds.update(comparison.kinds)
        seen.update(comparison.seen)
    pushes = {"data", "hello", "close"}
    replies = {"ack", "state", "closed", "stale", "gone", "retired"}
    assert kinds.keys() == pushes | replies | {"superseded", "receipt"}
    assert phases == set(OutPhase)
    for what in ("owed", "retired", "kept", "clipped", "claims", "copied", "stopped", "progress"):
        assert seen[what], what
    for what in ("moved", "minted more", "burned", "full", "relayed"):
        assert seen[what], what
    assert seen["told sender"]
    assert seen["told witness"]
    assert TOO_MANY in seen


def test_running_totals_that_no_longer_fit_into_64_bits_agree_too():
    wrapped = 0
    for seed in range(6):
        comparison = Comparison(seed, num_peers=2, clips=[math.inf])
        for event in comparison.weights.keys() - comparison.in_good_weather():
            comparison.weights[event] = 0
        comparison.has_accounts = False
        comparison.run(2500)
        wrapped += any(copies[0].wrapped for copies in comparison.literal.values())
    assert wrapped >= 3
