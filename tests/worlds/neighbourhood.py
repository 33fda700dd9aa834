"""Honest peers in virtual time among bad neighbours: what must hold, and what was violated."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from bad_neighbours import BadNeighbour, ByzantineReceiver
from residents import RELAY, Resident, facts
from storm import DIM, LONGEST, layout_of, makes_compact
from weather import HONEST, TICK, TICKS, Event, Weather

from oneway.protocol.audit import expected_holding
from oneway.protocol.fixed_point import ONE, extent, length_of, mass_of
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import RANDOM_BITS, first_stamp
from oneway.protocol.state import Key, PeerState
from oneway.testing.memory_network import MemoryNetwork

CALM_TICK = 20.0
LONG_ENOUGH, BACK_HOME = 8, 20
"""Rounds of calm in which the dead are presumed dead; and after which everybody has power."""
MOST_EDGES = 6
MASS_LIMIT = 256.0
ALLOWED_MASS, LONGEST_ALLOWED = MASS_LIMIT, LONGEST
"""What peers go by; the invariants go by the limits themselves."""
A_MINUTE = 60.0
ENOUGH = 0.05
"""Mass below which a peer's part of the network is too small to compare."""
FAR = 2.0
"""So far from what it learns no peer is moved, whoever is beside it."""


@dataclass
class Neighbourhood:
    """A seed, six honest peers, and whoever the seed puts beside them.

    Attributes:
        without_misdeeds: Whether bad neighbours are absent, or behave: the run to compare with.
        violations: What must never be and was.
        masses: Of the honest peers, tick by tick.
    """

    seed: int
    without_misdeeds: bool = False
    violations: list[str] = field(default_factory=list)
    masses: list[list[float]] = field(default_factory=list)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.weather = Weather(self.seed)
        self.layout = layout_of(self.seed, self.weather.payload)
        self.network = MemoryNetwork()
        self.closings: dict[frozenset[Key], int] = {}
        self.events = {tick: list(events) for tick, events in self.weather.events.items()}
        self.tick, self.went_back_at, self.in_the_dark = 0, 0.0, False
        self.honest = [self._honest(index) for index in range(HONEST)]
        self.copies: list[Resident] = []
        self.bad = [self._bad(number) for number in range(len(self.weather.bad))]
        for one in [*self.honest, *self.bad]:
            for other in [*self.honest, *self.bad]:
                one.endpoint.dial(other.key, other.endpoint.address)

    def _honest(self, index: int) -> Resident:
        endpoint = self.network.endpoint(key_of(index))
        endpoint.admit(None)
        rules = Rules(
            secret=bytes([index + 101]) * 32,
            mass_cap=self.weather.mass_cap,
            mass_limit=ALLOWED_MASS,
            most_edges=MOST_EDGES,
            clip=self.weather.clip,
            longest_step=LONGEST_ALLOWED,
            compact=makes_compact(self.seed, index),
        )
        ledger, dim = self.weather.rng.getrandbits(61) | 1, self.layout.width or DIM
        state = PeerState.new(dim, ledger, boot=1, layout=self.layout)
        resident = Resident(endpoint, rules, state, f"{self.seed}/{index}")
        resident.trusted = [key_of(other) for other in self.weather.trusted[index]]
        return resident

    def _bad(self, number: int) -> BadNeighbour:
        endpoint = self.network.endpoint(key_of(HONEST + number))
        endpoint.admit(None)
        beside = [self.honest[index] for index in self.weather.beside_bad[number]]
        victims, dim = [resident.key for resident in beside], self.layout.width or DIM
        seed = f"{self.seed}/bad {number}"
        bad = self.weather.bad[number](endpoint, victims, self.layout, dim, seed)
        if isinstance(bad, ByzantineReceiver):
            bad.is_honest = bad.is_honest or self.without_misdeeds
        elif self.without_misdeeds:
            endpoint.admit(frozenset())  # absent: it hears nobody, and speaks to nobody
            bad.victims = []
        if bad.is_trusted:
            for resident in beside:
                resident.trusted.append(bad.key)
        return bad

    @property
    def residents(self) -> list[Resident]:
        return [*self.honest, *self.copies]

    # How time passes.

    def run(self) -> Neighbourhood:
        """Minutes of everything, then quiet; then everything is checked."""
        for self.tick in range(TICKS):
            self.now += TICK
            for event in self.events.get(self.tick, []):
                getattr(self, event.kind)(self.honest[event.who], event)
            self._turn(self.weather.learns[self.tick])
            self._carry()
            self._agree_on_copies()
            self._look()
            if self.violations:
                return self
        if not self.without_misdeeds:
            self._calm()
            self._check_the_end()
        return self

    def _turn(self, learns: list[bool], is_calm: bool = False) -> None:
        for index, resident in enumerate(self.residents):
            if resident.runs:
                resident.receive(self.now)
            if resident.runs:
                resident.tick(self.now, learns[index % HONEST])
                resident.commit(self.now, says_all=is_calm)
                if resident.departed:
                    for other in self.residents:
                        other.backups.clear()
        if not is_calm:
            for bad in self.bad:
                bad.act(self.now)

    def _carry(self, is_calm: bool = False) -> None:
        """Let what is under way arrive, or not."""
        datagrams, self.network.in_flight, late = self.network.in_flight, [], []
        if int(self.now / TICK) % 3 == 0:  # of two copies, not always the same one speaks last
            datagrams.reverse()
        for it in datagrams:
            fate = self.weather.fate(self.tick, it.sender, it.receiver, it.via == "push")
            if fate == "late" and not is_calm:
                late.append(it)
            elif fate != "lost" or is_calm:
                for _ in range(2 if fate == "twice" else 1):
                    self.network.in_flight.append(it)
                    self.network.deliver(0)
        self.network.in_flight = late

    def _calm(self, most_rounds: int = 400) -> None:
        """No more faults and nothing new: let everybody say and hear what there is."""
        self.network.in_flight.clear()
        quiet, at_least = 0, LONG_ENOUGH
        for one in self.residents:
            if one.current.leaving:
                self.power(one)
        if any(not one.online for one in self.residents):
            at_least += BACK_HOME
        for round_index in range(most_rounds):
            self.now += CALM_TICK
            before = [facts(resident.current) for resident in self.residents]
            self._turn([False] * HONEST, is_calm=True)
            self._carry(is_calm=True)
            self._look()
            self._agree_on_copies()
            if round_index > LONG_ENOUGH + BACK_HOME:
                self._count_copies()
            if self.violations:
                return
            if round_index == 2:
                self._settle_quarrels()
            if round_index == BACK_HOME:  # perhaps whoever it sent to has left meanwhile
                for one in self.residents:
                    self.power(one)
            for resident in self.residents:
                if resident.runs:
                    resident.receive(self.now)
            after = [facts(resident.current) for resident in self.residents]
            quiet = quiet + 1 if after == before else 0
            if quiet >= 4 and round_index > at_least:
                return

    def _settle_quarrels(self) -> None:
        gone = {resident.key for resident in self.honest if resident.durable.leaving}
        gone |= {bad.key for bad in self.bad}
        for resident in self.residents:
            resident.trusted = [key for key in resident.trusted if key not in gone]

    def _agree_on_copies(self) -> None:
        """Once one copy is left, its neighbours' owners write down its address."""
        for first in self.honest:
            mine = [one for one in self.residents if one.key == first.key]
            left = [one for one in mine if not one.stopped]
            if len(mine) > 1 and len(left) == 1:
                for other in self.residents:
                    other.endpoint.dial(first.key, left[0].endpoint.address)

    # What can happen.

    def crash(self, one: Resident, _event: Event) -> None:
        if one.runs:
            one.start(one.durable, self.clock())

    def power_cut(self, one: Resident, event: Event) -> None:
        if one.runs:
            one.online = False
            if self.now - self.went_back_at <= A_MINUTE:
                self.in_the_dark = True
            self._later(2 + int(event.chance**2 * 60), Event("power", event.who))

    def _later(self, ticks: int, event: Event) -> None:
        if self.tick + ticks < TICKS:  # otherwise the quiet afterwards sees to it
            self.events.setdefault(self.tick + ticks, []).append(event)

    def power(self, one: Resident, _event: Event | None = None) -> None:
        if not (one.online or one.departed or one.stopped):
            one.start(one.durable, self.clock())

    def backup(self, one: Resident, _event: Event) -> None:
        if one.runs:
            one.save_backup(self.closings)

    def restore(self, one: Resident, event: Event) -> None:
        saved = self._usable(one)
        if one.runs and saved and not self._somebody_leaves:
            one.start(saved[int(event.chance**2 * len(saved))], self.clock())
            self._went_back()

    def _went_back(self) -> None:
        self.went_back_at = self.now
        self.in_the_dark = self.in_the_dark or any(not one.online for one in self.residents)

    def _usable(self, one: Resident) -> list[PeerState]:
        """Backups no older than a few re-trusts and the last departure: exact only with those."""
        most = MOST_EDGES - 2
        return [
            state
            for state, closings in one.backups
            if all(
                count - closings.get(pair, 0) <= most
                for pair, count in self.closings.items()
                if one.key in pair
            )
        ]

    def quarrel(self, one: Resident, event: Event) -> None:
        if one.runs and one.trusted and not one.current.leaving:
            receiver = one.trusted[event.whom % len(one.trusted)]
            pair = frozenset((one.key, receiver))
            self.closings[pair] = self.closings.get(pair, 0) + 1
            one.distrust(receiver)

    def leave(self, one: Resident, event: Event) -> None:
        """Leave soon; perhaps a sender has no power then, and has not heard its last answers."""
        if self._may_leave(one):
            senders = [other for other in self.honest if one.key in other.trusted]
            # One to which it hands nothing over, or it would wait for that anyway.
            senders = [other for other in senders if other.key not in one.trusted]
            if senders and event.chance < 0.9:
                sender = senders[int(event.chance * len(senders))]
                self.power_cut(sender, Event("power_cut", self.honest.index(sender), 1.0))
            self._later(2, Event("farewell", event.who))

    def farewell(self, one: Resident, _event: Event) -> None:
        if self._may_leave(one):
            one.leave()

    def _may_leave(self, one: Resident) -> bool:
        """One leaves at most, and not if a backup or a copy has not heard from all others since.

        A receipt is of use only to a sender that still knows, or has heard again, what it sent;
        and what a leaving peer forgot, only the senders that it can hear can tell it.
        """
        somebody_left = any(one.current.leaving for one in self.residents)
        is_settled = not self.copies or any(other.stopped for other in self.residents)
        if self._has_copies(one) or not is_settled or somebody_left or self.tick < TICKS // 4:
            return False
        if not one.trusted:
            return False  # to whom?
        return one.runs and self.now - self.went_back_at > A_MINUTE and not self.in_the_dark

    @property
    def _somebody_leaves(self) -> bool:
        return any(one.current.leaving and not one.departed for one in self.residents)

    def clone(self, one: Resident, event: Event) -> None:
        if self.copies or not one.runs or self._somebody_leaves or one.current.leaving:
            return
        if not self.weather.trusted[event.who]:
            return  # two that say nothing to honest peers never find out about each other
        saved = [one.durable, *self._usable(one)]
        endpoint = self.network.endpoint(one.key, one.endpoint.address + " copy")
        endpoint.admit(None)
        for other in [*self.honest, *self.bad]:
            if other is not one:
                endpoint.dial(other.key, other.endpoint.address)
        copy = one.copied_to(endpoint, saved[int(event.chance * len(saved))], self.clock())
        self.copies.append(copy)
        self._went_back()
        if event.whom:  # the owner has told everybody the new address
            for other in [*self.honest, *self.bad]:
                other.endpoint.dial(one.key, endpoint.address)

    def _has_copies(self, one: Resident) -> bool:
        return any(copy.key == one.key for copy in self.copies)

    def clock(self) -> int:
        """The stamp of a start, on a machine whose clock may have been set back."""
        now = int(self.now * 16)
        now = now if self.weather.clocks.random() < 0.8 else self.weather.clocks.randrange(now)
        return first_stamp(now << RANDOM_BITS, self.weather.clocks.getrandbits(RANDOM_BITS))

    # What must hold.

    def blame(self, sentence: str) -> None:
        self.violations.append(f"at {self.now:g} s: {sentence}")

    def _look(self) -> None:
        """What must hold at every moment."""
        if self.violations:
            return
        self.masses.append([resident.current.mass for resident in self.honest])
        known = {resident.key for resident in self.honest}
        for number, resident in enumerate(self.residents):
            state, name = resident.current, f"peer {number}"
            if state.mass < 0 or mass_of(state.owed) < 0:
                self.blame(f"{name} has a mass of {state.mass:g}, and owes {state.debt:g}")
            # What was under way when it was full may come back.
            if state.mass > 2 * MASS_LIMIT + 1:
                self.blame(f"{name} holds {state.mass:g}, more than the limit")
            self._look_at_learning(resident, name)
            if extent(state.holding) > 1 << 61:
                self.blame(f"{name} holds numbers near the limits of int64")
            for accused, sentence in resident.strikes:
                if accused in known:
                    self.blame(f"{name} accuses an honest peer: {sentence}")
            if resident.stopped and not self._has_copies(resident):
                self.blame(f"{name} stopped, and there is no copy of it")

    def _look_at_learning(self, resident: Resident, name: str) -> None:
        """Whether somebody moved it away from what it learns, or drained it.

        In rough weather, what is lost and comes back moves mass, and models with it, by itself.
        """
        state = resident.current
        if state.layout.copies_model or not state.is_sound(resident.rules.radius):
            return
        if state.layout.parcel is not None:
            self._look_at_parcels(resident, name)
        if self.weather.is_rough:
            return
        length = float(np.linalg.norm(state.estimate))
        if length > FAR and not np.isinf(resident.rules.clip):
            self.blame(f"{name} was moved to {length:g}")
        if state.mass < RELAY.usual_bounds[0] / 4:
            self.blame(f"{name} has only {state.mass:g} of mass left")

    def _look_at_parcels(self, resident: Resident, name: str) -> None:
        """All that was ever heard of somebody adds up to steps that can be so long."""
        steps, count = resident.current.layout.parcel or (slice(0), slice(0))
        for edge in resident.current.in_.values():
            many, length = edge.heard[count][0] / ONE, length_of(edge.heard[steps])
            if length > 2 * LONGEST * many + ENOUGH * LONGEST:
                self.blame(f"{name} took in {many:g} steps that are {length:g} long")

    def _count_copies(self) -> None:
        for first in self.honest:
            copies = sum(one.key == first.key and not one.stopped for one in self.residents)
            if copies != 1:
                self.blame(f"{copies} copies of peer {first.key[0] - 1} are left")

    def _check_the_end(self) -> None:
        self._count_copies()
        if self.violations:
            return
        living = [one for one in self.residents if not one.stopped]
        by_key = {one.key: one for one in living}
        for one in living:
            if not np.array_equal(one.current.holding, expected_holding(one.current)):
                self.blame(f"the books of peer {one.key[0] - 1} do not balance")
            for other in living:
                extra = 0 if other is one else one.counts_more_than(other)
                if extra:
                    self.blame(
                        f"{one.key[0] - 1} counts {extra} units more than {other.key[0] - 1}"
                    )
            for edge in one.current.out.values():
                other = by_key.get(edge.receiver)
                if other is None or other.departed or one.departed:
                    continue
                if not edge.is_at_rest:
                    self.blame(
                        f"stuck: {one.key[0] - 1} -> {other.key[0] - 1}: {edge.phase}, "
                        f"{edge.in_flight} in flight, {edge.mass_in_flight / ONE:g}"
                    )
        self._compare_masses()

    def _compare_masses(self) -> None:
        """Nobody has less than half of what it would have, for longer than a minute.

        In rough weather, backups, copies and departures move mass by themselves; over a one-way
        street it drains, at a pace that depends on every push.
        """
        if self.weather.is_rough or [] in self.weather.trusted or not self.bad:
            return
        wanted = Neighbourhood(self.seed, without_misdeeds=True).run().masses
        for index in range(HONEST):
            poor = 0.0
            for mine, theirs in zip(self.masses[:TICKS], wanted, strict=False):
                is_poor = mine[index] < theirs[index] / 2 and theirs[index] > ENOUGH
                poor = poor + TICK if is_poor else 0.0
                if poor > A_MINUTE:
                    self.blame(f"peer {index} has less than half of what it would have")
                    return

    @property
    def digest(self) -> str:
        """A name for everything that all peers know."""
        facts_of_all = [(facts(one.current), one.stopped, one.departed) for one in self.residents]
        return blake2b(repr((facts_of_all, self.violations)).encode(), digest_size=16).hexdigest()


def key_of(index: int) -> Key:
    return bytes([index + 1]) * 32


if __name__ == "__main__":
    for number in sys.argv[1:]:
        print(Neighbourhood(int(number)).run().digest)  # noqa: T201
