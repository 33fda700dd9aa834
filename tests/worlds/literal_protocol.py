"""A slow, literal transcription of the protocol with unbounded integers, dictionaries and lists.

A set of all that a key ever said takes the place of keyed hashes. `test_literal_transcription`
compares every transition of the protocol with it. An amount is a tuple: the numerator, then, where
peers relay, a parcel and how many steps are in it, and the mass.
"""

from __future__ import annotations

import math
from copy import deepcopy

import numpy as np

from oneway.protocol.fixed_point import ONE
from oneway.protocol.incoming import DEPOSITED

DIM = 2
PARCEL, COUNT = slice(DIM, 2 * DIM), 2 * DIM
NOTHING_LEARNED = (0, b"")
# A radius that lets totals wrap after some pushes, a cap and a limit that are often reached.
RADIUS, CAP, WINDOW, LIMIT, MOST_EDGES = 2**20, 1, 3, 2, 1
LONGEST = 0.01
"""No step of an honest peer is longer."""


# The transcription.


def wrap(number):
    return (number + 2**63) % 2**64 - 2**63


def part_of_mass(amount, most):
    """An amount, or the part of it that has no more mass than this."""
    if most >= amount[-1]:
        return amount
    return (*floors(amount[:-1], most / amount[-1]), most)


def plus(one, other):
    return tuple(wrap(a + b) for a, b in zip(one, other, strict=True))


def minus(one, other):
    return tuple(wrap(a - b) for a, b in zip(one, other, strict=True))


def size_of(numbers):
    return max(abs(number) for number in numbers)


def length(units):
    """The Euclidean length of the numbers that units stand for."""
    numbers = np.array(units) / ONE
    return math.sqrt(float(numbers @ numbers))


def floors(units, part):
    return tuple(math.floor(number * part) for number in units)


def later(than, now):
    """A greater stamp with the last 20 bits of `now`; `now` itself if it is greater."""
    return now if now > than and now >> 20 > than >> 20 else ((than >> 20) + 1 << 20) + now % 2**20


def largest_part(before, move, most):
    """The largest part of a move with |before + part * move| <= most, from 0 to 1."""
    squared = float(move @ move)
    if squared == 0.0:
        return 1.0
    along, inside = float(before @ move), most**2 - float(before @ before)
    if inside <= 0.0 and along >= 0.0:
        return 0.0
    root = math.sqrt(max(0.0, along**2 + squared * inside))
    return min(1.0, max(0.0, (root - along) / squared))


