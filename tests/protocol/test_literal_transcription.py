"""Every transition against a slow, literal transcription of the protocol with unbounded integers.

The transcription keeps dictionaries and lists, and a set of all that a peer ever said instead of
keyed hashes. Both get the same random schedule of learning, pushing, loss, repetition, reordering,
crashes, old backups, revocation, death and leaving, and must agree on every integer and every word.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from copy import deepcopy

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.protocol.audit import expected_holding
from oneway.protocol.fixed_point import ONE
from oneway.protocol.outgoing import answer, remind, report, say
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import RANDOM_BITS, first_stamp
from oneway.protocol.state import OutPhase, PeerState
from oneway.protocol.tags import digest_of
from oneway.protocol.transitions import (
    descend,
    distrust,
    leave,
    mint,
    presume_dead,
    push,
    receive_push,
    receive_reply,
    restart,
    trust,
)

DIM = 2
NOTHING = (0,) * (DIM + 1)
# A radius that lets totals wrap after a few pushes, and a cap that is often reached.
RADIUS, CAP, FLOOR, WINDOW = 2**21, 2, 0.01, 3


# The transcription.


def wrap(number):
    return (number + 2**63) % 2**64 - 2**63


def plus(one, other):
    return tuple(wrap(a + b) for a, b in zip(one, other, strict=True))


def minus(one, other):
    return tuple(wrap(a - b) for a, b in zip(one, other, strict=True))


def later(than, now):
    """A greater stamp with the last 20 bits of `now`; `now` itself if it is greater."""
    return now if now > than and now >> 20 > than >> 20 else ((than >> 20) + 1 << 20) + now % 2**20


class Transcript:
    """One peer. A message is a dictionary; `proof` stands for the sender's tag."""

    def __init__(self, ledger):
        self.said_ever = set()  # as a secret, it survives every restored backup
        self.strikes = 0
        self.wrapped = 0
        self.questions = {}
        self.now, self.durable = self.nothing(ledger), self.nothing(ledger)
        self.backups = [self.durable]

    def nothing(self, ledger):
        return {
            "ledger": ledger,
            "boot": 1,
            "holding": NOTHING,
            "minted": NOTHING,
            "steps": NOTHING,
            "out": {},
            "in": {},
            "settled": {},
            "leaving": False,
        }

    # What the peer does itself.

    def mint(self, at):
        self.now["minted"] = (*at, ONE)
        self.now["holding"] = plus(self.now["holding"], self.now["minted"])

    def learn(self, units):
        self.now["holding"] = minus(self.now["holding"], (*units, 0))
        self.now["steps"] = plus(self.now["steps"], (*units, 0))

    def push(self, shares):
        now = self.now
        able = [
            edge
            for (receiver, _), edge in now["out"].items()
            if edge["phase"] == "open"
            and edge["seq"] - edge["acked"] < WINDOW
            and receiver in shares
        ]
        holding, mass = now["holding"], now["holding"][-1]
        size = max(abs(number) for number in holding[:-1])

        def part_of(share):
            share = min(share, CAP * ONE / max(mass, 1))
            return tuple(math.floor(number * share) for number in holding)

        if now["leaving"]:
            if not able or holding == NOTHING or not 0 <= size <= RADIUS * mass + 2:
                return
            total = sum(shares[edge["receiver"]] for edge in able)
            parts = [part_of(shares[edge["receiver"]] / total) for edge in able]
            rest = holding
            for part in parts:
                rest = minus(rest, part)
            if plus(parts[-1], rest)[-1] <= CAP * ONE:
                parts[-1] = plus(parts[-1], rest)
        elif mass > FLOOR * ONE and size <= RADIUS * mass:
            parts = [part_of(shares[edge["receiver"]]) for edge in able]
        else:
            return
        for edge, part in zip(able, parts, strict=True):
            sent = edge["history"][edge["seq"]]
            edge["history"][edge["seq"] + 1] = plus(sent, part)
            self.wrapped += sent[0] + part[0] != plus(sent, part)[0]
            edge["seq"] += 1
            now["holding"] = minus(now["holding"], part)

    def trust(self, receiver, epoch):
        edges = self.now["out"].values()
        live = [e for e in edges if e["receiver"] == receiver and e["phase"] in ("open", "resync")]
        if not live and not self.now["leaving"]:
            self.now["out"][receiver, epoch] = self.new_edge(receiver, epoch, "resync")

    def new_edge(self, receiver, epoch, phase):
        return {
            "receiver": receiver,
            "epoch": epoch,
            "ledger": 0,
            "session": self.now["boot"],
            "granted": 0,
            "seq": 0,
            "acked": 0,
            "history": {0: NOTHING},
            "their_boot": 0,
            "phase": phase,
        }

    def distrust(self, receiver):
        for name, edge in list(self.now["out"].items()):
            if edge["receiver"] == receiver and edge["phase"] in ("open", "resync"):
                edge["phase"] = "closing"
                if edge["seq"] == 0:
                    del self.now["out"][name]

    def presume_dead(self, name):
        edge = self.now["out"][name]
        if edge["phase"] != "dead":
            unheard = minus(edge["history"][edge["seq"]], edge["history"][edge["acked"]])
            self.now["holding"] = plus(self.now["holding"], unheard)
            edge["phase"] = "dead"

    def leave(self):
        self.now["leaving"] = True
        for edge in self.now["in"].values():
            edge["closed"] = True

    def restart(self, saved, boot):
        self.questions = {}
        self.now = deepcopy(saved)
        self.now["boot"] = later(self.now["boot"], boot)
        for edge in self.now["out"].values():
            if edge["phase"] in ("open", "resync"):
                self.resync(edge)
        self.durable = deepcopy(self.now)

    def resync(self, edge):
        edge["phase"] = "resync"
        edge["session"] = later(edge["session"], self.now["boot"])

    # What it says, from durable state only.

    def commit(self):
        self.durable = deepcopy(self.now)
        words = [
            (edge["receiver"], "push", self.say(edge)) for edge in self.durable["out"].values()
        ]
        for (sender, _), question in self.questions.items():
            words += [(sender, "reply", reply) for reply in self.answer(sender, question)]
        self.questions = {}
        return words

    def heartbeat(self):
        return [
            (sender, "reply", self.report(edge)) for (sender, _), edge in self.durable["in"].items()
        ] + [
            (receiver, "push", self.close(receiver, epoch, end["ledger"], end["seq"], end["total"]))
            for (receiver, epoch), end in self.durable["settled"].items()
        ]

    def prove(self, receiver, epoch, seq, total):
        proof = (self.durable["ledger"], receiver, epoch, seq, total)
        self.said_ever.add(proof)
        return proof

    def say(self, edge):
        receiver, epoch, seq = edge["receiver"], edge["epoch"], edge["seq"]
        head = {"epoch": epoch, "ledger": edge["ledger"]}
        if edge["phase"] == "open":
            return head | {
                "kind": "data",
                "session": edge["session"],
                "granted": edge["granted"],
                "seq": seq,
                "total": edge["history"][seq],
                "proof": self.prove(receiver, epoch, seq, edge["history"][seq]),
            }
        if edge["phase"] == "resync":
            return head | {"kind": "hello", "session": edge["session"]}
        acked = edge["acked"]
        return self.close(receiver, epoch, edge["ledger"], acked, edge["history"][acked])

    def close(self, receiver, epoch, ledger, seq, total):
        return {
            "kind": "close",
            "epoch": epoch,
            "ledger": ledger,
            "seq": seq,
            "total": total,
            "proof": self.prove(receiver, epoch, seq, total),
        }

    def answer(self, sender, question):
        mine = self.durable
        epoch, kind = question["epoch"], question["kind"]
        if question["ledger"] not in (0, mine["ledger"]):
            return [{"kind": "gone", "epoch": epoch, "ledger": question["ledger"]}]
        if kind == "hello":
            edges = [edge for (other, _), edge in mine["in"].items() if other == sender]
            return [self.closed(e) if e["closed"] else self.state(e) for e in edges]
        edge = mine["in"].get((sender, epoch))
        if kind == "data" and not (edge and edge["closed"]):
            known = (edge["session"], edge["granted"]) if edge else (0, 0)
            if (question["session"], question["granted"]) != known:
                return [{"kind": "stale", "epoch": epoch, "boot": mine["boot"]}]
        return [self.report(edge)] if edge else []

    def report(self, edge):
        if edge["closed"]:
            return self.closed(edge)
        return {
            "kind": "ack",
            "epoch": edge["epoch"],
            "seq": edge["seq"],
            "digest": edge["heard"],
            "proof": edge["proof"],
            "boot": self.durable["boot"],
        }

    def closed(self, edge):
        return {
            "kind": "closed",
            "epoch": edge["epoch"],
            "seq": edge["seq"],
            "total": edge["heard"],
            "proof": edge["proof"],
            "boot": self.durable["boot"],
        }

    def state(self, edge):
        more = {"ledger": self.durable["ledger"], "session": edge["session"]}
        return self.closed(edge) | more | {"kind": "state", "granted": edge["granted"]}

    # What it hears.

    def hear_push(self, sender, word):
        self.questions[sender, word["epoch"]] = word
        if word["ledger"] not in (0, self.now["ledger"]):
            return
        name = (sender, word["epoch"])
        unknown = {
            "epoch": word["epoch"],
            "session": 0,
            "granted": 0,
            "seq": 0,
            "heard": NOTHING,
            "proof": None,
            "closed": self.now["leaving"],
        }
        edge = self.now["in"].get(name, unknown)
        if word["kind"] == "hello":
            self.now["in"][name] = edge
            if word["session"] > edge["session"]:
                edge["session"], edge["granted"] = word["session"], self.now["boot"]
        elif word["kind"] == "close":
            if word["seq"] > edge["seq"]:
                self.absorb(edge, word)
            self.now["in"][name] = edge
            edge["closed"] = True
        elif (
            not edge["closed"]
            and (word["session"], word["granted"]) == (edge["session"], edge["granted"])
            and word["seq"] > edge["seq"]
        ):
            self.now["in"][name] = edge
            self.strikes += not self.absorb(edge, word)

    def absorb(self, edge, word):
        *numerator, mass = delta = minus(word["total"], edge["heard"])
        pushes = word["seq"] - edge["seq"]
        most = RADIUS * (mass + mass / ONE + pushes) + 2 * pushes
        size = max(abs(number) for number in numerator)
        if mass < 0 or mass > CAP * ONE * pushes or size > most:
            return False
        edge.update(heard=word["total"], seq=word["seq"], proof=word["proof"])
        self.now["holding"] = plus(self.now["holding"], delta)
        if self.now["minted"] == NOTHING and mass > 0:
            model = [max(-RADIUS, min(RADIUS, float(z) / float(mass))) for z in numerator]
            self.mint([round(number * ONE) for number in model])
        return True

    def hear_reply(self, receiver, word):
        name, kind = (receiver, word["epoch"]), word["kind"]
        edge = self.now["out"].get(name)
        if edge is None:
            self.hear_of_the_past(name, word)
        elif kind == "ack":
            self.hear_ack(edge, word)
        elif kind == "stale":
            self.ask_again(edge)
        elif kind == "gone" and word["ledger"] == edge["ledger"] != 0:
            self.settle(edge, edge["acked"], edge["history"][edge["acked"]], edge["their_boot"])
        elif kind == "state":
            self.hear_state(edge, word)
        elif kind == "closed":
            if edge["history"].get(word["seq"]) == word["total"] or self.believes(receiver, word):
                self.settle(edge, word["seq"], word["total"], word["boot"])
            else:
                self.strikes += 1

    def believes(self, receiver, word):
        total = word.get("total", word.get("digest"))
        if word["seq"] == 0:
            return total == NOTHING
        proof = (self.now["ledger"], receiver, word["epoch"], word["seq"], total)
        return word["proof"] == proof and proof in self.said_ever

    def ask_again(self, edge):
        if edge["phase"] == "open":
            self.resync(edge)

    def hear_ack(self, edge, word):
        seq, acked, history = word["seq"], edge["acked"], edge["history"]
        if edge["phase"] == "resync":
            return
        if word["boot"] < edge["their_boot"]:
            self.ask_again(edge)
        elif history.get(seq) == word["digest"]:
            if edge["phase"] == "dead":  # it had arrived after all
                self.now["holding"] = minus(
                    self.now["holding"], minus(history[seq], history[acked])
                )
            edge.update(acked=seq, their_boot=word["boot"])
            edge["history"] = {number: t for number, t in history.items() if number >= seq}
        elif not (seq < acked and word["boot"] == edge["their_boot"]):
            self.ask_again(edge)

    def hear_state(self, edge, word):
        if edge["phase"] != "resync" or edge["ledger"] not in (0, word["ledger"]):
            return
        if word["session"] > edge["session"]:
            edge["session"] = later(word["session"], self.now["boot"])
        if word["session"] != edge["session"]:
            return
        heard, sent = word["total"], edge["history"][edge["seq"]]
        seq = max(edge["seq"], word["seq"]) + 1
        if edge["history"].get(word["seq"]) == heard:
            history = {n: t for n, t in edge["history"].items() if n >= word["seq"]} | {seq: sent}
            edge.update(acked=word["seq"], history=history)
        elif self.believes(edge["receiver"], word):
            self.now["holding"] = minus(self.now["holding"], minus(heard, sent))
            edge.update(acked=seq, history={seq: heard})
        else:
            self.strikes += 1
            return
        edge.update(
            seq=seq,
            phase="open",
            ledger=word["ledger"],
            granted=word["granted"],
            their_boot=word["boot"],
        )

    def settle(self, edge, seq, heard, boot):
        counted = edge["history"][edge["acked" if edge["phase"] == "dead" else "seq"]]
        self.now["holding"] = plus(self.now["holding"], minus(counted, heard))
        name = (edge["receiver"], edge["epoch"])
        del self.now["out"][name]
        end = {"ledger": edge["ledger"], "seq": seq, "total": heard, "their_boot": boot}
        self.now["settled"][name] = end

    def hear_of_the_past(self, name, word):
        kind, end = word["kind"], self.now["settled"].get(name)
        if end is not None:
            if kind != "closed":
                return
            if not self.believes(name[0], word):
                self.strikes += 1
            elif word["seq"] > end["seq"] or word["boot"] > end["their_boot"]:
                returned = minus(end["total"], word["total"])
                self.now["holding"] = plus(self.now["holding"], returned)
                boot = max(word["boot"], end["their_boot"])
                end.update(seq=word["seq"], total=word["total"], their_boot=boot)
        elif kind in ("ack", "state", "closed") and word["seq"] and self.believes(name[0], word):
            self.now["out"][name] = self.new_edge(*name, "closing")


