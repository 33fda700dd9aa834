"""Soak: eight real peers by the default task under loss and kills, in bad company.

Every peer is a process. A fifth of all messages is lost, peers are killed with SIGKILL and started
again, one sender mints, forges steps, floods, replays and sends rubbish, one receiver
shakes hands and never answers again, and one acknowledges all and returns nothing. Beside it runs
the same without them: same samples, loss and kills.

The audit counts what the honest peers' own books say they heard from the hostile key and handed to
the two receivers; between honest peers nothing may be missing or under way.

Exit code 1 if the audit is not exact, a peer ended by itself, one does not learn or has a mass
below zero, or one's memory or store grows by more than a fifth in the last half.

    python tests/soak/soak.py --minutes 20
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from soak_attacks import Hostile, Silent

import oneway as ow
from oneway.lab.fault_schedule import KillSchedule
from oneway.lab.lab import Lab
from oneway.lab.live_audit import BookReader, LiveAudit
from oneway.lab.peer_process import PeerProcess
from oneway.lab.problem import Problem
from oneway.metrics.learning_curve import spread_losses
from oneway.peer.identity.keys import key_text
from oneway.peer.store.store import read_curve
from oneway.protocol.audit import expected_holding
from oneway.protocol.bookkeeping import RETIRED
from oneway.protocol.fixed_point import ONE, Fixed, mass_of, zeros
from oneway.protocol.state import PeerState

NUM_PEERS, NUM_FEATURES = 8, 10
LOSS = 0.2
RATE = 10.0
"""Samples per second and peer: slow enough for two networks on two cores."""

KILL_EVERY = 8.0
READ_EVERY = 10.0
FEWEST_READINGS = 12
"""Also of a run of a minute."""
TURN_SECONDS = 0.2
DRAIN_SECONDS = 400.0
"""The silent receiver is presumed dead by then."""
MOST_GROWTH = 1.2
"""Of memory and store from the middle to the end."""

MOST_LOSS = 1.5
"""Against the run without bad company: a peer above it counts as not learning."""

FIRST_SAMPLES = 32
"""What the loss at the beginning is a mean of; the one at the end is of the last third."""

ELDERS = ("peer0", "peer2")
"""Never killed, so that what leaks has time to show: one in each bad company."""

VICTIMS = ("peer0", "peer1")
"""Who admits the hostile sender; the second one also gets what earns strikes."""

TRUSTERS = ("peer2", "peer3")
"""Who sends to the silent receiver, and to the one that keeps all it gets."""


@dataclass(frozen=True)
class Reading:
    """One honest peer at one moment, from outside; sizes in bytes."""

    memory: int
    descriptors: int
    store: int
    mass: float
    samples: int
    recent_loss: float


class Soak(Lab):
    """A lab whose peers are read now and then, in good or bad company.

    Attributes:
        readings: Of every peer, by name, in order of time.
        kills: How many peers were killed.
        ended: Who ended by itself, and how, in sentences.
        live_problems: What the audit of the running network found wrong, in sentences.
        bad_keys: Of participants that are not of the lab: nothing of theirs comes to rest.
    """

    def __init__(self, folder: Path, problem: Problem, seed: int) -> None:
        super().__init__(folder, problem, rate=RATE, forgiving=True)
        self.readings: dict[str, list[Reading]] = {peer.name: [] for peer in self.peers}
        self.kills = 0
        self.ended: list[str] = []
        self.live_problems: list[str] = []
        self.bad_keys: set[bytes] = set()
        self._schedule = KillSchedule(_Mortals(self), KILL_EVERY, random.Random(seed))
        self._books, self._live_audit = BookReader(), LiveAudit()
        self.set_loss(LOSS)

    @property
    def down(self) -> set[bytes]:
        """Peers that are down, and the bad: what is on its way to them may never arrive."""
        return super().down | self.bad_keys

    def invite(self, hostile: Hostile, silent: Sequence[Silent]) -> None:
        """Let some peers admit the hostile sender, and some send to those who give nothing back."""
        self.bad_keys = {hostile.peer.key, *(it.peer.key for it in silent)}
        for peer in self._known(*VICTIMS):
            self._tell(peer, lambda config, key: config.with_sender(hostile.peer.key, own_key=key))
        for peer in self._known(*TRUSTERS):
            weights = [receiver.weight for receiver in peer.config.receivers]
            mean = sum(weights) / len(weights)
            for card in (it.inbox.card for it in silent):
                self._tell(
                    peer,
                    lambda config, key, m=mean, c=card: config.with_receiver(c, m, own_key=key),
                )

    def turn(self, *, kills: bool) -> None:
        """Kill and restart what is due, and note who ended by itself."""
        self.observe()
        for peer in self.peers:
            if peer.ended_by_itself and peer.failure not in self.ended:
                self.ended.append(peer.failure)
        if kills:
            self._schedule.step(time.monotonic())

    def read(self) -> None:
        """Read every peer, and audit the network at work."""
        now, seen = time.time(), self.observe()
        for peer, observed in zip(self.peers, seen, strict=True):
            reading = _reading(peer, observed.status)
            if reading is not None and observed.state == "up":
                self.readings[peer.name].append(reading)
        view = self._live_audit.check(self._books.read(self.peers, seen, now), self._books.problems)
        self.live_problems += [said for said in view.problems if said not in self.live_problems]

    def finish(self) -> bool:
        """Bring everybody back, let everything arrive and stop; whether it all came to rest."""
        self._schedule.finish()
        is_quiet = self.drain(DRAIN_SECONDS)
        self.stop()
        return is_quiet

    def _tell(self, peer: PeerProcess, how: Callable) -> None:
        peer.change(lambda config: how(config, peer.key))


class _Mortals:
    """The peers of a lab that may be killed, as a kill schedule sees a lab."""

    def __init__(self, lab: Soak) -> None:
        self._lab = lab
        self.restart = lab.restart

    def running(self) -> list[str]:
        return [name for name in self._lab.running() if name not in ELDERS]

    def kill(self, name: str) -> None:
        self._lab.kill(name)
        self._lab.kills += 1


def _reading(peer: PeerProcess, status: object) -> Reading | None:
    """A peer's process and files; None if it does not run or has said nothing."""
    try:
        process = Path(f"/proc/{peer.pid}")
        pages = int((process / "statm").read_text().split()[1])
        descriptors = len(list((process / "fd").iterdir()))
        store = peer.home.store_path
        stored = sum(path.stat().st_size for path in store.parent.glob(f"{store.name}*"))
    except OSError:
        return None
    if status is None:
        return None
    return Reading(
        memory=4096 * pages,
        descriptors=descriptors,
        store=stored,
        mass=status.mass,
        samples=status.samples,
        recent_loss=status.recent_loss or 0.0,
    )


