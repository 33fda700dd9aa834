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
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.protocol.audit import expected_holding
from oneway.protocol.compact import FORMATS
from oneway.protocol.fixed_point import ONE
from oneway.protocol.incoming import mint
from oneway.protocol.lives import is_copied, lifted
from oneway.protocol.messages import Life, Progress, Receipt, Superseded
from oneway.protocol.outgoing import answer, receipts, remind, report, say, supersede
from oneway.protocol.replies import receive_receipt, receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import RANDOM_BITS, first_stamp
from oneway.protocol.state import OutPhase, PeerState
from oneway.protocol.tags import NO_TAG, digest_of, sign_life
from oneway.protocol.transitions import (
    descend,
    distrust,
    leave,
    presume_dead,
    push,
    receive_push,
    restart,
    stay,
    trust,
    write_off,
)
from oneway.testing.records import replace

DIM = 2
NOTHING = (0,) * (DIM + 1)
NOTHING_LEARNED = (0, b"")
# A radius that lets totals wrap after some pushes, a cap and a limit that are often reached.
RADIUS, CAP, FLOOR, WINDOW, LIMIT, MOST_EDGES = 2**20, 1, 0.01, 3, 2, 1


# The transcription.


def wrap(number):
    return (number + 2**63) % 2**64 - 2**63


def plus(one, other):
    return tuple(wrap(a + b) for a, b in zip(one, other, strict=True))


def minus(one, other):
    return tuple(wrap(a - b) for a, b in zip(one, other, strict=True))


def size_of(numbers):
    return max(abs(number) for number in numbers)


def later(than, now):
    """A greater stamp with the last 20 bits of `now`; `now` itself if it is greater."""
    return now if now > than and now >> 20 > than >> 20 else ((than >> 20) + 1 << 20) + now % 2**20


