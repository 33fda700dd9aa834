"""What nodes of the literal transcription say to each other, and what befalls them."""

from __future__ import annotations

import math

import numpy as np
from literal_nodes import NOBODY, Alone, Edge, Total

from oneway.asynchronous import event_world as w

IDLE, TICK, HEARTBEAT, LONGEST = 0.05 - 1e-9, 0.05, 30.0, 10.0


class Literal(Alone):
    """A run; `run()` carries it out and leaves everything in attributes."""

    # Handing over.

    def first_wait(self, e: Edge) -> float:
        first = self.n.first_retry
        return first if e.trip is None else min(first, max(0.05, 4.0 * e.trip))

    def held_back(self, e: Edge, local: float) -> bool:
        patience = max(4.0 * self.first_wait(e), 1.0)
        return not e.seen or (e.lag is not None and local - e.lag[1] > patience)

    def able(self, e: Edge, local: float) -> bool:
        room = e.seq - e.acked < self.n.window
        return e.phase == w.OPEN and room and not self.held_back(e, local)

    def any_able(self, i: int, local: float) -> bool:
        return any(self.able(e, local) for e in self.out[i])

    def under_way(self, e: Edge) -> float:
        if self.wrong == "mass in flight is not counted":
            return 0.0
        return float(e.totals[-1].amount[self.dim] - e.totals[0].amount[self.dim])

    def has_parcel(self, i: int) -> bool:
        least = 1e-6 * (1 + np.linalg.norm(self.estimate(i)))
        return self.n.relayed and np.abs(self.nodes[i].held[self.dim + 1 : -1]).max() > least

    def moved(self, i: int) -> bool:
        estimate = self.estimate(i)
        least = 1e-6 * (1 + np.linalg.norm(estimate))
        return self.has_parcel(i) or np.linalg.norm(estimate - self.nodes[i].pushed) > least

    def push_if_due(self, i: int) -> None:
        node, d, local = self.nodes[i], self.dim, self.local(i)
        if node.lie is not None and node.held[d] > 0:
            node.held = node.held.copy()
            mass = 1.0 if self.n.copied else node.held[d]
            node.held[:d] = mass * node.lie
            if self.wrong == "a liar mints":
                node.held[d] *= 1.5
        since = local - node.last_push
        waited = (local - node.last_step) / 32 if node.taught else 0.0
        idle = since >= max(IDLE, min(node.between / 32, 30.0 - 1e-9), min(waited, 1.0 - 1e-9))
        if since < 0.001 or not (node.due or node.leaving or (idle and self.moved(i))):
            return
        prepared = False
        if not (node.stepped or node.leaving):
            if self.n.relayed and self.has_parcel(i):
                prepared = self.deposit(i)
            elif self.n.copied and node.held[d] > 0.01 and self.any_able(i, local):
                node.held = np.append(self.estimate(i), node.held[d:])
        pushed = self.push_all(i) if node.leaving else self.push_shares(i)
        if not self.out[i]:
            node.stepped = False
        if pushed is None and not prepared:
            return
        node.dirty, node.last_push = True, local
        if pushed is not None:
            node.changed, node.stepped, node.due = True, False, max(0, node.due - 1)
            node.returning = min(self.n.mass_limit, node.returning + pushed)
            node.pushed = self.estimate(i).copy()

    def push_shares(self, i: int) -> float | None:
        node, d, local, n = self.nodes[i], self.dim, self.local(i), self.n
        held, mass = node.held, node.held[d]
        if mass <= 0.01:
            return None
        of_all = sum(e.share for e in self.out[i] if not self.held_back(e, local))
        parts = []
        for e in self.out[i]:
            if not self.able(e, local) or e.share <= 0:
                continue
            flying = self.under_way(e)
            fraction = e.share - (1 - e.share) * flying / mass if flying > 0 else e.share
            room = n.mass_cap - flying
            if fraction < e.share / 16 or room < n.mass_cap / 16:
                if not n.copied:
                    continue
                fraction = 0.0
            fraction = min(fraction, room / mass)
            parts.append((e, self.portion(held, fraction, fraction / of_all)))
        for e, part in parts:
            self.hand_over(i, e, part)
        return sum(part[d] for _, part in parts) if parts else None

    def portion(self, held: np.ndarray, fraction: float, forwarded: float) -> np.ndarray:
        part, d = fraction * held, self.dim
        if self.n.relayed:
            part[d + 1 :] = forwarded * held[d + 1 :]
            length, most = np.linalg.norm(part[d + 1 : -1]), 8.0 * self.n.nearness
            part[d + 1 :] *= min(1.0, most / max(length, 1e-300))
        return part

    def hand_over(self, i: int, e: Edge, part: np.ndarray) -> None:
        node, d = self.nodes[i], self.dim
        total = e.totals[-1].amount + part
        kept = node.held - part
        if self.n.copied:
            total[:d] = kept[:d] = node.held[:d]
        e.totals.append(Total(e.seq + 1, total, e.session, self.local(i)))
        node.held = kept

    def push_all(self, i: int) -> float | None:
        node, d, local = self.nodes[i], self.dim, self.local(i)
        self.pay(i, node.held[d])
        held, cap = node.held, self.n.mass_cap
        rooms = [(e, cap - self.under_way(e)) for e in self.out[i] if self.able(e, local)]
        rooms = [(e, room) for e, room in rooms if room >= cap / 16]
        if not (held[d] > 0 and rooms):
            return None
        of_all, left = sum(e.share for e, _ in rooms), 1.0
        for e, room in rooms:
            fraction = min(e.share / of_all, room / held[d])
            if e is rooms[-1][0] and left * held[d] <= room:
                fraction = left
            self.hand_over(i, e, self.portion(held, fraction, fraction))
            left = 0.0 if fraction == left else left - fraction
        if left == 0.0:
            node.held = np.where(np.arange(len(held)) < d, held, 0.0) if self.n.copied else 0 * held
        return held[d] * (1.0 - left)

    # Taking in.

    def most_of(self, e: Edge) -> float:
        left = (e.account or [0.0])[0] + self.nodes[e.receiver].returning
        return max(left, self.n.mass_cap) if left > 0 else 0.0

    def absorb(self, e: Edge, total: Total) -> bool:
        i, d, n = e.receiver, self.dim, self.n
        node, local = self.nodes[i], self.local(e.receiver)
        delta = total.amount - e.heard.amount
        if n.copied:
            delta = np.where(np.arange(len(delta)) < d, 0.0, delta)
        mass, owed = delta[d], node.owed[d]
        if e.account is None:
            e.account = [node.first_units, 0.0, local]
        else:
            passed = local - e.account[2]
            rate = 0.1 if node.held[d] < 4 else 1 / 300
            left = min(n.mass_limit, e.account[0] + rate * passed)
            e.account = [left, e.account[1] * math.exp(-passed / 60.0), local]
        others = [o for o in self.in_[i] if o.turn_until > local]
        behind = any(
            (o.account or [0, 0])[1] < e.account[1] and o.offer <= self.most_of(o) for o in others
        )
        if mass > (0.0 if behind else self.most_of(e)) + owed:
            self.tally["waited"] += 1
            e.offer, e.turn_until = mass, local + 2.0
            return False
        if mass > 0 and node.held[d] + mass - owed > n.mass_limit:
            self.tally["waited"] += 1
            return False
        own = np.zeros(d)
        if node.held[d] > 0 or n.copied:
            own = self.estimate(i)
        reach, clipped = n.nearness * (1 + np.linalg.norm(own)), False
        if n.relayed:
            pushes = max(1, min(total.number - e.heard.number, 64))
            longest = pushes * 16.0 * reach
            length = np.linalg.norm(delta[d + 1 : -1])
            if length > longest:
                delta[d + 1 : -1] *= longest / length
                clipped = True
        if not n.copied and mass > 0:
            away = delta[:d] / mass - own
            far = np.linalg.norm(away)
            if far > reach:
                delta[:d] = mass * (own + away * (reach / far))
                clipped = True
        elif not n.copied:
            delta[:d] = 0.0
        node.held = node.held + delta
        if owed > 0:
            held = node.held[d]
            self.pay(i, max(0.0, min(mass / 2, held - 0.5), held - 1.0))
        if not node.minted and mass > 0:
            self.mint(i, total.amount[:d] if n.copied else delta[:d] / mass)
        self.tally["clipped"] += clipped
        taken = mass - (owed - node.owed[d])
        if taken > 0:
            returned = min(taken, node.returning)
            node.returning -= returned
            e.account[0] -= taken - returned
            e.account[1] += taken
            e.turn_until = -1.0
        e.heard = total
        return True

    # Words.

    def send(self, e: Edge, kind: int, payload) -> None:
        back = kind not in (w.PUSH, w.HELLO)
        node, size = self.nodes[e.receiver if back else e.sender], int(self.world.sizes[kind])
        self.tally["messages"] += 1
        self.tally["bytes_sent"] += size
        leaves = self.now
        if self.n.bandwidth < math.inf:
            leaves = node.free_at = max(self.now, node.free_at) + size / self.n.bandwidth
        if self.n.loss > 0 and self.uniform() < self.n.loss:
            self.tally["messages_lost"] += 1
            return
        arrives = leaves + self.delay()
        if self.n.ordered:
            arrives = e.arrivals[back] = max(arrives, e.arrivals[back])
        self.at(arrives, kind, e.index, payload)

    def check_link(self, e: Edge, moment: float) -> None:
        for _ in range(4):
            moment += self.delay()
        self.at(moment, w.LINK, e.index, 0)

    def check_links_to(self, i: int, moment: float) -> None:
        for e in self.in_[i]:
            self.check_link(e, moment)

    def begin(self, i: int) -> None:
        node = self.nodes[i]
        if node.committing or not (node.dirty or node.questions):
            return
        dirty = node.dirty
        self.save(i)
        if dirty:
            node.committing = True
            self.at(self.now + self.n.commit, w.COMMIT, i, node.life)
        else:
            self.speak(i)

    def save(self, i: int) -> None:
        node, fresh = self.nodes[i], []
        for index, what in node.questions.items():
            e = self.edges[index]
            known = [it for it in node.answers if it[0] is e]
            if known:
                known[0][1:] = [what, e.heard.number]
            else:
                fresh.append([e, what, e.heard.number])
        node.answers = fresh + node.answers
        node.questions = {}
        node.saved.update({("heard", e.index): e.heard for e in self.in_[i]})
        if node.changed:
            node.changed, node.news = False, True
            for e in self.out[i]:
                e.own = (e.phase, e.session, e.seq, e.acked)
        if node.dirty:
            names = ("held", "owed", "batch", "squares", "learned", "unfinished", "minted")
            node.saved.update({name: getattr(node, name) for name in names})
        node.dirty = False

    def speak(self, i: int) -> None:
        node, local = self.nodes[i], self.local(i)
        if node.news:
            node.news = False
            for e in self.out[i]:
                phase, session, seq, acked = e.own
                if phase >= w.ENDED:
                    e.lag = None
                    continue
                if e.said != (phase, session, seq):
                    if phase == w.OPEN:
                        is_new = e.said is None or seq > e.said[2]
                        self.tally["pushes" if is_new else "repeats"] += 1
                    self.say(e, self.first_wait(e))
                if phase == w.DEAD:
                    e.lag = None
                elif seq == acked:
                    self.note_trip(e, local)
                    e.lag = None
                elif e.lag is not None and e.lag[0] != acked:
                    self.note_trip(e, local)
                    e.lag = (acked, local)
        answers, node.answers = node.answers, []
        for e, what, number in answers:
            if e.shut:
                self.send(e, w.CLOSED, number)
            elif what == "hello":
                self.send(e, w.STATE, (e.heard_session, number))
            else:
                self.tally["acknowledgements"] += 1
                self.send(e, w.ACK, number)

    def say(self, e: Edge, wait: float) -> None:
        local = self.local(e.sender)
        phase, session, seq, acked = e.own
        e.said, e.said_at, e.said_wait = (phase, session, seq), local, wait
        if seq > acked and phase != w.DEAD and e.lag is None:
            e.lag = (acked, local)
        if phase != w.OPEN:
            self.send(e, w.HELLO, session)
        elif e.phase < w.ENDED:  # else its receiver has told meanwhile that it leaves
            self.send(e, w.PUSH, e.numbered(seq))

    def note_trip(self, e: Edge, local: float) -> None:
        if e.lag is not None:
            trip = local - e.lag[1]
            e.trip = trip if e.trip is None else e.trip + (trip - e.trip) / 8

    def reached(self, e: Edge) -> None:
        if e.said is not None and e.said_wait > self.first_wait(e):
            e.said_at, e.said_wait = self.local(e.sender), self.first_wait(e)

    def arrive(self, kind: int, e: Edge, payload) -> None:
        if kind == w.LINK:
            sender, receiver = self.nodes[e.sender], self.nodes[e.receiver]
            if receiver.status != w.ABSENT and sender.status in (w.UP, w.ASLEEP):
                naps = receiver.status == w.ASLEEP and self.now - receiver.asleep_since < 15.0
                e.linked = receiver.status == w.UP or naps
            return
        forth = kind in (w.PUSH, w.HELLO)
        i = e.receiver if forth else e.sender
        node = self.nodes[i]
        if node.status != w.UP:
            self.tally["messages_lost"] += 1
            return
        back = [o for o in self.out[e.receiver] if o.receiver == e.sender]
        for own in back if forth else [e]:
            self.reached(own)
        if kind == w.HELLO:
            if payload >= e.heard_session:
                node.dirty |= payload > e.heard_session
                e.heard_session = payload
                node.questions[e.index] = "hello"
        elif kind == w.PUSH:
            is_new = payload.number > e.heard.number or self.wrong == "stale totals are absorbed"
            if payload.session == e.heard_session:
                if not e.shut and is_new and self.absorb(e, payload):
                    node.dirty = True
                node.questions[e.index] = "push"
        else:
            self.answered(kind, e, payload)
            if node.due:
                self.push_if_due(i)
        self.begin(i)

    def answered(self, kind: int, e: Edge, payload) -> None:
        node = self.nodes[e.sender]
        if kind == w.ACK:
            if e.phase in (w.OPEN, w.DEAD) and e.acked <= payload <= e.seq:
                if e.phase == w.DEAD:
                    self.book(e.sender, e.totals[0].amount - e.numbered(payload).amount)
                    self.set_right(e.sender)
                news = [it for it in e.totals[1:] if it.number <= payload and it.born is not None]
                self.trips += [self.local(e.sender) - it.born for it in news]
                e.totals = [it for it in e.totals if it.number >= payload]
                node.dirty = node.changed = True
        elif kind == w.STATE:
            session, number = payload
            if e.phase in (w.RESYNC, w.DEAD) and session == e.session:
                base, heard, seq = e.totals[-1], e.numbered(number), e.seq
                kept = [it for it in e.totals if it.number >= number]
                if e.phase == w.DEAD:
                    self.book(e.sender, e.totals[0].amount - heard.amount)
                    base, kept = heard, [heard]
                e.totals = [*kept, Total(seq + 1, base.amount, e.session)]
                e.phase = w.OPEN
                self.set_right(e.sender)
        elif e.phase < w.ENDED:
            self.end(e, payload)

    def end(self, e: Edge, number: int) -> None:
        counted, heard = e.totals[0 if e.phase == w.DEAD else -1], e.numbered(number)
        self.book(e.sender, counted.amount - heard.amount)
        e.totals, e.phase = [heard], w.ENDED
        self.set_right(e.sender)

    def set_right(self, i: int) -> None:
        node = self.nodes[i]
        node.dirty = node.changed = True
        if self.n.crashes > 0:
            self.save(i)
            node.dirty = True

    # Time.

    def timer(self, kind: int, i: int) -> None:
        node, local = self.nodes[i], self.local(i)
        pushes = kind == w.TICK
        if kind == w.COMMIT:
            self.tally["commits"] += 1
            node.committing = node.waits = False
            self.speak(i)
        elif kind == w.SAMPLE:
            node.arrived += 1
            node.next_sample = math.inf
            if node.arrived < self.world.num_samples[i]:
                period = 1.0 / node.speed
                node.next_sample = self.now + (
                    self.exponential(period) if self.n.poisson else period
                )
                self.at(node.next_sample, w.SAMPLE, i, node.life)
        else:
            self.look_around(i, local)
        while node.learned < node.arrived and self.samples.rows[node.learned, i] < 0:
            node.learned += 1
        if node.learned < node.arrived and node.started and not (node.waits or node.leaving):
            node.waits = node.dirty = node.taught = pushes = True
            if node.lie is not None:
                node.learned += 1
            if node.lie is not None or self.learn(i):
                if node.lie is not None or self.moved(i):
                    node.stepped, node.due = True, self.n.mixes
                node.between, node.last_step = local - node.last_step, local
        if pushes and self.n.exchanges:
            self.push_if_due(i)
        self.begin(i)
        if kind == w.TICK:
            self.say_again(i, local)
            is_gone = node.leaving and self.linger(i, local)
            if not is_gone and (self.n.exchanges or not node.started):
                self.at(self.now + TICK, w.TICK, i, node.life)

    def look_around(self, i: int, local: float) -> None:
        node = self.nodes[i]
        for e in self.out[i]:
            if e.linked != e.seen:
                e.seen = e.linked
                if e.seen:
                    self.reached(e)
        for e in self.out[i]:
            lags = e.lag is not None and local - e.lag[1] > self.n.patience
            if lags and e.seq > e.acked and e.phase <= w.OPEN:
                self.tally["presumed_dead"] += 1
                e.lag = None
                if self.nodes[e.receiver].status == w.GONE:
                    self.end(e, e.heard.number)
                else:
                    if self.wrong != "the dead keep what they never acknowledged":
                        self.book(i, e.totals[-1].amount - e.totals[0].amount)
                    e.phase, e.session = w.DEAD, e.session + 1
                    self.set_right(i)
        if not node.started and (node.minted or self.now >= node.deadline):
            if not node.minted:
                self.mint(i, self.start)
                node.dirty = True
            node.started = True

    def say_again(self, i: int, local: float) -> None:
        node = self.nodes[i]
        for e in self.out[i]:
            phase, _, seq, acked = e.own
            if phase >= w.ENDED:
                continue
            at_rest = phase == w.OPEN and seq == acked
            if e.said is None:
                wait = self.first_wait(e)
            elif (e.said[0], e.said[2]) != (phase, seq):
                continue
            elif local - e.said_at >= (HEARTBEAT if at_rest else e.said_wait):
                wait = max(e.said_wait, min(2 * e.said_wait, LONGEST))
                if self.wrong == "what is lost is not said again":
                    continue
            else:
                continue
            self.tally["repeats"] += phase == w.OPEN
            self.say(e, wait)
        farewell = node.leaving and local - node.farewell >= 2 * self.n.first_retry
        is_due = local - node.heartbeat >= HEARTBEAT
        node.farewell = local if farewell else node.farewell
        node.heartbeat = local if is_due else node.heartbeat
        for e in self.in_[i] if farewell or is_due else []:
            if e.heard_session == 0:
                continue
            if node.leaving:
                self.send(e, w.CLOSED, e.heard.number)
            elif e.index not in node.questions and all(it[0] is not e for it in node.answers):
                self.tally["acknowledgements"] += 1
                self.send(e, w.ACK, e.heard.number)

    def linger(self, i: int, local: float) -> bool:
        node = self.nodes[i]
        waits = any(e.seq != e.acked and e.phase < w.DEAD for e in self.out[i])
        if node.held[self.dim] > 0 or waits:
            node.drained_at = None
        elif node.drained_at is None:
            node.drained_at = local
        elif local - node.drained_at >= 3.0:
            self.tally["left"] += 1
            node.status, node.life = w.GONE, node.life + 1
            self.check_links_to(i, self.now)
            return True
        return False

    # What befalls a node.

    def befall(self, kind: int, i: int) -> None:
        {
            w.SLEEP: self.sleep,
            w.WAKE: self.wake,
            w.CRASH: self.crash,
            w.RESTART: self.restart,
            w.JOIN: self.join,
            w.LEAVE: self.leave,
        }[kind](i)

    def begin_life(self, i: int) -> None:
        node, local = self.nodes[i], self.local(i)
        held = node.held[self.dim] if node.life else 0.0
        node.status, node.life = w.UP, node.life + 1
        node.last_push, node.farewell, node.heartbeat = -math.inf, -math.inf, local
        node.returning, node.first_units = 0.0, max(1.0 - held, 0.0)
        node.due, node.drained_at = 0, None
        node.between, node.last_step = 0.0, local
        node.stepped = node.waits = node.committing = False
        node.pushed = self.start.copy()
        for e in self.out[i]:
            if e.phase in (w.RESYNC, w.OPEN, w.DEAD):
                e.session += 1
                e.phase = w.RESYNC if e.phase == w.OPEN else e.phase
            e.own = (e.phase, e.session, e.seq, e.acked)
            e.said = e.lag = e.trip = None
            e.linked = e.seen = False
            self.check_link(e, self.now)
        for e in self.in_[i]:
            e.account, e.turn_until = None, -1.0
        self.check_links_to(i, self.now + self.uniform())
        node.changed = node.dirty = True
        self.at(self.now + TICK * self.uniform(), w.TICK, i, node.life)
        self.begin(i)

    def resume_samples(self, i: int) -> None:
        node = self.nodes[i]
        if node.next_sample < math.inf:
            node.next_sample += self.now
            self.at(node.next_sample, w.SAMPLE, i, node.life)

    def restart(self, i: int) -> None:
        self.begin_life(i)
        self.resume_samples(i)

    def sleep(self, i: int) -> None:
        node = self.nodes[i]
        if node.status == w.UP and not node.leaving:
            self.tally["sleeps"] += 1
            node.next_sample = max(node.next_sample - self.now, 0.0)
            node.status, node.life, node.asleep_since = w.ASLEEP, node.life + 1, self.now
            self.check_links_to(i, self.now + 15.0)
        self.at(self.now + self.exponential(self.n.asleep), w.WAKE, i, 0)

    def wake(self, i: int) -> None:
        node = self.nodes[i]
        if node.status == w.ASLEEP:
            node.status = w.UP
            node.slept_for += self.now - node.asleep_since
            self.resume_samples(i)
            self.at(self.now, w.TICK, i, node.life)
            if node.committing:
                self.at(self.now, w.COMMIT, i, node.life)
            self.check_links_to(i, self.now + self.uniform())
        self.at(self.now + self.exponential(self.n.awake), w.SLEEP, i, 0)

    def crash(self, i: int) -> None:
        node = self.nodes[i]
        self.at(self.now + self.exponential(1.0 / self.n.crashes), w.CRASH, i, 0)
        if node.status != w.UP:
            return
        self.tally["crashes"] += 1
        node.next_sample = max(node.next_sample - self.now, 0.0)
        node.status, node.life = w.DOWN, node.life + 1
        learned = node.learned
        self.minted -= node.minted and not node.saved["minted"]
        for name in ("held", "owed", "batch", "squares", "learned", "unfinished", "minted"):
            setattr(node, name, node.saved[name])
        node.learned = learned if node.lie is not None else node.learned
        for e in self.out[i]:
            e.phase, number = e.own[0], e.own[2]
            e.session = max(e.session, e.own[1])
            if self.wrong != "a crash keeps what nobody was told":
                e.totals = [it for it in e.totals if it.number <= number]
        for e in self.in_[i]:
            e.heard = node.saved["heard", e.index]
        node.questions, node.answers = {}, []
        node.dirty = node.changed = node.news = node.committing = False
        self.check_links_to(i, self.now)
        self.at(self.now + self.n.down, w.RESTART, i, 0)

    def join(self, i: int) -> None:
        node = self.nodes[i]
        self.tally["joined"] += 1
        node.status, node.deadline = w.UP, self.now + 3.0
        for e in self.in_[i]:
            sender = self.nodes[e.sender]
            if sender.status not in NOBODY:
                self.use(e)
                self.share_out(e.sender)
                if sender.status == w.UP:
                    sender.dirty = sender.changed = True
                    self.begin(e.sender)
        for e in self.out[i]:
            if self.nodes[e.receiver].status not in NOBODY:
                self.use(e)
        self.share_out(i)
        self.restart(i)

    def use(self, e: Edge) -> None:
        if e.phase == w.UNUSED:
            e.phase, e.session = w.RESYNC, 1
            if self.nodes[e.sender].status != w.UP:
                e.own = (w.RESYNC, 1, *e.own[2:])

    def share_out(self, i: int) -> None:
        total = sum(e.weight for e in self.out[i] if e.phase != w.UNUSED)
        for e in self.out[i]:
            used = e.phase != w.UNUSED
            e.share = self.nodes[i].handed * e.weight / total if used else 0.0

    def leave(self, i: int) -> None:
        node = self.nodes[i]
        if node.status != w.UP or not node.minted:
            self.at(self.now + 1.0, w.LEAVE, i, 0)
            return
        node.leaving = node.dirty = True
        node.next_sample = math.inf
        node.unfinished, node.batch = 0, np.zeros(self.dim)
        for e in self.in_[i]:
            e.shut = True
        self.begin(i)
