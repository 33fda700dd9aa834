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


def test_a_leave_that_nobody_takes_over_can_be_undone_and_then_finished_at_a_price(town: Town):
    alice, bob, carol = town.peer("alice"), town.peer("bob", 10_000), town.peer("carol", 20_000)
    befriend(alice, bob)
    admit(alice, carol)
    trust(carol, alice)
    for peer in (alice, bob, carol):
        peer.start()
    for peer in (alice, bob, carol):
        until_learned(peer, 50)
    bob.kill()
    until_learned(alice, 50)
    held = mass(alice)
    assert held > 0.0
    said = types(alice, "leave", "--wait", "5", code=1)
    assert "alice has not left yet" in said
    assert "bob has not acknowledged" in said
    assert alice.is_running
    until(lambda: carol.status().receivers[0].left, "carol hears that alice leaves")
    doctor = types(carol, "doctor", code=1)
    assert "alice has left the network (it said so)" in doctor
    assert "oneway peer distrust alice" in doctor
    # It stays after all, and learns and is heard again.
    assert "alice stays" in types(alice, "leave", "--undo")
    until(lambda: not alice.status().leaving, "alice follows")
    until_learned(alice, 50)
    until(lambda: not carol.status().receivers[0].left, "carol hears that alice stays")
    assert mass(alice) >= 0.5 * held
    # Then it leaves for good, with what it has.
    assert "alice has not left yet" in types(alice, "leave", "--wait", "1", code=1)
    assert "stop it first" in types(alice, "leave", "--discard", code=2)
    alice.ask_to_stop()
    assert alice.wait(PATIENCE)
    assert mass(alice) > 0.0
    assert "alice has left, and a mass of" in types(alice, "leave", "--discard")
    assert mass(alice) == 0.0
    assert "alice has left and handed over everything" in types(alice, "doctor", code=None)