class Transcript:
    """One peer. A message is a dictionary; `proof` stands for a tag of the key it is a proof to."""

    def __init__(self, key, said, state, clip):
        self.key = key
        self.said = said  # by every key: as a secret, it survives every restored backup
        self.clip = clip
        self.strikes = self.claims = self.wrapped = 0
        self.clips = 0.0
        self.waits = []
        self.questions = {}
        self.now, self.durable = deepcopy(state), deepcopy(state)

    @staticmethod
    def nothing(ledger):
        return {
            "ledger": ledger,
            "boot": 1,
            "over": 0,
            "holding": NOTHING,
            "minted": NOTHING,
            "steps": NOTHING,
            "clipped": NOTHING,
            "owed": NOTHING,
            "out": {},
            "in": {},
            "settled": {},
            "lives": {},
            "former": {},
            "receipts": {},
            "leaving": False,
            "progress": NOTHING_LEARNED,
            "heard progress": {},
        }

    # The books.

    def pay(self, most):
        """Give back of what is owed, at the model that is owed, no more mass than this."""
        owed = self.now["owed"]
        if owed[-1] == 0:
            return
        part = owed
        if most < owed[-1]:
            part = (*(math.floor(units * (most / owed[-1])) for units in owed[:-1]), most)
        self.now["holding"] = minus(self.now["holding"], part)
        self.now["owed"] = minus(owed, part)

    def gain(self, amount):
        """What comes back pays half for debts; of what is lost, half of what is held at most."""
        held = self.now["holding"][-1]
        if amount[-1] < 0 and -amount[-1] > held // 2:
            self.now["owed"] = minus(self.now["owed"], amount)
            self.pay(max(held, 0) // 2)
            return
        self.now["holding"] = plus(self.now["holding"], amount)
        if amount[-1] >= 0:
            self.pay(amount[-1] // 2)

    def counted(self, edge):
        """What the ledger takes for handed over: of the dead only what they acknowledged."""
        return edge["history"][edge["acked" if edge["phase"] == "dead" else "seq"]]

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
            and shares.get(receiver, 0) > 0
        ]
        if now["leaving"] and now["owed"][-1] > now["holding"][-1]:
            now["owed"], now["holding"] = minus(now["owed"], now["holding"]), NOTHING
        elif now["leaving"]:
            self.pay(now["holding"][-1])
        holding, mass = now["holding"], now["holding"][-1]
        size, parts = size_of(holding[:-1]), []

        def flying(edge):
            return edge["history"][edge["seq"]][-1] - edge["history"][edge["acked"]][-1]

        def room(edge):
            """No more is ever under way to a receiver than one push may carry."""
            return CAP * ONE - flying(edge)

        def part_of(share, edge):
            share = min(share, room(edge) / max(mass, 1))
            return tuple(math.floor(number * share) for number in holding)

        if now["leaving"]:
            able = [edge for edge in able if room(edge) >= CAP * ONE / 16]
            if not able or holding == NOTHING or mass < 0 or size > RADIUS * mass + 2:
                return
            total = sum(shares[edge["receiver"]] for edge in able)
            parts = [(edge, part_of(shares[edge["receiver"]] / total, edge)) for edge in able]
            rest = holding
            for _, part in parts:
                rest = minus(rest, part)
            last, part = parts[-1]
            if plus(part, rest)[-1] <= room(last):
                parts[-1] = (last, plus(part, rest))
        elif mass > FLOOR * ONE and size <= RADIUS * mass:
            for edge in able:
                share, fraction = shares[edge["receiver"]], shares[edge["receiver"]]
                if flying(edge) > 0:  # so that flying + part = share * (holding + flying)
                    fraction = share - (1 - share) * flying(edge) / mass
                if fraction >= share / 16 and room(edge) >= CAP * ONE / 16:
                    parts.append((edge, part_of(fraction, edge)))
        for edge, part in parts:
            sent = edge["history"][edge["seq"]]
            edge["history"][edge["seq"] + 1] = plus(sent, part)
            self.wrapped += tuple(map(sum, zip(sent, part, strict=True))) != plus(sent, part)
            edge["seq"] += 1
            now["holding"] = minus(now["holding"], part)

    def trust(self, receiver, epoch):
        edges = self.now["out"].values()
        live = [e for e in edges if e["receiver"] == receiver and e["phase"] in ("open", "resync")]
        if live or (self.now["leaving"] and not any(self.now["holding"])):
            return
        names = [*self.now["out"], *self.now["settled"]]
        last = max((number for to, number in names if to == receiver), default=0)
        last = max(last, self.now["settled"].get((receiver, 0), {"seq": 0})["seq"])
        epoch = epoch if epoch > last else later(last, epoch)
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
        before = self.counted(edge)
        edge["phase"] = "dead"
        self.gain(minus(before, self.counted(edge)))

    def leave(self):
        self.now["leaving"] = True
        for edge in self.now["in"].values():
            edge["closed"] = True

    def stay(self):
        self.now["leaving"] = False

    def write_off(self):
        self.now["clipped"] = plus(self.now["clipped"], self.now["holding"])
        self.now["holding"] = NOTHING

    def restart(self, saved, boot):
        self.questions = {}
        self.now = deepcopy(saved)
        self.now["over"] = 0
        self.now["boot"] = later(self.now["boot"], boot)
        for edge in self.now["out"].values():
            if edge["phase"] in ("open", "resync"):
                self.resync(edge)
        self.durable = deepcopy(self.now)

    def resync(self, edge):
        edge["phase"] = "resync"
        edge["session"] = later(edge["session"], self.now["boot"])

    # What it says, from durable state only.

    def life(self):
        mine = self.durable
        life = {"boot": mine["boot"], "over": mine["over"], "leaving": mine["leaving"]}
        self.said.add((self.key, mine["boot"], mine["over"]))
        return life | {"proof": (self.key, mine["boot"], mine["over"])}

    def word(self, kind, epoch, **more):
        return {"kind": kind, "epoch": epoch, "life": self.life()} | more

    def commit(self):
        self.durable = deepcopy(self.now)
        words = [
            (edge["receiver"], "push", self.say(edge)) for edge in self.durable["out"].values()
        ]
        for (sender, _), question in self.questions.items():
            words += [(sender, "reply", reply) for reply in self.answer(sender, question)]
        self.questions = {}
        return words

    def heartbeat(self, neighbours):
        words = [
            (sender, "reply", self.report(sender, edge))
            for (sender, epoch), edge in self.durable["in"].items()
            if epoch
        ]
        for (receiver, epoch), end in self.durable["settled"].items():
            if epoch:
                close = self.close(receiver, epoch, end["ledger"], end["seq"], end["total"])
                words.append((receiver, "push", close))
        for receipt in self.receipts():
            words += [(neighbour, "push", receipt) for neighbour in neighbours]
        return words

    def receipts(self):
        """Of a leaver: for senders of which neither they nor a witness are known to know."""
        mine = self.durable
        told = []
        if mine["leaving"]:
            told += [
                self.receipt(self.key, sender, epoch, edge["seq"], edge["heard"], edge["proof"])
                for (sender, epoch), edge in mine["in"].items()
                if edge["seq"] and edge["closed"] and edge["told"] == "nobody"
            ]
        for (receiver, sender, epoch), kept in mine["receipts"].items():
            words = (kept["seq"], kept["digest"], kept["proof"])
            told.append(self.receipt(receiver, sender, epoch, *words))
        return told

    def receipt(self, receiver, sender, epoch, seq, digest, proof):
        more = {"receiver": receiver, "sender": sender, "seq": seq, "digest": digest}
        return self.word("receipt", epoch, **more, proof=proof)

    def prove(self, receiver, epoch, seq, total):
        proof = (self.key, self.durable["ledger"], receiver, epoch, seq, total)
        self.said.add(proof)
        return proof

    def say(self, edge):
        receiver, epoch, seq, acked = (edge[k] for k in ("receiver", "epoch", "seq", "acked"))
        if edge["phase"] == "open":
            return self.word(
                "data",
                epoch,
                ledger=edge["ledger"],
                session=edge["session"],
                granted=edge["granted"],
                seq=seq,
                total=edge["history"][seq],
                proof=self.prove(receiver, epoch, seq, edge["history"][seq]),
                progress=self.durable["progress"],
            )
        if edge["phase"] == "resync":
            return self.word("hello", epoch, ledger=edge["ledger"], session=edge["session"])
        return self.close(receiver, epoch, edge["ledger"], acked, edge["history"][acked])

    def close(self, receiver, epoch, ledger, seq, total):
        proof = self.prove(receiver, epoch, seq, total)
        more = {"proof": proof, "progress": self.durable["progress"]}
        return self.word("close", epoch, ledger=ledger, seq=seq, total=total, **more)

    def answer(self, sender, question):
        mine, epoch, kind = self.durable, question["epoch"], question["kind"]
        told = {"progress": self.progress_of(sender)}
        if question["ledger"] not in (0, mine["ledger"]):
            return [self.word("gone", epoch, ledger=question["ledger"], **told)]
        if self.has_retired(mine["in"], (sender, epoch)):
            return [self.word("retired", epoch, until=mine["in"][sender, 0]["seq"], **told)]
        edge, replies = mine["in"].get((sender, epoch)), []
        if kind == "hello":
            replies = [
                self.ack(other)
                for (peer, number), other in mine["in"].items()
                if peer == sender and number not in (0, epoch)
            ]
        if edge is None:
            if kind == "data":
                replies.append(self.word("stale", epoch))
            if kind == "close" and question["seq"] == 0:
                nothing = {"seq": 0, "total": NOTHING, "proof": None}
                replies.append(self.word("closed", epoch, **nothing, **told))
        elif edge["closed"]:
            replies.append(self.closed(sender, edge))
        elif kind == "hello":
            more = {name: edge[name] for name in ("session", "granted", "seq", "proof")}
            state = {"ledger": mine["ledger"], "total": edge["heard"], "takes": FORMATS}
            replies.append(self.word("state", epoch, **more, **state, **told))
        elif kind == "data" and (question["session"], question["granted"]) != (
            edge["session"],
            edge["granted"],
        ):
            replies.append(self.word("stale", epoch))
        else:
            replies.append(self.report(sender, edge))
        return replies

    def report(self, sender, edge):
        ended = edge["closed"] and edge["told"] != "sender"
        return self.closed(sender, edge) if ended else self.ack(edge)

    def ack(self, edge):
        more = {"seq": edge["seq"], "digest": edge["heard"], "proof": edge["proof"]}
        return self.word("ack", edge["epoch"], **more)

    def closed(self, sender, edge):
        more = {"seq": edge["seq"], "total": edge["heard"], "proof": edge["proof"]}
        return self.word("closed", edge["epoch"], **more, progress=self.progress_of(sender))

    def progress_of(self, sender):
        return self.durable["heard progress"].get(sender, NOTHING_LEARNED)

    # What it hears.

    def hear(self, peer, via, word, allowance):
        """Returns what to say at once, if anything."""
        if word["kind"] == "superseded":
            return self.hear_of_a_newer_life(word["newer"])
        if word["kind"] == "receipt":
            return self.hear_receipt(peer, word)
        if word["kind"] in ("data", "close"):  # it was seen, whatever else comes of it
            heard = self.now["heard progress"]
            heard[peer] = max(heard.get(peer, NOTHING_LEARNED), word["progress"])
        life, known = word["life"], self.now["lives"].get(peer)
        if known is not None and life["boot"] < known["boot"]:
            # A newer life of its key has spoken.
            over_it = [
                former
                for former in self.now["former"].get(peer, [])
                if former["over"] == life["boot"]
            ]
            newest = self.word("superseded", 0, newer=[*over_it, known][0])
            newest["life"] = self.life_now()
            return newest
        if known is not None and life["boot"] > known["boot"]:
            self.now["former"][peer] = [known, *self.now["former"].get(peer, [])][:8]
        if known is None or life["boot"] > known["boot"] or life["leaving"] != known["leaving"]:
            self.now["lives"][peer] = life
        if via == "push":
            self.questions[peer, word["epoch"]] = word
            self.hear_push(peer, word, allowance)
        else:
            self.hear_reply(peer, word)
        return None

    def life_now(self):
        durable, self.durable = self.durable, self.now
        life, self.durable = self.life(), durable
        return life

    def hear_of_a_newer_life(self, newer):
        if newer["boot"] <= self.now["boot"] or newer["proof"] not in self.said:
            return None
        if newer["proof"] != (self.key, newer["boot"], newer["over"]):
            return None
        if newer["over"] == self.now["boot"]:
            return "stop"
        self.now["boot"] = later(newer["boot"], self.now["boot"])
        self.now["over"] = newer["boot"]
        return None

    def has_retired(self, ends, name):
        retired = ends.get((name[0], 0))
        return retired is not None and name[1] <= retired["seq"] and name not in ends

    def hear_push(self, sender, word, allowance):
        name, kind, edges = (sender, word["epoch"]), word["kind"], self.now["in"]
        if word["ledger"] not in (0, self.now["ledger"]):
            return
        if word["epoch"] == 0 or self.has_retired(edges, name):
            return
        if name not in edges:
            if kind == "close" and word["seq"] == 0:
                return
            for other, edge in list(edges.items()):
                if other[0] == sender and edge["seq"] == 0 and other[1] < word["epoch"]:
                    del edges[other]
            known = [edge for (peer, _), edge in edges.items() if peer == sender]
            unended = [edge for edge in known if edge["told"] != "sender"]
            if len(unended) >= MOST_EDGES or len(known) > 2 * MOST_EDGES:
                self.waits.append("edges")
                return
        edge = edges.get(name) or {
            "epoch": word["epoch"],
            "session": 0,
            "granted": 0,
            "seq": 0,
            "heard": NOTHING,
            "proof": None,
            "closed": self.now["leaving"],
            "told": "nobody",
        }
        if kind == "hello":
            edges[name] = edge
            if word["session"] > edge["session"]:
                edge["session"], edge["granted"] = word["session"], self.now["boot"]
        elif kind == "close":
            if word["seq"] > edge["seq"] and self.absorb(edge, word, allowance) == "waits":
                return
            edges[name] = edge
            edge["closed"] = True
            if (word["seq"], word["total"]) == (edge["seq"], edge["heard"]):
                edge["told"] = "sender"
            self.retire(sender)
        elif (
            not edge["closed"]
            and (word["session"], word["granted"]) == (edge["session"], edge["granted"])
            and word["seq"] > edge["seq"]
        ):
            edges[name] = edge
            self.strikes += self.absorb(edge, word, allowance) == "refused"

    def retire(self, sender):
        """Add up the oldest edges of which both know the end, down to so many, without a gap."""
        edges = self.now["in"]
        while True:
            names = sorted(name for name in edges if name[0] == sender and name[1])
            told = [name for name in names if edges[name]["told"] == "sender"]
            if len(told) <= MOST_EDGES:
                return
            if names[0] != told[0] and len(names) < 2 * MOST_EDGES:
                return  # there is an older one, of which its sender may still have to hear
            oldest = edges.pop(told[0])
            sum_ = edges.get((sender, 0), {"heard": NOTHING})["heard"]
            edges[sender, 0] = {
                "epoch": 0,
                "session": 0,
                "granted": 0,
                "seq": oldest["epoch"],
                "heard": plus(sum_, oldest["heard"]),
                "proof": None,
                "closed": True,
                "told": "sender",
            }

    def absorb(self, edge, word, allowance):
        *numerator, mass = delta = minus(word["total"], edge["heard"])
        pushes = min(word["seq"] - edge["seq"], 64)
        most = RADIUS * (mass + mass / ONE + pushes) + 2 * pushes
        if mass < 0 or size_of(numerator) > most:
            return "refused"
        now = self.now
        owed, held = now["owed"][-1], now["holding"][-1]
        too_fast = allowance is not None and mass - owed > allowance
        if too_fast or (mass > 0 and held + mass - owed > LIMIT * ONE):
            self.waits.append("too fast" if too_fast else "full")
            return "waits"
        excess, distance = self.beyond_the_clip(numerator, mass)
        kept = minus(delta, excess)
        if size_of(now["holding"]) + size_of(kept) > 2**62:
            self.waits.append("full")
            return "waits"
        self.clips += distance
        edge.update(heard=word["total"], seq=word["seq"], proof=word["proof"])
        now["clipped"] = plus(now["clipped"], excess)
        now["holding"] = plus(now["holding"], kept)
        held = now["holding"][-1]
        self.pay(max(0, min(mass // 2, held - ONE // 2), held - ONE))
        if now["minted"] == NOTHING and mass > 0:
            model = [max(-RADIUS, min(RADIUS, float(z) / float(mass))) for z in kept[:-1]]
            self.mint([round(number * ONE) for number in model])
        return "absorbed"

    def beyond_the_clip(self, numerator, mass):
        """What of a numerator is dropped, so that its model is near one's own, or near zero."""
        if math.isinf(self.clip):
            return NOTHING, 0.0
        if mass == 0:
            return (*numerator, 0), 0.0  # without mass there is no model to be near
        own, held = [0.0] * DIM, self.now["holding"]
        if held[-1] > 0:
            own = [max(-RADIUS, min(RADIUS, float(z) / float(held[-1]))) for z in held[:-1]]
        model = [float(z) / float(mass) for z in numerator]
        away = [theirs - mine for theirs, mine in zip(model, own, strict=True)]
        distance = float(np.linalg.norm(away))
        limit = self.clip * (1.0 + float(np.linalg.norm(own)))
        if distance <= limit:
            return NOTHING, 0.0
        moved = [mine + way * (limit / distance) for mine, way in zip(own, away, strict=True)]
        excess = [
            round((z / ONE - x * (mass / ONE)) * ONE) for z, x in zip(numerator, moved, strict=True)
        ]
        return (*excess, 0), distance - limit

    def hear_reply(self, receiver, word):
        name, kind = (receiver, word["epoch"]), word["kind"]
        edge = self.now["out"].get(name)
        if edge is None:
            self.hear_of_the_past(name, word)
            return
        acked, history = edge["acked"], edge["history"]
        if kind == "ack":
            self.hear_ack(edge, word)
        elif kind == "stale":
            self.ask_again(edge)
        elif kind == "gone" and word["ledger"] == edge["ledger"] != 0:
            self.settle(edge, acked, history[acked])
        elif kind == "retired":
            self.settle(edge, acked, history[acked])
            self.retire_settled(name, edge["ledger"], history[acked], word["until"])
        elif kind == "state":
            self.hear_state(edge, word)
        elif kind == "closed":
            if history.get(word["seq"]) == word["total"]:
                self.settle(edge, word["seq"], word["total"])
            elif not self.believes(receiver, word):
                self.strikes += 1
            else:
                self.claims += 1
                if self.could_follow(word["total"], history[acked], acked - word["seq"]):
                    self.settle(edge, acked, history[acked])
                else:
                    self.settle(edge, word["seq"], word["total"])

    def believes(self, receiver, word):
        total = word.get("total", word.get("digest"))
        if word["seq"] == 0:
            return total == NOTHING
        proof = (self.key, self.now["ledger"], receiver, word["epoch"], word["seq"], total)
        return word["proof"] == proof and proof in self.said

    def could_follow(self, claimed, known, pushes):
        """Whether an honest sender gets from one total to the other in so many pushes."""
        *numerator, mass = minus(known, claimed)
        most = RADIUS * (mass + mass / ONE + min(pushes, 64)) + 2 * min(pushes, 64)
        return pushes > 0 and mass >= 0 and size_of(numerator) <= most

    def ask_again(self, edge):
        if edge["phase"] == "open":
            self.resync(edge)

    def hear_ack(self, edge, word):
        seq, acked, history = word["seq"], edge["acked"], edge["history"]
        if edge["phase"] == "resync":
            return
        if history.get(seq) == word["digest"]:
            before = self.counted(edge)
            edge.update(acked=seq, their_boot=word["life"]["boot"])
            edge["history"] = {number: t for number, t in history.items() if number >= seq}
            if edge["phase"] == "dead":  # it had arrived after all
                self.gain(minus(before, self.counted(edge)))
        elif not (seq < acked and word["life"]["boot"] == edge["their_boot"]):
            self.ask_again(edge)

    def hear_state(self, edge, word):
        if edge["phase"] != "resync" or edge["ledger"] not in (0, word["ledger"]):
            return
        if word["session"] > edge["session"]:
            edge["session"] = later(word["session"], self.now["boot"])
            return
        if word["session"] != edge["session"]:
            return
        history, acked = edge["history"], edge["acked"]
        heard, sent, confirmed = word["total"], history[edge["seq"]], history[acked]
        seq, lost = max(edge["seq"], word["seq"]) + 1, NOTHING
        if history.get(word["seq"]) == heard:
            history = {n: t for n, t in history.items() if n >= word["seq"]} | {seq: sent}
            edge.update(acked=word["seq"], history=history)
        elif not self.believes(edge["receiver"], word):
            self.strikes += 1
            return
        elif self.could_follow(heard, sent, seq - word["seq"]):
            self.claims += 1
            # It gets the rest again; what it had acknowledged before stays acknowledged.
            edge.update(acked=word["seq"])
            if heard[-1] < confirmed[-1]:
                heard, edge["acked"] = confirmed, max(acked, word["seq"] + 1)
            seq = max(seq, edge["acked"] + 1)
            edge["history"] = {edge["acked"]: heard, seq: sent}
        else:
            self.claims += 1
            lost = minus(heard, sent)
            edge.update(acked=seq, history={seq: heard})
        edge.update(
            seq=seq,
            phase="open",
            ledger=word["ledger"],
            granted=word["granted"],
            their_boot=word["life"]["boot"],
        )
        self.gain(minus(NOTHING, lost))

    def settle(self, edge, seq, heard):
        name = (edge["receiver"], edge["epoch"])
        del self.now["out"][name]
        if seq:
            self.now["settled"][name] = {"ledger": edge["ledger"], "seq": seq, "total": heard}
        self.gain(minus(self.counted(edge), heard))

    def retire_settled(self, name, ledger, total, until):
        settled = self.now["settled"]
        settled.pop(name, None)
        before = settled.get((name[0], 0), {"total": NOTHING, "seq": 0})
        settled[name[0], 0] = {
            "ledger": ledger,
            "seq": max(until, name[1], before["seq"]),
            "total": plus(before["total"], total),
        }

    def hear_of_the_past(self, name, word):
        kind, end = word["kind"], self.now["settled"].get(name)
        if name[1] == 0 or self.has_retired(self.now["settled"], name):
            return
        if end is None:
            if kind in ("ack", "state", "closed") and word["seq"] and self.believes(name[0], word):
                self.claims += 1
                self.now["out"][name] = self.new_edge(*name, "closing")
        elif kind == "retired":
            self.retire_settled(name, end["ledger"], end["total"], word["until"])
        elif kind == "closed" and (word["seq"], word["total"]) != (end["seq"], end["total"]):
            if not self.believes(name[0], word):
                self.strikes += 1
            elif not self.could_follow(word["total"], end["total"], end["seq"] - word["seq"]):
                self.claims += 1
                returned = minus(end["total"], word["total"])
                end.update(seq=word["seq"], total=word["total"])
                self.gain(returned)

    def hear_receipt(self, teller, word):
        seq, digest, proof = word["seq"], word["digest"], word["proof"]
        if word["receiver"] == self.key:
            edge = self.now["in"].get((word["sender"], word["epoch"]))
            if edge is None or edge["told"] != "nobody":
                return
            if (edge["seq"], edge["heard"], edge["proof"]) == (seq, digest, proof):
                edge["told"] = "witness"
        elif word["sender"] == self.key:
            edge = self.now["out"].get((word["receiver"], word["epoch"]))
            if edge is None or edge["history"].get(seq) != digest:
                return
            if not self.is_proven(word["receiver"], word["epoch"], seq, digest, proof):
                return
            if word["receiver"] in self.now["lives"]:
                life = self.now["lives"][word["receiver"]]
                self.now["lives"][word["receiver"]] = life | {"leaving": True}
            self.settle(edge, seq, digest)
        else:
            self.keep(teller, word)

    def is_proven(self, receiver, epoch, seq, total, proof):
        mine = (self.key, self.now["ledger"], receiver, epoch, seq, total)
        return proof == mine and proof in self.said

    def keep(self, teller, word):
        kept = self.now["receipts"]
        name = (word["receiver"], word["sender"], word["epoch"])
        told = {"teller": teller} | {part: word[part] for part in ("seq", "digest", "proof")}
        if name in kept:
            if teller != word["receiver"] or kept[name] == told:
                return
            del kept[name]
        mine = [other for other in kept if kept[other]["teller"] == teller]
        if len(mine) >= 64:
            del kept[mine[0]]
        kept[name] = told


# The implementation, in the same terms.


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
            mass_floor=FLOOR,
            clip=clip,
            most_edges=MOST_EDGES,
        )
        self.strikes = self.claims = 0
        self.clips = 0.0
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
            done = receive_push(self.now, peer, word, self.rules, allowance)
        else:
            done = receive_reply(self.now, peer, word, self.rules)
        self.strikes += done.strike is not None
        self.claims += done.is_claim
        self.clips += done.clipped
        self.waits += [done.waits] if done.waits else []
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
        said = set()
        self.real, self.literal, self.backups = {}, {}, defaultdict(list)
        for index, key in enumerate(self.keys):
            states = PeerState.new(DIM, 100 + index, 1), Transcript.nothing(100 + index)
            self.real[key] = [Real(key, states[0], self.clip)]
            self.literal[key] = [Transcript(key, said, states[1], self.clip)]
            self.backups[key].append(states)
        self.said = said
        self.num_learned = 0
        self.allowances = [None, None, ONE // 8, ONE]
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
            self.leave: 0.5,
            self.stay: 0.4,
            self.write_off: 0.05,
            self.heartbeat: 2 + verdicts,
            self.restart: verdicts,
            self.backup: 1,
            self.restore: backups,
            self.lose_disk: 0.1,
            self.copy: self.rng.choice([0, 0.2]),
            self.forge: 0.5,
        }

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
        *numerator, mass = literal.now["holding"]
        far = self.rng.random() < 0.05 or max(numerator) < RADIUS * mass // 3
        size = self.rng.choice([2**40, 2**59]) if far else 2**10
        step = [-self.rng.randrange(2**10) * (size >> 10) for _ in range(DIM)]
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
        allowance = self.rng.choice(self.allowances)
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
            real.now = mint(real.now, np.array(at, dtype=float))
            literal.mint([number * ONE for number in at])

    def leave(self, key, index):
        real, literal = self.both(key, index)
        real.now = leave(real.now)
        literal.leave()

    def stay(self, key, index):
        real, literal = self.both(key, index)
        real.now = stay(real.now)
        literal.stay()

    def write_off(self, key, index):
        real, literal = self.both(key, index)
        real.now = write_off(real.now)
        literal.write_off()

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
            self.backups[key] = [(PeerState.new(DIM, ledger, 1), Transcript.nothing(ledger))]
            self.restore(key, index)

    def copy(self, key, index):
        """A second process with the same key: from a backup, or from what is durable now."""
        if len(self.real[key]) > 2:
            return
        real, literal = self.both(key, index)
        saved = self.rng.choice([(real.durable, literal.durable), *self.backups[key]])
        self.real[key].append(Real(key, saved[0], self.clip))
        self.literal[key].append(Transcript(key, self.said, saved[1], self.clip))
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


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_every_transition_is_the_literal_one_integer_by_integer(seed):
    Comparison(seed).run(300)


def test_the_comparison_meets_every_message_every_phase_and_every_rule():
    """So that the test above is not true of nothing."""
    kinds, phases, seen = Counter(), set(), Counter()
    for seed in range(40):
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
    assert seen["told sender"]
    assert seen["told witness"]
    assert len([what for what in seen if what.startswith("more ")]) == 3


def test_running_totals_that_no_longer_fit_into_64_bits_agree_too():
    wrapped = 0
    for seed in range(6):
        comparison = Comparison(seed, num_peers=2, clips=[math.inf])
        for event in comparison.weights.keys() - comparison.in_good_weather():
            comparison.weights[event] = 0
        comparison.allowances = [None]
        comparison.run(2500)
        wrapped += any(copies[0].wrapped for copies in comparison.literal.values())
    assert wrapped >= 3
