"""Real peers in bad company: what a hostile sender, receiver or double does to them has bounds."""

from __future__ import annotations

import math
import resource
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from real_peers import (
    PATIENCE,
    POLL_SECONDS,
    RATE,
    Town,
    admit,
    befriend,
    is_well,
    learned,
    mass,
    trust,
    types,
    until,
    until_learned,
    until_quiet,
)

from oneway.lab.peer_process import PeerProcess, peer_command
from oneway.lab.ports import Ports
from oneway.peer.home.home import Home
from oneway.peer.identity.keys import key_text
from oneway.peer.inflow import FIRST_UNITS, POOR, UNITS_PER_SECOND
from oneway.protocol.fixed_point import ONE, mass_of
from oneway.protocol.messages import Ack, Data, Hello, Stale, State
from oneway.protocol.tags import digest_of
from oneway.task.task import MOST_AT_ONCE, Task
from oneway.testing.hostile import Asked, ForgedEdge, HostilePeer, Inbox, Line, amount_of
from oneway.testing.records import replace

KNOWS_NOTHING = math.log(2.0)
"""The loss of a model that gives both classes the same probability, as every peer's first does."""

# What is promised of a peer in such company.

KEPT = 0.5
"""What a peer with one receiver still has when that receiver never answers: the share it keeps."""

STATES_PER_HELLO = 1
"""No hello is answered with more bytes than one state has."""

MOST_GROWTH = 128 * 2**20
"""Bytes of memory that 100 hellos at 40,000 parameters, 320 kB each, may cost."""

FAIR = 400
"""Samples to compare losses over, wherever in its stream a peer is on a busy machine: alone, the
means over any two such stretches differ by a third at most (of 100 and 200 samples, by twice)."""

TWINS_SECONDS = 30.0
"""By then one of two copies has stopped, if it started at once."""


def most_held(num_senders: int, seconds: float) -> float:
    """What a peer can hold after so long a life, whatever its senders bring."""
    each = (FIRST_UNITS + UNITS_PER_SECOND * seconds) / ONE + MOST_AT_ONCE
    return POOR / ONE + num_senders * each


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with Town(tmp_path / "town") as made:
        yield made