# The implementation, in the same terms.


class Real:
    """One peer of `oneway.protocol`, driven as the transcription is."""

    def __init__(self, key, ledger):
        self.rules = Rules(
            secret=key * 2, window=WINDOW, mass_cap=CAP, radius=RADIUS, mass_floor=FLOOR
        )
        self.strikes = 0
        self.questions = {}
        self.now = self.durable = PeerState.new(DIM, ledger, 1)
        self.backups = [self.durable]

    def commit(self):
        self.durable = self.now
        words = [
            (edge.receiver, "push", say(self.durable, edge, self.rules))
            for edge in self.durable.out.values()
        ]
        for (sender, _), question in self.questions.items():
            words += [(sender, "reply", r) for r in answer(self.durable, sender, question)]
        self.questions = {}
        return words

    def heartbeat(self):
        return [
            (edge.sender, "reply", report(self.durable, edge)) for edge in self.durable.in_.values()
        ] + [
            (end.receiver, "push", remind(self.durable, end, self.rules))
            for end in self.durable.settled.values()
        ]

    def restart(self, saved, boot):
        self.questions = {}
        self.now = self.durable = restart(saved, boot)

    def hear(self, peer, via, word):
        if via == "push":
            self.questions[peer, word.epoch] = word
        done = (receive_push if via == "push" else receive_reply)(self.now, peer, word, self.rules)
        self.strikes += done.strike is not None
        self.now = done.state


