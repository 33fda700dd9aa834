"""Real peers in bad company: what a hostile sender, receiver or double does to them has bounds."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_peers import (
    PATIENCE,
    Town,
    befriend,
    is_well,
    mass,
    types,
    until_learned,
    until_quiet,
)
from rewritten import rewrite

from oneway.lab.peer_process import PeerProcess
from oneway.peer.home.home import Home

KNOWS_NOTHING = math.log(2.0)
"""The loss of a model that gives both classes the same probability, as every peer's first does."""

FAIR = 400
"""Samples to compare losses over, wherever in its stream a peer is on a busy machine: alone, the
means over any two such stretches differ by a third at most (of 100 and 200 samples, by twice)."""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with Town(tmp_path / "town") as made:
        yield made


# One key that runs twice.


def copied(peer: PeerProcess, town: Town) -> PeerProcess:
    """A stopped peer's folder, as a backup has it, to listen somewhere else."""
    folder = shutil.copytree(peer.home.folder, town.folder / "restored")
    copy, address = town.process_of(Home.open(folder)), town.address()
    rewrite(copy.home, listen=address)
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
    seen, deadline = [], time.monotonic() + PATIENCE
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
    # What bob gives a copy again, since it has forgotten it, he mints, and says so.
    minted = sum(peer.status().replenished for peer in (alice, copy, bob))
    assert max(seen) <= most + minted
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
