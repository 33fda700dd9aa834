"""A peer with a mass that cannot be starts again from one unit, with books that balance."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from plain import PLAIN

from oneway.errors import ConfigError
from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.machine import check_startup
from oneway.peer.peer import Peer
from oneway.peer.repair import repair, what_it_costs
from oneway.peer.store.store import read_snapshot
from oneway.protocol.audit import books_of, expected_holding
from oneway.records import MASS_UNITS
from oneway.task.task import Feature, Task

TASK = Task("logistic", "occupied", (Feature("light"), Feature("noise")), ("no", "yes"), **PLAIN)
SAMPLE = {"light": 1.0, "noise": -2.0}


@pytest.fixture
def alice(tmp_path: Path) -> Home:
    """A peer that has learned from a few samples."""
    (tmp_path / "task.toml").write_text(TASK.to_toml())
    home = Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml")
    with closing(Peer(home.folder)) as peer:
        for _ in range(5):
            peer.learn_one(SAMPLE, "yes")
    return home


def estimate(home: Home) -> np.ndarray | None:
    return Learner(TASK).stored_estimate(read_snapshot(home.store_path), TASK.radius)


def test_too_much_mass_is_written_off_and_the_model_stays(alice: Home, flood: Callable):
    excess = 2.0 * TASK.impossible_mass
    flood(alice, excess, model=0.25)
    before = estimate(alice)
    assert before is not None
    said = repair(alice)
    assert f"{excess + 1.0:,.6g}" in said
    assert f"{excess:,.6g} of mass is written off" in said
    state = read_snapshot(alice.store_path).state
    assert state.holding[-1] == MASS_UNITS
    np.testing.assert_array_equal(state.holding, expected_holding(state))
    np.testing.assert_allclose(estimate(alice), before, atol=1e-9)
    assert check_startup(alice).store_problem == ""


def test_negative_mass_starts_again_at_the_model_it_was_minted_at(alice: Home, flood: Callable):
    flood(alice, -40.0)
    assert "-40" in what_it_costs(alice)
    assert "began with" in repair(alice)
    after = read_snapshot(alice.store_path)
    assert after.state.holding[-1] == MASS_UNITS
    assert books_of(after.state).balances
    np.testing.assert_array_equal(after.state.holding, after.state.minted)
    assert after.journal.samples == 5


def test_a_repaired_peer_runs_and_learns_again(alice: Home, flood: Callable):
    flood(alice, -40.0)
    with closing(Peer(alice.folder)) as peer:
        before = peer.node.snapshot.state.mass
    assert before < 0
    repair(alice)
    with closing(Peer(alice.folder)) as peer:
        for _ in range(50):
            peer.learn_one(SAMPLE, "yes")
        assert peer.predict_one(SAMPLE) == "yes"
        assert peer.node.snapshot.state.mass == 1.0


@pytest.mark.parametrize("ask", [repair, what_it_costs])
def test_a_peer_with_nothing_to_repair_is_left_alone(alice: Home, tmp_path: Path, ask: Callable):
    before = alice.store_path.read_bytes()
    with pytest.raises(ConfigError, match=r"alice holds a mass of 1, .* nothing to repair"):
        ask(alice)
    assert alice.store_path.read_bytes() == before
    new = Home.create(tmp_path / "new", "new", tmp_path / "task.toml")
    with pytest.raises(ConfigError, match="new has never run"):
        ask(new)
