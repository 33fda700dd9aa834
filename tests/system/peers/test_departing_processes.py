"""Real peers that leave while others are away: who knows, what is said, and exact books."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from os import kill
from pathlib import Path

import pytest
from real_peers import (
    PATIENCE,
    Town,
    admit,
    befriend,
    is_well,
    mass,
    states,
    trust,
    types,
    until,
    until_learned,
    until_quiet,
)

from oneway.lab.peer_process import PeerProcess
from oneway.protocol.audit import discrepancy
from oneway.protocol.bookkeeping import RETIRED


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with Town(tmp_path / "town") as made:
        yield made


def unconfirmed(sender: PeerProcess, receiver: PeerProcess) -> int:
    """How many totals a receiver has taken in without its sender having heard, by their stores."""
    sent, heard = states(sender, receiver)
    return sum(
        heard.in_[sender.key, epoch].seq - edge.acked
        for (key, epoch), edge in sent.out.items()
        if key == receiver.key and (sender.key, epoch) in heard.in_
    )


def test_a_sender_that_never_heard_what_arrived_learns_it_from_a_witness(town: Town):
    """The receiver is gone for good when it returns; only a neighbour of both has the receipt."""
    sam, rita, tom = (town.peer(name, 10_000 * k) for k, name in enumerate(("sam", "rita", "tom")))
    for sender, receiver in ((sam, rita), (rita, tom), (tom, sam)):
        admit(receiver, sender)
        trust(sender, receiver)
    for peer in (sam, rita, tom):
        peer.start()
    for peer in (sam, rita, tom):
        until_learned(peer, 50)

    def loses_power_in_time() -> bool:
        assert sam.pid is not None
        assert rita.pid is not None
        kill(rita.pid, signal.SIGSTOP)
        until_learned(sam, 20)  # what it pushes meanwhile is not answered
        kill(sam.pid, signal.SIGSTOP)
        kill(rita.pid, signal.SIGCONT)
        until_learned(rita, 20)  # by then, all that was under way has arrived
        sam.kill()
        if unconfirmed(sam, rita) > 0:
            return True
        sam.start()
        until_learned(sam, 20)
        return False

    until(loses_power_in_time, "sam has not heard that something arrived")
    assert mass(rita) > 0.0
    said = types(rita, "leave", "--wait", f"{PATIENCE:g}")
    assert "rita has handed over everything and stopped; sam has not heard that you leave" in said
    until(lambda: not rita.is_running, "rita stops")
    assert mass(rita) == 0.0
    [kept] = states(tom)
    assert {(receiver, sender) for receiver, sender, _ in kept.receipts} == {(rita.key, sam.key)}
    assert unconfirmed(sam, rita) > 0
    sam.start()

    def knows() -> bool:
        [state] = states(sam)
        has_ended = any(key == rita.key and epoch != RETIRED for key, epoch in state.settled)
        # It may look for her again, over a new edge, but counts nothing as handed over on it.
        return has_ended and not any(
            edge.seq for edge in state.out.values() if edge.receiver == rita.key
        )

    until(knows, "sam knows how its edge to rita ended")
    until_learned(sam, 50)
    until(lambda: any(peer.left for peer in sam.status().receivers), "sam shows that rita left")
    assert "rita has left the network (it said so)" in types(sam, "doctor", code=1)
    for peer in (sam, tom):
        is_well(peer)
    sam.change(lambda config: config.without_receiver("rita"))
    until_quiet(sam, tom)
    # All that was ever brought in is in three stores, to the last unit.
    assert not discrepancy(states(sam, rita, tom)).any()
    assert sum(state.mass for state in states(sam, rita, tom)) == 3.0


def test_a_receiver_that_is_stopped_is_called_unresponsive_and_no_impostor(town: Town):
    """The kernel accepts connections for a process that SIGSTOP has stopped."""
    alice, bob = town.peer("alice"), town.peer("bob", 10_000)
    befriend(alice, bob)
    for peer in (alice, bob):
        peer.start()
    until_learned(alice, 50)
    assert bob.pid is not None
    kill(bob.pid, signal.SIGSTOP)
    links: set[str] = set()

    def is_unresponsive() -> bool:
        links.update(receiver.link for receiver in alice.status().receivers)
        return "unresponsive" in links

    until(is_unresponsive, "alice finds bob unresponsive")
    assert "stranger" not in links
    doctor = types(alice, "doctor", code=1)
    assert "bob has not answered" in doctor
    assert "distrust" not in doctor
    kill(bob.pid, signal.SIGCONT)
    until(lambda: alice.status().receivers[0].link == "connected", "bob is back")