def memory_peak(peer: PeerProcess) -> int:
    """The most bytes that its process ever had in memory."""
    for line in Path(f"/proc/{peer.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise AssertionError("this system does not tell the peak of a process's memory")


# A sender that mints mass.


def mint_headlong(edge: ForgedEdge, line: Line, model: np.ndarray, town: Town) -> None:
    """All that one message may carry, again and again, without waiting for an answer."""
    total = edge.next_total(amount_of(64 * town.task.mass_cap, model))
    line.push(total)
    edge.confirm(total)


def mint_patiently(edge: ForgedEdge, _: Line, model: np.ndarray, town: Town) -> None:
    """As much as is taken: what is refused is offered again in smaller parts."""
    amount, most = town.task.mass_cap, 64 * town.task.mass_cap
    while amount > 1e-6:
        taken = edge.hand_over(edge.next_total(amount_of(min(amount, most), model)), seconds=0.5)
        if taken is None:
            return
        amount = 2 * amount if taken else amount / 4
        if taken and amount > most:
            return


@pytest.mark.parametrize("mint", [mint_headlong, mint_patiently])
def test_a_sender_that_mints_mass_neither_drowns_nor_stops_its_receiver(town: Town, mint):
    bob, alice, mallory = town.peer("bob"), town.peer("alice", 10_000), town.hostile()
    befriend(alice, bob)
    admit(bob, mallory)
    began = time.monotonic()
    for peer in (alice, bob):
        peer.start()
    until_learned(bob, 200)
    assert until_learned(bob, 100) < KNOWS_NOTHING
    line = mallory.dial(bob.card)
    edge = line.edge(epoch=7)
    assert edge.open(PATIENCE)
    truth = bob.snapshot().state.estimate
    modest = edge.next_total(amount_of(0.1, truth), pushes=1)
    assert edge.hand_over(modest, PATIENCE), "what an honest sender says is taken"
    # The model that predicts the opposite of what is true, as far away as is believed.
    lie = -np.sign(truth) * town.task.radius
    seen = [mass(bob)]
    deadline = time.monotonic() + 8.0
    while time.monotonic() < deadline:
        mint(edge, line, lie, town)
        if len(seen) < 10_000:
            seen.append(mass(bob))
    for peer in (alice, bob):
        is_well(peer)
    assert min(seen) > 0.0
    assert max(seen) <= most_held(2, time.monotonic() - began)
    until_learned(bob, 200)
    for peer in (alice, bob):
        assert until_learned(peer, 200) < KNOWS_NOTHING
        assert 0.0 < mass(peer) <= most_held(2, time.monotonic() - began)


# Hellos without end.

DIM = 40_000
LARGE_TASK = f"""\
label = "y"
model = "softmax"
classes = {[str(k) for k in range(200)]}
learning_rate = 0.01
[features]
{chr(10).join(f"x{k} = {{}}" for k in range(199))}
"""


def test_many_hellos_cost_a_large_model_neither_its_memory_nor_its_bandwidth(tmp_path: Path):
    (tmp_path / "task.toml").write_text(LARGE_TASK)
    task = Task.read(tmp_path / "task.toml")
    assert task.dim == DIM
    with Ports() as ports, HostilePeer(task) as mallory, ExitStack() as ending:
        home = Home.create(tmp_path / "bob", "bob", tmp_path / "task.toml", ports.reserve())
        bob = PeerProcess(home, RATE, peer_command(), niceness=0)
        ending.callback(bob.kill)
        bob.samples_path.write_text(",".join([*(f"x{k}" for k in range(199)), "y"]) + "\n")
        admit(bob, mallory)
        bob.start()
        line = mallory.dial(bob.card)
        assert line.edge(epoch=1).open(PATIENCE)
        assert bob.pid is not None
        # A peer that takes all the memory there is would take it from everybody else, too.
        resource.prlimit(bob.pid, resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
        before, line.bytes_in = memory_peak(bob), 0
        for epoch in range(2, 101):
            assert line.push(mallory.forge(Hello, epoch=epoch))
        answers = sum(isinstance(reply, State) for reply in line.replies(10.0))
        is_well(bob)
        assert memory_peak(bob) - before <= MOST_GROWTH
        assert answers <= 99 * STATES_PER_HELLO
        assert line.bytes_in <= 99 * STATES_PER_HELLO * 8 * (DIM + 100)
        # And somebody who asks once more is still answered.
        assert line.edge(epoch=1).open(PATIENCE)


# A receiver that never answers.


def test_a_silent_receiver_gets_no_more_than_its_share(town: Town):
    alice, mallory = town.peer("alice"), town.hostile()
    inbox = mallory.listen()
    trust(alice, inbox)
    alice.start()
    until(lambda: inbox.be_silent(POLL_SECONDS) or learned(alice)[0] > 0, "alice learns")
    seen = []
    while learned(alice)[0] < 400:
        inbox.be_silent(POLL_SECONDS)
        is_well(alice)
        seen.append(mass(alice))
    assert min(seen) < 1.0, "nothing was handed over, so nothing is shown"
    assert min(seen) >= KEPT
    assert until_learned(alice, 100) < KNOWS_NOTHING


# A receiver that replays what its sender once said.


class Replayer:
    """Circulates what it gets at first; then claims to have heard any of the totals it got."""

    def __init__(self, mallory: HostilePeer, inbox: Inbox, edge: ForgedEdge) -> None:
        self.heard: list[Data] = []
        self._mallory = mallory
        self._inbox = inbox
        self._edge = edge
        self._last: Asked | None = None
        self._boot = 1

    @property
    def handed_over(self) -> float:
        return mass_of(self.heard[-1].total) / ONE if self.heard else 0.0

    def circulate(self, seconds: float) -> None:
        """Acknowledge what comes, and hand the same amount back."""
        for asked in self._inbox.asked(seconds):
            self._last, said = asked, asked.message
            if isinstance(said, Hello):
                self._inbox.grant(asked)
            if not isinstance(said, Data) or (self.heard and said.seq <= self.heard[-1].seq):
                continue
            before = self.heard[-1].total if self.heard else np.zeros_like(said.total)
            self.heard.append(said)
            self._inbox.reply(
                asked,
                self._mallory.forge(
                    Ack,
                    epoch=said.epoch,
                    seq=said.seq,
                    digest=digest_of(said.total),
                    tag=said.tag,
                    boot=self._boot,
                ),
            )
            back = self._edge.next_total(said.total - before)
            while self._edge.hand_over(back, seconds=1.0) is None:
                assert self._edge.is_open or self._edge.open(PATIENCE)

    def claim(self, total: Data, seconds: float) -> bool:
        """Make the sender ask, and answer with one of its own totals; whether it asked."""
        assert self._last is not None
        epoch = total.epoch
        self._inbox.reply(self._last, self._mallory.forge(Stale, epoch=epoch, boot=self._boot))
        for asked in self._inbox.asked(seconds):
            self._last = asked
            if isinstance(asked.message, Hello) and asked.message.epoch == epoch:
                self._inbox.grant(
                    asked, seq=total.seq, total=total.total, tag=total.tag, boot=self._boot
                )
                return True
        return False


def test_a_receiver_that_replays_old_totals_never_brings_its_sender_below_zero(town: Town):
    alice, bob, mallory = town.peer("alice"), town.peer("bob", 10_000), town.hostile()
    inbox = mallory.listen()
    trust(alice, inbox)
    admit(alice, mallory)
    admit(bob, alice)
    for peer in (alice, bob):
        peer.start()
    edge = mallory.dial(alice.card).edge(epoch=7)
    assert edge.open(PATIENCE)
    replayer = Replayer(mallory, inbox, edge)
    until(lambda: replayer.circulate(POLL_SECONDS) or replayer.handed_over > 30.0, "it circulates")
    # What alice takes back because of the first claim, she hands on to somebody who keeps it.
    trust(alice, bob)
    until(lambda: replayer.circulate(POLL_SECONDS) or mass(bob) > 1.2, "bob hears from alice")
    seen, most = [mass(alice), mass(bob)], 2.0 + replayer.handed_over
    for turn in range(3):
        for claimed in (replayer.heard[0], replayer.heard[-1]):
            # Later it may not ask at all; the first time it is only to be waited for.
            was_asked = replayer.claim(claimed, seconds=5.0 if turn else PATIENCE)
            assert was_asked or turn > 0, "alice asks once what was heard, as of a restored backup"
            samples = learned(alice)[0]
            while learned(alice)[0] < samples + 40:
                is_well(alice)
                seen += [mass(alice), mass(bob)]
    for peer in (alice, bob):
        is_well(peer)
    assert min(seen) >= 0.0
    assert max(seen) <= most
    [shown] = alice.status().receivers[:1]
    assert shown.key == key_text(mallory.key)
    assert shown.claims >= 3, "what it claims is counted, and shown"
    assert f"mallory has claimed {shown.claims} times" in types(alice, "doctor", code=None)
    assert until_learned(bob, 200) < KNOWS_NOTHING


# One key that runs twice.


def copied(peer: PeerProcess, town: Town) -> PeerProcess:
    """A stopped peer's folder, as a backup has it, to listen somewhere else."""
    folder = shutil.copytree(peer.home.folder, town.folder / "restored")
    copy, address = town.process_of(Home.open(folder)), town.address()
    copy.home.change(lambda config: replace(config, listen=address))
    return copy


def test_a_copy_of_a_peer_that_runs_stops_itself_and_nobody_is_harmed(town: Town):
    alice, bob = town.peer("alice"), town.peer("bob", 10_000)
    befriend(alice, bob)
    for peer in (alice, bob):
        peer.start()
    until_learned(alice, 200)
    before = until_learned(bob, FAIR)
    alice.ask_to_stop()
    assert alice.wait(PATIENCE)
    copy, most = copied(alice, town), 2.0 + mass(alice)  # a copy has the same mass once more
    alice.start()
    until_learned(alice, 100)
    copy.start()
    seen, deadline = [], time.monotonic() + TWINS_SECONDS
    while not copy.ended_by_itself:
        is_well(alice)
        seen += [mass(peer) for peer in (alice, copy, bob)]
        held = f"; masses were between {min(seen):.4g} and {max(seen):.4g}"
        assert time.monotonic() < deadline, f"both copies of alice go on{held}"
    for _ in range(20):
        until_learned(bob, 10)
        seen += [mass(peer) for peer in (alice, copy, bob)]
    for peer in (alice, bob):
        is_well(peer)
    assert "Traceback" not in copy.log_path.read_text()
    assert "Error: another copy of alice runs" in copy.failure
    assert min(seen) >= 0.0
    assert max(seen) <= most
    # It is named everywhere: by the copy, by the one that goes on, and by its neighbour.
    for peer, said in (
        (copy, "another copy of alice runs with the same key"),
        (alice, "another life of alice with the same key spoke to bob"),
        (bob, "two copies of alice ran with one key"),
    ):
        assert said in types(peer, "doctor", code=1)
        assert said in types(peer, "status")
    assert until_learned(bob, FAIR) < 1.5 * before
    assert until_learned(alice, 100) < KNOWS_NOTHING
    # What the copy handed over is in alice's books, as if she had.
    assert not until_quiet(alice, bob).any()


def test_of_two_copies_that_start_together_one_stops_itself(town: Town):
    alice, bob = town.peer("alice"), town.peer("bob", 10_000)
    befriend(alice, bob)
    for peer in (alice, bob):
        peer.start()
    until_learned(alice, 200)
    alice.ask_to_stop()
    assert alice.wait(PATIENCE)
    twins, most = (alice, copied(alice, town)), 2.0 + mass(alice)
    for twin in twins:
        twin.start()
    seen: list[float] = []
    until(
        lambda: (
            seen.extend(mass(peer) for peer in (*twins, bob))
            or any(twin.ended_by_itself for twin in twins)
        ),
        "one of the copies of alice stops",
    )
    until_learned(bob, 200)
    [stopped] = [twin for twin in twins if twin.ended_by_itself]
    [left] = [twin for twin in twins if not twin.ended_by_itself]
    is_well(left)
    is_well(bob)
    assert "Error: another copy of alice runs" in stopped.failure
    assert min(seen) >= 0.0
    assert max(seen) <= most
    assert until_learned(bob, 200) < KNOWS_NOTHING
    assert until_learned(left, 100) < KNOWS_NOTHING