class Transcript:
    """One peer. A message is a dictionary; `proof` stands for a tag of the key it is a proof to."""

    def __init__(self, key, said, state, clip, relays=False):
        self.key = key
        self.said = said  # by every key: as a secret, it survives every restored backup
        self.clip = clip
        self.relays = relays
        self.nothing_yet = (0,) * len(state["holding"])
        self.strikes = self.claims = self.wrapped = 0
        self.clips = 0.0
        self.moves = []
        self.waits = []
        self.questions = {}
        self.now, self.durable = deepcopy(state), deepcopy(state)

    @staticmethod
    def nothing(ledger, relays=False):
        nothing = (0,) * (2 * DIM + 2 if relays else DIM + 1)
        return {
            "ledger": ledger,
            "boot": 1,
            "over": 0,
            "holding": nothing,
            "minted": nothing,
            "steps": nothing,
            "clipped": nothing,
            "owed": nothing,
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
        """Give back no more mass than this of what is owed, at one's own estimate.

        What was burned pays first. Beside its model, what is owed is given back as it is owed.
        """
        now = self.now
        burned = part_of_mass(now["owed"], max(0, now["clipped"][-1]))
        now["owed"], now["clipped"] = minus(now["owed"], burned), minus(now["clipped"], burned)
        part, held = part_of_mass(now["owed"], most), now["holding"]
        if part[-1] == 0:
            return
        given = (*floors(held[:DIM], part[-1] / held[-1]), *part[DIM:])
        now["holding"], now["owed"] = minus(held, given), minus(now["owed"], part)
        now["clipped"] = plus(now["clipped"], minus(given, part))

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
        unit = (*at, *self.nothing_yet[DIM:-1], ONE)
        self.now["minted"] = plus(self.now["minted"], unit)
        self.now["holding"] = plus(self.now["holding"], unit)

    def keep_mass(self, lowest, highest):
        """Mint what mass is lacking, or burn what is too much, at one's own estimate."""
        now = self.now
        mass = now["holding"][-1]
        kept = max(lowest, min(highest, mass))
        if mass <= 0 or now["leaving"] or kept == mass:
            return
        at = [round(z * ((kept - mass) / mass)) for z in now["holding"][:DIM]]
        change = (*at, *self.nothing_yet[DIM:-1], kept - mass)
        now["holding"] = plus(now["holding"], change)
        if kept > mass:
            now["minted"] = plus(now["minted"], change)
        else:
            now["clipped"] = minus(now["clipped"], change)

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
            now["owed"], now["holding"] = minus(now["owed"], now["holding"]), self.nothing_yet
        elif now["leaving"]:
            self.pay(now["holding"][-1])
        if now["leaving"]:  # what nobody would take, and no count is to come for
            kept = self.plausible(now["holding"])
            now["clipped"] = plus(now["clipped"], minus(now["holding"], kept))
            now["holding"] = kept
        holding, mass = now["holding"], now["holding"][-1]
        size, parts = size_of(holding[:DIM]), []

        def flying(edge):
            return edge["history"][edge["seq"]][-1] - edge["history"][edge["acked"]][-1]

        def room(edge):
            """No more is ever under way to a receiver than one push may carry."""
            return CAP * ONE - flying(edge)

        def part_of(share, edge, of_all):
            share = min(share, room(edge) / max(mass, 1))
            split = floors(holding, share)
            return (*split[:DIM], *floors(holding[DIM:-1], share / of_all), split[-1])

        if now["leaving"]:
            able = [edge for edge in able if room(edge) >= CAP * ONE / 16]
            if not able or holding == self.nothing_yet or mass < 0 or size > RADIUS * mass + 2:
                return
            total = sum(shares[edge["receiver"]] for edge in able)
            parts = [(edge, part_of(shares[edge["receiver"]] / total, edge, 1.0)) for edge in able]
            rest = holding
            for _, part in parts:
                rest = minus(rest, part)
            last, part = parts[-1]
            if plus(part, rest)[-1] <= room(last):
                parts[-1] = (last, plus(part, rest))
        elif mass > 0 and size <= RADIUS * mass:
            of_all = sum(shares.values())
            for edge in able:
                share, fraction = shares[edge["receiver"]], shares[edge["receiver"]]
                if flying(edge) > 0:  # so that flying + part = share * (holding + flying)
                    fraction = share - (1 - share) * flying(edge) / mass
                if fraction >= share / 16 and room(edge) >= CAP * ONE / 16:
                    parts.append((edge, part_of(fraction, edge, of_all)))
        for edge, part in parts:
            part = self.not_too_much(part)
            sent = edge["history"][edge["seq"]]
            edge["history"][edge["seq"] + 1] = plus(sent, part)
            self.wrapped += tuple(map(sum, zip(sent, part, strict=True))) != plus(sent, part)
            edge["seq"] += 1
            now["holding"] = minus(now["holding"], part)

    def plausible(self, part):
        """No steps without a count, and none longer than so many can be."""
        if not self.relays:
            return part
        parcel, count = part[PARCEL], max(0, part[COUNT])
        if count == 0:
            parcel = (0,) * DIM
        elif length(parcel) > LONGEST * (count / ONE):
            parcel = floors(parcel, LONGEST * (count / ONE) / length(parcel))
        return (*part[:DIM], *parcel, count, part[-1])

    def not_too_much(self, part):
        """A part without what is to go with a later one."""
        part = self.plausible(part)
        beside = [max(-RADIUS * ONE, min(RADIUS * ONE, units)) for units in part[DIM:-1]]
        part = (*part[:DIM], *beside, part[-1])
        if not self.relays:
            return part
        factor = 8 * self.clip / max(length(part[PARCEL]), 1e-300)
        if factor < 1.0:
            part = (*part[:DIM], *floors(part[DIM:-1], factor), part[-1])
        return part

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
            "history": {0: self.nothing_yet},
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
                nothing = {"seq": 0, "total": self.nothing_yet, "proof": None}
                replies.append(self.word("closed", epoch, **nothing, **told))
        elif edge["closed"]:
            replies.append(self.closed(sender, edge))
        elif kind == "hello":
            more = {name: edge[name] for name in ("session", "granted", "seq", "proof")}
            state = {"ledger": mine["ledger"], "total": edge["heard"]}
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
            "heard": self.nothing_yet,
            "proof": None,
            "closed": self.now["leaving"],
            "told": "nobody",
        }
        if kind == "hello":
            edges[name] = edge
            if word["session"] > edge["session"]:
                edge["session"], edge["granted"] = word["session"], self.now["boot"]
        elif kind == "close":
            if word["seq"] > edge["seq"]:
                self.absorb(edge, word, allowance)
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
            sum_ = edges.get((sender, 0), {"heard": self.nothing_yet})["heard"]
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

    def objects(self, delta, pushes):
        """Whether no honest peer hands over this in so many pushes."""
        mass, pushes, few = delta[-1], min(pushes, 2**20), min(pushes, 64)
        most = RADIUS * (mass + mass / ONE + few) + 2 * few
        if mass < 0 or size_of(delta[:DIM]) > most:
            return True
        if not self.relays:
            return False
        many, rounded = delta[COUNT] / ONE, 2 * few * (math.sqrt(DIM) + LONGEST) / ONE
        too_long = length(delta[PARCEL]) > 2 * LONGEST * many + rounded
        return many < 0 or too_long or size_of(delta[DIM:-1]) > RADIUS * ONE * pushes

    def absorb(self, edge, word, allowance):
        delta = minus(word["total"], edge["heard"])
        pushes = word["seq"] - edge["seq"]
        if self.objects(delta, pushes):
            return "refused"
        now = self.now
        kept = self.without_surplus_mass(delta)
        kept, beyond = self.within_the_clip(kept, min(pushes, 64))
        kept = self.without_what_nobody_can_hold(kept)
        if allowance is not None and now["holding"][-1] > 0:
            kept, cut = self.within_the_account(kept, *allowance)
            beyond = max(beyond, cut)
        self.clips += beyond
        edge.update(heard=word["total"], seq=word["seq"], proof=word["proof"])
        now["clipped"] = plus(now["clipped"], minus(delta, kept))
        now["holding"] = plus(now["holding"], kept)
        held = now["holding"][-1]
        self.pay(max(0, min(kept[-1] // 2, held - ONE // 2), held - ONE))
        if now["minted"][-1] == 0 and kept[-1] > 0:
            model = [max(-RADIUS, min(RADIUS, float(z) / float(kept[-1]))) for z in kept[:DIM]]
            self.mint([round(number * ONE) for number in model])
        return "absorbed"

    def without_surplus_mass(self, delta):
        """What comes beyond the limit of mass is burned, with its part of the model."""
        held, owed = self.now["holding"][-1], self.now["owed"][-1]
        room = max(0, LIMIT * ONE - held + min(owed, LIMIT * ONE))
        if delta[-1] <= room:
            return delta
        return (*floors(delta[:DIM], room / delta[-1]), *delta[DIM:-1], room)

    def without_what_nobody_can_hold(self, delta):
        """Beside a model, nobody holds more than so much."""
        most, holding = RADIUS * LIMIT * ONE, self.now["holding"]
        if size_of(holding) + size_of(delta) <= most:
            return delta
        beside = []
        for held, more in zip(holding[DIM:-1], delta[DIM:-1], strict=True):
            after = held + max(-2 * most, min(2 * most, more))
            beside.append(max(min(held, -most), min(max(held, most), after)) - held)
        return (*delta[:DIM], *beside, delta[-1])

    def within_the_account(self, delta, moved, waits, most):
        """As much as moves one's estimate no further than its sender still may, and what is cut."""
        holding, (*_, mass) = self.now["holding"], delta
        own = np.array(holding[:DIM]) / float(holding[-1])
        pull, steps, weight = np.zeros(DIM), np.zeros(DIM), 0.0
        if mass > 0:
            pull = np.array(plus(holding, delta)[:DIM]) / float(holding[-1] + mass) - own
        if self.relays:
            count, after = holding[COUNT] + delta[COUNT], holding[-1] + mass
            of_it = DEPOSITED / math.sqrt(min(1.0, max(1, count) / ONE))
            weight, steps = min(of_it, ONE / after), np.array(delta[PARCEL]) / ONE
        if mass == 0 and not steps.any():
            return delta, 0.0
        # However much of what waits and of what comes is deposited, from nothing to all it can.
        part = min(
            largest_part(moved - some * waits, pull - some * steps, most) for some in (0.0, weight)
        )
        self.moves.append((part * pull, part * steps))
        if part == 1.0:
            return delta, 0.0
        numerator = delta[:DIM]
        if mass > 0:
            there = (own + part * pull) * (holding[-1] + mass)
            numerator = minus([round(z) for z in there], holding[:DIM])
        counted = ()
        if self.relays:
            [many] = floors(delta[COUNT : COUNT + 1], part)
            counted = (max(many, min(delta[COUNT], ONE)),)
        kept = (*numerator, *floors(delta[DIM:-1][:DIM], part), *counted, mass)
        return kept, (1.0 - part) * float(np.linalg.norm(pull - weight * steps))

    def within_the_clip(self, delta, pushes):
        """A delta whose model is near one's own, or near zero, and how far beyond that it was."""
        if math.isinf(self.clip):
            return delta, 0.0
        own, held = [0.0] * DIM, self.now["holding"]
        if held[-1] > 0:
            own = [max(-RADIUS, min(RADIUS, float(z) / float(held[-1]))) for z in held[:DIM]]
        limit, mass, beyond = self.clip * (1.0 + float(np.linalg.norm(own))), delta[-1], 0.0
        if self.relays and length(delta[PARCEL]) > (longest := pushes * 16 * limit):
            shorter = longest / length(delta[PARCEL])
            beyond = length(delta[PARCEL]) - longest
            dropped = [round(b / ONE * (1.0 - shorter) * ONE) for b in delta[PARCEL]]
            delta = (*delta[:DIM], *minus(delta[PARCEL], dropped), *delta[COUNT:])
        numerator = delta[:DIM]
        if mass == 0:  # without mass there is no model to be near
            return (*[0] * DIM, *delta[DIM:]), beyond
        model = [float(z) / float(mass) for z in numerator]
        away = [theirs - mine for theirs, mine in zip(model, own, strict=True)]
        distance = float(np.linalg.norm(away))
        if distance <= limit:
            return delta, beyond
        moved = [mine + way * (limit / distance) for mine, way in zip(own, away, strict=True)]
        dropped = [
            round((z / ONE - x * (mass / ONE)) * ONE) for z, x in zip(numerator, moved, strict=True)
        ]
        return (*minus(numerator, dropped), *delta[DIM:]), max(beyond, distance - limit)

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
            return total == self.nothing_yet
        proof = (self.key, self.now["ledger"], receiver, word["epoch"], word["seq"], total)
        return word["proof"] == proof and proof in self.said

    def could_follow(self, claimed, known, pushes):
        """Whether an honest sender gets from one total to the other in so many pushes."""
        return pushes > 0 and not self.objects(minus(known, claimed), pushes)

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
        seq, lost = max(edge["seq"], word["seq"]) + 1, self.nothing_yet
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
        self.gain(minus(self.nothing_yet, lost))

    def settle(self, edge, seq, heard):
        name = (edge["receiver"], edge["epoch"])
        del self.now["out"][name]
        if seq:
            self.now["settled"][name] = {"ledger": edge["ledger"], "seq": seq, "total": heard}
        self.gain(minus(self.counted(edge), heard))

    def retire_settled(self, name, ledger, total, until):
        settled = self.now["settled"]
        settled.pop(name, None)
        before = settled.get((name[0], 0), {"total": self.nothing_yet, "seq": 0})
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