# What came of it.


def exchanged_with(state: PeerState, key: bytes) -> tuple[Fixed, Fixed]:
    """By a peer's own books, all that it heard from a key, and all that it counts as sent to it."""
    heard, sent = zeros(state.dim), zeros(state.dim)
    for edge in state.in_.values():
        heard = heard + edge.heard if edge.sender == key else heard
    for edge in state.out.values():
        sent = sent + edge.counted if edge.receiver == key else sent
    for end in state.settled.values():
        sent = sent + end.total if end.receiver == key else sent
    return heard, sent


def audit(lab: Soak) -> tuple[bool, list[str]]:
    """Whether every unit is accounted for, and the sentences to say so."""
    found, states = lab.audit(), [snapshot.state for snapshot in lab.snapshots().values()]
    heard, sent = zeros(states[0].dim), zeros(states[0].dim)
    for state in states:
        for key in lab.bad_keys:
            one, other = exchanged_with(state, key)
            heard, sent = heard + one, sent + other
    wrong = found.discrepancy - heard + sent
    unbalanced = sum(not np.array_equal(state.holding, expected_holding(state)) for state in states)
    lowest = min(mass_of(state.holding) for state in states)
    is_exact = not (wrong.any() or found.unsettled or unbalanced or lowest < 0)
    said = [
        f"audit {'exact' if is_exact else 'NOT exact'}: mass {found.minted_units / ONE:g} brought "
        f"by the peers, {mass_of(heard) / ONE:.6f} by the hostile sender, "
        f"{mass_of(sent) / ONE:.6f} with the two receivers, {found.held_units / ONE:.6f} held; "
        f"{mass_of(wrong):,} units of 2^-40 wrong, {int((wrong[:-1] != 0).sum())} of "
        f"{len(wrong) - 1} numerators wrong, {found.unsettled} edges not at rest, "
        f"{unbalanced} books that do not balance, smallest mass {lowest / ONE:.6f}"
    ]
    return is_exact, said


