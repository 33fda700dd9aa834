"""Leaving: the books are exact whoever was away, and whoever returns when; and it can be undone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from town import LIMITS, SAMPLE, Town, config, key_of, quiet

from oneway.peer.inbox import REOPEN_SECONDS
from oneway.peer.send_schedule import HEARTBEAT
from oneway.protocol.fixed_point import ONE, mass_of
from oneway.protocol.state import OutPhase, Told

SOON, LATER = 10.0, 2 * LIMITS.presume_dead_after

COMMON = {
    "sends to a neighbour": {"sam": ["rita", "tom"], "rita": ["tom"], "tom": []},
    "hears a neighbour": {"sam": ["rita"], "rita": ["tom"], "tom": ["sam"]},
    "with another sender": {"sam": ["rita"], "uma": ["rita", "sam"], "rita": ["tom"], "tom": []},
}
PATHS = {
    "down": {"sam": ["rita"], "rita": ["tom"], "tom": ["uma"], "uma": ["vic"], "vic": ["sam"]},
    "up": {"sam": ["rita", "vic"], "vic": ["uma"], "uma": ["tom"], "tom": [], "rita": ["tom"]},
}


def absorbed_and_unheard(edges) -> tuple[Town, object]:
    """Rita has what Sam pushed, and Sam lost its power before it could hear so."""
    town = quiet(**edges)
    for name in town.nodes:
        town.learn(name)
    for _ in range(int(HEARTBEAT) + 1):  # the next one is far away
        town.pass_time(1.0)
    sam = town.nodes["sam"]
    for name, node in town.nodes.items():
        if name != "sam":
            node.follow(config(name, edges[name], paused=True))
    before = town.state("rita").mass
    town.time += 1.0
    sam.learn(SAMPLE, "no")
    town.commit("sam", sam)
    town.receive()
    assert town.state("rita").mass > before
    assert any(edge.in_flight for edge in town.state("sam").out.values())
    disk = town.power_off("sam")
    town.exchange()
    for name, node in town.nodes.items():
        node.follow(config(name, edges[name]))
    return town, disk


def leave(town: Town, name: str, edges, patience: float = 10.0) -> bool:
    """Tell a peer to leave, and wait; whether it is done."""
    town.nodes[name].follow(config(name, edges[name], leaving=True))
    until = town.time + patience
    while town.time < until and not town.nodes[name].is_drained:
        town.pass_time(0.5)
    return town.nodes[name].is_drained


def settle(town: Town, seconds: float = 40 * HEARTBEAT) -> None:
    until = town.time + seconds
    while town.time < until:
        town.pass_time(5.0)


def check_all_is_there(town: Town, num_peers: int) -> None:
    """Every unit of mass that was ever brought is held by who is up, and nothing is under way."""
    town.check_books()
    assert sum(mass_of(state.holding) - mass_of(state.owed) for state in town.states()) == (
        num_peers * ONE
    )
    assert town.strikes() == 0


@pytest.mark.parametrize("away", [SOON, LATER], ids=["soon", "later"])
@pytest.mark.parametrize("edges", [*COMMON.values(), *PATHS.values()], ids=[*COMMON, *PATHS])
def test_who_was_away_when_its_receiver_left_learns_from_others_how_their_edge_ended(edges, away):
    town, disk = absorbed_and_unheard(edges)
    assert leave(town, "rita", edges)
    assert town.nodes["rita"].unheard == [key_of("sam")]
    [edge] = [it for it in town.state("rita").in_.values() if it.sender == key_of("sam")]
    assert edge.told is Told.WITNESS
    town.power_off("rita")
    town.pass_time(away)
    town.power_on("sam", disk, config("sam", edges["sam"]))
    settle(town)
    check_all_is_there(town, len(edges))
    assert all(
        it.receiver != key_of("rita") or it.phase is not OutPhase.DEAD
        for it in town.state("sam").out.values()
    )


@pytest.mark.parametrize("edges", COMMON.values(), ids=COMMON)
def test_a_receipt_sets_right_who_has_presumed_the_leaver_dead_already(edges):
    """Sam returns while everybody who has a receipt is away too, and gives Rita up."""
    town, disk = absorbed_and_unheard(edges)
    assert leave(town, "rita", edges)
    town.power_off("rita")
    others = {name: town.power_off(name) for name in list(town.nodes)}
    town.power_on("sam", disk, config("sam", edges["sam"]))
    town.pass_time(1.0)
    town.pass_time(LATER)
    [dead] = [
        it
        for it in town.state("sam").out.values()
        if it.phase is OutPhase.DEAD and it.receiver == key_of("rita")
    ]
    assert dead.in_flight
    for name, saved in others.items():
        town.power_on(name, saved, config(name, edges[name]))
    settle(town)
    check_all_is_there(town, len(edges))


def test_a_leaver_waits_for_a_sender_that_is_away_and_names_it():
    """Nobody else could keep a receipt: the only neighbour is the one that is away."""
    edges = {"sam": ["rita"], "rita": ["sam"]}
    town, disk = absorbed_and_unheard(edges)
    assert not leave(town, "rita", edges)
    assert town.nodes["rita"].unheard == [key_of("sam")]
    town.power_on("sam", disk, config("sam", edges["sam"]))
    for _ in range(40):
        town.pass_time(0.5)
    assert town.nodes["rita"].is_drained
    assert town.nodes["rita"].unheard == []
    town.power_off("rita")
    settle(town)
    check_all_is_there(town, 2)


def test_a_leaver_is_not_done_before_a_witness_keeps_its_receipt_for_good():
    edges = COMMON["sends to a neighbour"]
    town, _ = absorbed_and_unheard(edges)
    rita, tom = town.nodes["rita"], town.nodes["tom"]
    rita.follow(config("rita", ["tom"], leaving=True))
    for _ in range(20):
        town.time += 0.5
        for name, node in town.nodes.items():
            node.tick()
            town.send(name, node.overdue())
            if name == "tom":  # what it cannot make durable, it does not confirm
                if (batch := node.begin()) is not None:
                    node.failed(batch, "the disk is full")
            else:
                town.commit(name, node)
        town.receive()
    assert not rita.is_drained
    assert tom.snapshot.state.receipts
    for _ in range(20):
        town.pass_time(0.5)
    assert rita.is_drained


def test_a_false_receipt_moves_nobody():
    """Only a total that Sam said itself, as its own tag proves, ends an edge."""
    edges = COMMON["sends to a neighbour"]
    town, disk = absorbed_and_unheard(edges)
    assert leave(town, "rita", edges)
    tom = town.nodes["tom"]
    [(name, kept)] = tom.snapshot.state.receipts.items()
    forged = replace(kept, tag=bytes(16))
    tom._set(replace(tom.snapshot.state, receipts={name: forged}))
    town.power_off("rita")
    town.power_on("sam", disk, config("sam", edges["sam"]))
    settle(town)
    assert any(edge.receiver == key_of("rita") for edge in town.state("sam").out.values())
    town.check_books()


# Undone, or finished otherwise.


def test_a_leave_can_be_undone_and_all_is_as_before():
    edges = {"alice": ["bob"], "bob": ["carol"], "carol": ["alice"]}
    town = quiet(**edges)
    for name in edges:
        town.learn(name)
    assert leave(town, "alice", edges)
    assert town.state("bob").lives[key_of("alice")].leaving
    assert town.state("carol").lives[key_of("alice")].leaving
    alice = town.nodes["alice"]
    alice.follow(config("alice", ["bob"]))
    town.exchange()
    assert not alice.is_drained
    assert alice.unheard == []
    for _ in range(int(REOPEN_SECONDS) + 5):
        town.pass_time(1.0)
    for _ in range(10):
        for name in edges:
            town.nodes[name].learn(SAMPLE, "yes")
        town.pass_time(1.0)
    assert not town.state("bob").lives[key_of("alice")].leaving
    assert not town.state("carol").lives[key_of("alice")].leaving
    assert town.state("alice").mass > 0.1
    assert [edge.phase for edge in town.state("carol").out.values()] == [OutPhase.OPEN]
    settle(town)
    check_all_is_there(town, 3)


@pytest.mark.parametrize("returns", [True, False], ids=["it returns", "another one takes over"])
def test_a_leave_goes_on_when_somebody_is_there_again(returns):
    """Presumed dead, the receiver has given back what it never had: it still must go somewhere."""
    edges = {"alice": ["bob"], "bob": [], "carol": []}
    town = quiet(**edges)
    town.learn("alice")
    disk = town.power_off("bob")
    assert not leave(town, "alice", edges, patience=LATER)
    assert town.state("alice").mass == 0.5
    if returns:
        town.power_on("bob", disk, config("bob"))
    else:
        town.nodes["alice"].follow(config("alice", ["carol"], leaving=True))
    for _ in range(60):
        town.pass_time(1.0)
    assert town.nodes["alice"].is_drained
    assert town.state("alice").mass == 0.0
    if not returns:
        town.power_on("bob", disk, config("bob"))
    settle(town)
    check_all_is_there(town, 3)