def units(amount):
    return tuple(amount.tolist())


def facts_of(real):
    """A state as the transcription would write it."""
    state = real.now
    return {
        "ledger": state.ledger,
        "boot": state.boot,
        "holding": units(state.holding),
        "minted": units(state.minted),
        "steps": units(state.gradient_steps),
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
            }
            for name, edge in state.in_.items()
        },
        "settled": {
            name: {
                "ledger": end.ledger,
                "seq": end.seq,
                "total": units(end.total),
                "their_boot": end.their_boot,
            }
            for name, end in state.settled.items()
        },
    }


def facts_of_transcript(transcript):
    inward = {
        name: {key: value for key, value in edge.items() if key != "proof"}
        for name, edge in transcript.now["in"].items()
    }
    return transcript.now | {"in": inward}


def same_word(word, literal):
    """Whether a message says what a dictionary says; tags and digests are left to other tests."""
    if type(word).__name__.lower() != literal["kind"]:
        return False
    for name in word.__struct_fields__:
        if name == "tag":
            continue
        value = getattr(word, name)
        if name == "digest":
            if value != digest_of(np.array(literal["digest"])):
                return False
        elif (units(value) if name == "total" else value) != literal[name]:
            return False
    return True


class Comparison:
    """Both networks under one schedule."""

    def __init__(self, seed, num_peers=3):
        self.rng = random.Random(seed)
        self.keys = [bytes([index + 1]) * 32 for index in range(num_peers)]
        self.real = {key: Real(key, 100 + index) for index, key in enumerate(self.keys)}
        self.literal = {key: Transcript(100 + index) for index, key in enumerate(self.keys)}
        self.in_flight = []
        self.kinds = Counter()
        backups, verdicts = self.rng.choice([0, 0.5]), self.rng.choice([0.2, 1])
        self.weights = {
            self.learn: 6,
            self.push: 10,
            self.commit: 14,
            self.deliver: 30,
            self.lose: self.rng.choice([0, 4]),
            self.repeat: self.rng.choice([0, 2]),
            self.trust: 3,
            self.distrust: verdicts,
            self.presume_dead: verdicts,
            self.mint: 1,
            self.leave: 0.05,
            self.heartbeat: 2,
            self.restart: verdicts,
            self.backup: 1,
            self.restore: backups,
            self.lose_disk: 0.1,
        }

    def in_good_weather(self):
        return {self.learn, self.push, self.commit, self.deliver, self.trust, self.mint}

    def run(self, num_steps):
        events = self.rng.choices(list(self.weights), list(self.weights.values()), k=num_steps)
        for event in events:
            event(self.rng.choice(self.keys))
            self.compare(event.__name__)

    def compare(self, event):
        for key in self.keys:
            real, literal = self.real[key], self.literal[key]
            assert facts_of(real) == facts_of_transcript(literal), event
            assert real.strikes == literal.strikes == 0, event
            # The ledger identity, at every moment.
            assert units(expected_holding(real.now)) == units(real.now.holding), event

    def speak(self, key, method):
        words = getattr(self.real[key], method)()
        literals = getattr(self.literal[key], method)()
        assert len(words) == len(literals)
        for (peer, via, word), (to, over, literal) in zip(words, literals, strict=True):
            assert (peer, via) == (to, over)
            assert same_word(word, literal), (word, literal)
            self.in_flight.append((key, peer, via, word, literal))
            self.kinds[literal["kind"]] += 1

    # What can happen.

    def learn(self, key):
        # Always downhill, but not out of the radius: so the running totals leave 64 bits.
        *numerator, mass = self.literal[key].now["holding"]
        far = self.rng.random() < 0.05 or max(numerator) < RADIUS * mass // 3
        size = self.rng.choice([2**40, 2**60]) if far else 2**10
        step = [-self.rng.randrange(2**10) * (size >> 10) for _ in range(DIM)]
        self.real[key].now = descend(self.real[key].now, np.array(step) / ONE)
        self.literal[key].learn(step)

    def push(self, key):
        shares = {other: self.rng.choice([0.1, 0.3, 0.45]) for other in self.keys if other != key}
        real = self.real[key]
        real.now = push(real.now, shares, real.rules)
        self.literal[key].push(shares)

    def commit(self, key):
        self.speak(key, "commit")

    def heartbeat(self, key):
        self.speak(key, "heartbeat")

    def deliver(self, _key):
        if self.in_flight:
            parcel = self.in_flight.pop(self.rng.randrange(len(self.in_flight)))
            sender, receiver, via, word, literal = parcel
            self.real[receiver].hear(sender, via, word)
            hear = self.literal[receiver]
            (hear.hear_push if via == "push" else hear.hear_reply)(sender, literal)

    def lose(self, _key):
        if self.in_flight:
            self.in_flight.pop(self.rng.randrange(len(self.in_flight)))

    def repeat(self, _key):
        if self.in_flight:
            self.in_flight.append(self.rng.choice(self.in_flight))

    def trust(self, key):
        other = self.rng.choice([other for other in self.keys if other != key])
        epoch = self.rng.getrandbits(60)
        self.real[key].now = trust(self.real[key].now, other, epoch)
        self.literal[key].trust(other, epoch)

    def distrust(self, key):
        other = self.rng.choice([other for other in self.keys if other != key])
        self.real[key].now = distrust(self.real[key].now, other)
        self.literal[key].distrust(other)

    def presume_dead(self, key):
        if self.real[key].now.out:
            name = self.rng.choice(list(self.real[key].now.out))
            self.real[key].now = presume_dead(self.real[key].now, name)
            self.literal[key].presume_dead(name)

    def mint(self, key):
        if not self.real[key].now.has_minted:
            at = [self.rng.randrange(-5, 5) for _ in range(DIM)]
            self.real[key].now = mint(self.real[key].now, np.array(at, dtype=float))
            self.literal[key].mint([number * ONE for number in at])

    def leave(self, key):
        self.real[key].now = leave(self.real[key].now)
        self.literal[key].leave()

    def restart(self, key):
        self.start(key, self.real[key].durable, self.literal[key].durable)

    def backup(self, key):
        self.real[key].backups.append(self.real[key].durable)
        self.literal[key].backups.append(self.literal[key].durable)

    def restore(self, key):
        index = self.rng.randrange(len(self.real[key].backups))
        self.start(key, self.real[key].backups[index], self.literal[key].backups[index])

    def lose_disk(self, key):
        ledger = self.rng.getrandbits(60)
        self.real[key].backups = [PeerState.new(DIM, ledger, 1)]
        self.literal[key].backups = [self.literal[key].nothing(ledger)]
        self.restore(key)

    def start(self, key, real, literal):
        boot = first_stamp(self.rng.randrange(2**30), self.rng.getrandbits(RANDOM_BITS))
        self.real[key].restart(real, boot)
        self.literal[key].restart(literal, boot)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_every_transition_is_the_literal_one_integer_by_integer(seed):
    Comparison(seed).run(300)


def test_the_comparison_meets_every_message_and_every_phase():
    """So that the test above is not true of nothing."""
    kinds, phases = Counter(), set()
    for seed in range(12):
        comparison = Comparison(seed)
        for _ in range(20):
            comparison.run(30)
            for real in comparison.real.values():
                phases.update(edge.phase for edge in real.now.out.values())
        kinds.update(comparison.kinds)
    assert kinds.keys() == {"data", "hello", "close", "ack", "state", "closed", "stale", "gone"}
    assert phases == set(OutPhase)


def test_running_totals_that_no_longer_fit_into_64_bits_agree_too():
    wrapped = 0
    for seed in range(6):
        comparison = Comparison(seed, num_peers=2)
        for event in comparison.weights.keys() - comparison.in_good_weather():
            comparison.weights[event] = 0
        comparison.run(800)
        wrapped += sum(literal.wrapped for literal in comparison.literal.values())
    assert wrapped >= 3