def losses(lab: Soak) -> dict[str, tuple[float, float]]:
    """Mean loss at the beginning and over the last third, by peer."""
    found = {}
    for peer in lab.peers:
        curve = spread_losses(read_curve(peer.home.store_path))
        found[peer.name] = (
            float(curve[:FIRST_SAMPLES].mean()),
            float(curve[-len(curve) // 3 :].mean()),
        )
    return found


def thirds(readings: Sequence[Reading], what: str) -> tuple[float, float, float]:
    """A quantity at start, middle and end: medians, as a process that has just begun is small."""
    values = [getattr(reading, what) for reading in readings]
    size = max(1, len(values) // 6)
    middle = len(values) // 2
    return (
        median(values[:size]),
        median(values[middle : middle + size]),
        median(values[-size:]),
    )


def report(lab: Soak, calm: Soak, is_quiet: bool) -> int:
    """Print what came of it; the exit code."""
    wrong = [] if is_quiet else ["the network did not come to rest"]
    wrong += [*lab.ended, *calm.ended, *lab.live_problems]
    mine, theirs, stored = losses(lab), losses(calm), lab.snapshots()
    columns = ("memory MB", "descriptors", "store kB", "mass")
    print(f"\n{'peer':<7}" + "".join(f"{name:^24}" for name in columns), end="")
    print(" samples   loss: first   last  /first  /without bad company")
    for peer in lab.peers:
        readings, name = lab.readings[peer.name], peer.name
        first, last = mine[name]
        memory, store = thirds(readings, "memory"), thirds(readings, "store")
        cells = [
            "{:6.1f} {:6.1f} {:6.1f}".format(*(value / 2**20 for value in memory)),
            "{:6.0f} {:6.0f} {:6.0f}".format(*thirds(readings, "descriptors")),
            "{:6.0f} {:6.0f} {:6.0f}".format(*(value / 1024 for value in store)),
            "{:6.3f} {:6.3f} {:6.3f}".format(*thirds(readings, "mass")),
        ]
        without = last / theirs[name][1]
        samples = stored[peer.key].journal.samples
        print(f"{name:<7}" + "".join(f"{cell:^24}" for cell in cells), end="")
        print(f"{samples:8,}   {first:11.4f} {last:6.4f}  {last / first:6.2f}  {without:8.2f}")
        for what, (_, middle, end) in (("memory", memory), ("store", store)):
            if end > MOST_GROWTH * middle:
                wrong.append(
                    f"the {what} of {name} grew by {end / middle - 1:.0%} in the last half"
                )
        if min(reading.mass for reading in readings) < 0.0:
            wrong.append(f"the mass of {name} was below zero")
        is_going_on = samples > thirds(readings, "samples")[1]
        if not is_going_on or last >= first or without > MOST_LOSS:
            wrong.append(
                f"{name} does not learn: loss {first:.4f} at first and {last:.4f} in the end, "
                f"{without:.2f} times that without bad company, after {samples:,} samples"
            )
    for name, run in (("with bad company", lab), ("without them", calm)):
        is_exact, said = audit(run)
        print(f"{name}: {run.kills} kills; {pushes(run):,} pushes; {'; '.join(said)}")
        if not is_exact:
            wrong.append(f"{name} the audit is not exact")
    for name in VICTIMS:
        print(f"what {name} says of the hostile sender: {conduct(lab, name)}")
    for sentence in wrong:
        print(f"WRONG: {sentence}")
    print("the soak failed" if wrong else "all is well")
    return 1 if wrong else 0


def pushes(lab: Soak) -> int:
    """How many totals were handed over, on all edges but those that were retired."""
    states = [snapshot.state for snapshot in lab.snapshots().values()]
    edges = [edge for state in states for edge in (*state.out.values(), *state.settled.values())]
    return sum(edge.seq for edge in edges if edge.epoch != RETIRED)


def conduct(lab: Soak, name: str) -> str:
    """What a victim has counted against the hostile sender since it was last started."""
    status = next(peer.status() for peer in lab.peers if peer.name == name)
    known = {sender.key: sender for sender in status.senders}
    [found] = [known[key] for key in map(key_text, lab.bad_keys) if key in known]
    rejected = ", ".join(f"{count:,} {what}" for what, count in found.rejected.items()) or "none"
    is_out = "quarantined" if found.quarantined else "not quarantined"
    return f"rejected {rejected}; clipped {found.clipped:,}; {is_out}"


def run(minutes: float, seed: int, folder: Path) -> int:
    """Run both networks side by side, then report."""
    samples = int(1.5 * 60 * minutes * RATE) + 1000
    made = ow.streams.synthetic(NUM_PEERS * samples, NUM_FEATURES, seed)
    graph = ow.TrustGraph.random(num_nodes=NUM_PEERS, max_receivers=3, seed=seed)
    problem = Problem.deal(made.table, graph, samples=samples, seed=seed)
    calm, lab = (Soak(folder / name, problem, seed) for name in ("calm", "storm"))
    # The model that predicts the opposite of what is true, far away.
    lie = np.resize(-100.0 * made.params, problem.task.dim)
    hostile = Hostile(problem.task, lie, random.Random(seed))
    silent = [Silent(problem.task), Silent(problem.task, acknowledges=True)]
    lab.invite(hostile, silent)
    with ThreadPoolExecutor() as pool, calm, lab:
        bad = [pool.submit(it.listen) for it in silent]
        try:
            for each in (calm, lab):
                _until_all_learn(each)
            victims = [peer.card for peer in lab.peers if peer.name in VICTIMS]
            bad.append(pool.submit(hostile.attack, victims))
            _watch(calm, lab, 60.0 * minutes)
            hostile.stop.set()
            is_quiet = all(list(pool.map(Soak.finish, (calm, lab))))
        finally:
            hostile.stop.set()
            for it in silent:
                it.stop.set()
        for each in bad:
            each.result()  # re-raise: an attacker that crashed invalidates the run
        done = ", ".join(f"{count:,} {what}" for what, count in hostile.did.items())
        print(f"{minutes:g} minutes, seed {seed}; the hostile sender: {done}")
        return report(lab, calm, is_quiet)


def _watch(calm: Soak, lab: Soak, seconds: float) -> None:
    """Let time pass: kill, restart and read."""
    began = next_reading = time.monotonic()
    every = min(READ_EVERY, seconds / FEWEST_READINGS)
    while time.monotonic() < began + seconds:
        for each in (calm, lab):
            each.turn(kills=True)
        if time.monotonic() >= next_reading:
            next_reading += every
            for each in (calm, lab):
                each.read()
            _show(lab, time.monotonic() - began)
        time.sleep(TURN_SECONDS)


def _until_all_learn(lab: Soak) -> None:
    while not all(seen.status and seen.status.samples for seen in lab.observe()):
        lab.turn(kills=False)
        if lab.ended:
            raise SystemExit(lab.ended[0])
        time.sleep(TURN_SECONDS)


def _show(lab: Soak, seconds: float) -> None:
    last = [readings[-1] for readings in lab.readings.values() if readings]
    masses = [reading.mass for reading in last]
    loss = sum(reading.recent_loss for reading in last) / max(1, len(last))
    print(
        f"{seconds:6.0f} s: {sum(reading.memory for reading in last) / 2**20:.0f} MB, "
        f"{sum(reading.store for reading in last) / 2**20:.2f} MB on disk, mass {min(masses):.3f} "
        f"to {max(masses):.3f}, recent loss {loss:.4f}, {lab.kills} kills",
        file=sys.stderr,
        flush=True,
    )


def main() -> None:
    """Read the options, and run in a folder that is removed afterwards."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="oneway-soak-") as folder:
        sys.exit(run(chosen.minutes, chosen.seed, Path(folder)))


if __name__ == "__main__":
    main()
