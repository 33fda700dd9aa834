"""What the page learns from a peer's folder, whatever state the folder is in."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain import PLAIN

from oneway.errors import DataError, StoreError
from oneway.peer.home.home import Home
from oneway.peer.page_source import FolderSource
from oneway.peer.peer import Peer
from oneway.tables import Number
from oneway.task.task import Task
from oneway.web.peer_page import PeerSource

TASK = Task("logistic", "occupied", (Number("light", center=200.0),), ("no", "yes"), **PLAIN)


def make(folder: Path, name: str) -> Home:
    task = folder.parent / "task.toml"
    task.write_text(TASK.to_toml())
    return Home.create(folder, name, task)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make(tmp_path / "alice", "alice")


@pytest.fixture
def bobs_card(tmp_path: Path) -> str:
    bob = make(tmp_path / "bob", "bob")
    return str(bob.config().card(bob.keys().public))


def teach(home: Home, count: int) -> None:
    with Peer(home.folder) as peer:
        for number in range(count):
            peer.learn_one({"light": 400 * (number % 2)}, "yes" if number % 2 else "no")


def test_a_peer_that_never_ran_has_a_card_and_a_form(home: Home):
    source: PeerSource = FolderSource(home)
    look = source.look()
    assert (look.name, look.process, look.status, look.problem) == ("alice", None, None, "")
    assert look.card == str(home.config().card(home.keys().public))
    assert look.task == TASK
    assert look.curve.samples == 0
    with pytest.raises(StoreError, match="alice has never run"):
        source.predict({"light": "1"})


def test_a_stopped_peer_is_seen_as_it_is_on_the_disk(home: Home):
    teach(home, 40)
    source = FolderSource(home)
    look = source.look()
    assert look.status is not None
    assert (look.process, look.status.samples, look.curve.samples) == (None, 40, 32)
    assert look.store_bytes > 0
    found = source.predict({"light": "400"})
    assert (found.label, found.is_live) == ("yes", False)
    assert sum(found.probabilities.values()) == pytest.approx(1.0)
    with pytest.raises(DataError, match="'light' is 'abc'"):
        source.predict({"light": "abc"})


def test_a_folder_that_disappears_is_told_and_what_was_seen_stays(home: Home):
    teach(home, 20)
    source = FolderSource(home)
    source.look()
    aside = home.folder.with_name("aside")
    home.folder.rename(aside)
    gone = source.look()
    assert "there is no peer's folder" in gone.problem
    assert gone.problem.endswith(".")
    assert gone.status is not None
    assert gone.curve.samples == 16
    aside.rename(home.folder)
    assert source.look().problem == ""


@pytest.mark.parametrize(
    "name", ["peer.toml", "peers.toml", "task.toml", "peer.sqlite", "status.json"]
)
def test_a_file_that_is_damaged_takes_nothing_else_with_it(home: Home, name: str):
    teach(home, 20)
    source = FolderSource(home)
    before = source.look()
    (home.folder / name).write_bytes(b"\xff not what it was")
    look = source.look()
    assert (name in look.problem) == (name != "status.json")
    assert (look.status, look.task, look.card) == (before.status, before.task, before.card)
    assert look.curve == before.curve


def test_trust_goes_through_peer_toml_and_back(home: Home, bobs_card: str):
    source = FolderSource(home)
    assert source.trust(bobs_card, 2.0).startswith("alice sends to bob with weight 2.")
    [receiver] = source.look().receivers
    assert (receiver.name, receiver.weight) == ("bob", 2.0)
    assert source.distrust(receiver.key).startswith("alice sends no more to bob.")
    assert source.look().receivers == ()
    assert source.admit(bobs_card).startswith("alice admits bob.")
    [sender] = source.look().senders
    assert source.revoke(sender.key).startswith("alice takes in nothing more from bob.")
    assert source.look().senders == ()
