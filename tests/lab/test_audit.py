"""The audit is exact: a single unit too much or too little is seen, wherever it is hidden."""

from __future__ import annotations

import numpy as np
import pytest
from builders import replace

from oneway.errors import StoreError
from oneway.lab.audit import audit, num_unsettled
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, PeerStore, read_snapshot
from oneway.protocol.fixed_point import ONE, fixed
from oneway.protocol.incoming import mint
from oneway.protocol.state import InEdge, OutEdge, OutPhase, PeerState
from oneway.protocol.transitions import descend, keep_mass

ANN, BOB = b"a" * 32, b"b" * 32
HANDED = fixed(np.array([0.25, -1.5]), 0.375)


def network(heard=HANDED, acked: int = 1) -> dict[bytes, Snapshot]:
    """Ann has handed something to Bob; both have minted and learned."""
    ann, bob = (
        descend(mint(PeerState.new(2, ledger, 1), np.array([1.0, 2.0])), np.array([0.1, 0.2]))
        for ledger in (1, 2)
    )
    totals = {0: 0 * HANDED, 1: HANDED} if acked == 0 else {1: HANDED}
    edge = OutEdge(BOB, 9, 1, OutPhase.OPEN, totals, seq=1, acked=acked)
    ann = replace(ann, holding=ann.holding - HANDED, out={(BOB, 9): edge})
    bob = replace(
        bob, holding=bob.holding + heard, in_={(ANN, 9): InEdge(ANN, 9, heard=heard, seq=1)}
    )
    return {ANN: Snapshot(ann), BOB: Snapshot(bob)}


def test_a_quiet_network_is_exact_in_mass_and_numerator():
    found = audit(network())
    assert found.is_exact
    assert found.minted_units == found.held_units == 2 * ONE
    assert found.sentences == [
        "mass 2 x 2^40 = 2,199,023,255,552 units: exact",
        "numerator of 2 numbers: exact",
    ]


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (2, "mass 2 x 2^40 = 2,199,023,255,552 units: 1 missing"),
        (0, "numerator of 2 numbers: 1 are wrong"),
    ],
)
def test_one_missing_unit_is_seen(place, sentence):
    short = HANDED.copy()
    short[place] -= 1
    found = audit(network(heard=short))
    assert not found.is_exact
    assert found.discrepancy[place] == -1
    assert sentence in found.sentences


def test_a_store_whose_own_books_balance_but_lie_is_caught(tmp_path):
    stored = {}
    # Bob claims to have heard more mass than Ann ever sent.
    for key, snapshot in network(heard=HANDED + np.array([0, 0, 5])).items():
        path = tmp_path / f"{key[:1].decode()}.sqlite"
        PeerStore.create(path, Owner(key, b"t" * 16, 2), snapshot).close()
        stored[key] = read_snapshot(path)
    found = audit(stored)
    assert found.discrepancy.tolist() == [0, 0, 5]
    assert found.sentences[0].endswith("units: 5 too many")


def test_a_store_whose_own_books_do_not_balance_is_refused(tmp_path):
    bob = network()[BOB]
    path = tmp_path / "peer.sqlite"
    store = PeerStore.create(path, Owner(BOB, b"t" * 16, 2), bob)
    richer = bob.state.holding + np.array([0, 0, 1])
    store.commit(replace(bob, state=replace(bob.state, holding=richer)))
    store.close()
    with pytest.raises(StoreError, match="books"):
        read_snapshot(path)


def test_mass_that_a_peer_minted_or_burned_because_of_its_bounds_is_in_the_books():
    states = network()
    for bounds in ((2.0, 4.0), (0.25, 0.25)):
        bob = states[BOB].state
        moved = keep_mass(bob, bounds)
        assert moved.mass in bounds
        found = audit({**states, BOB: Snapshot(moved)})
        assert found.is_exact, found.sentences


def test_a_network_that_is_not_at_rest_proves_nothing():
    waiting = network(acked=0)
    assert num_unsettled(waiting) == 1
    found = audit(waiting)
    assert not found.discrepancy.any()
    assert not found.is_exact


@pytest.mark.parametrize("dead", [ANN, BOB])
def test_what_never_reached_or_left_a_dead_peer_is_counted_where_it_is(dead):
    on_its_way = network(heard=0 * HANDED, acked=0)
    assert audit(on_its_way).discrepancy.tolist() == (-HANDED).tolist()
    found = audit(on_its_way, down={dead})
    assert found.is_exact
    assert found.stranded.tolist() == HANDED.tolist()
    assert any("waits for peers that are down" in text for text in found.sentences)


def test_a_dead_peer_excuses_nothing_between_the_others():
    states = network(heard=0 * HANDED)
    states[b"c" * 32] = Snapshot(mint(PeerState.new(2, 3, 1), np.zeros(2)))
    assert not audit(states, down={b"c" * 32}).is_exact
