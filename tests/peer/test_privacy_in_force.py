"""What a peer says about its privacy, and what it refuses: a task too weak, settings of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from real_peers import until
from rewritten import rewrite
from unused_address import unused_address

import oneway as ow
from oneway.errors import ConfigError
from oneway.peer import trust
from oneway.peer.home.home import Home
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.identity.card import Card
from oneway.peer.page_source import FolderSource
from oneway.records.status import PrivacyStatus
from oneway.tables import Number
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.task import Task
from oneway.testing.memory_network import MemoryNetwork

FLOOR = Task(
    "logistic",
    "late",
    (Number("rain"),),
    ("no", "yes"),
    privacy=Privacy(epsilon=2.0),
    samples_per_push=4,
)
BOB = Card(bytes([7]) * 32, "127.0.0.1", 7709, "bob")

MakeHome = Callable[..., Home]


@pytest.fixture
def make_home(tmp_path: Path) -> MakeHome:
    def make(task: Task = FLOOR, **own: object) -> Home:
        (tmp_path / "task.toml").write_text(task.to_toml())
        home = Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", unused_address())
        rewrite(home, privacy=OwnPrivacy(**own))
        return home

    return make


def listen(*_: object, **__: object) -> object:
    return MemoryNetwork().endpoint(bytes(32))


def said_by(home: Home, samples: int = 0) -> PrivacyStatus:
    with ow.Peer(home.folder, transport=listen) as peer:
        for _ in range(samples):
            peer.learn_one({"rain": 1.0}, "yes")
        said = peer.status().privacy
    assert said is not None
    return said


# What it says.


def test_a_peer_says_its_guarantee_the_floor_and_how_full_its_batch_is(make_home):
    said = said_by(make_home(epsilon=1.0, samples_per_push=5), samples=8)
    assert (said.epsilon, said.delta, said.floor_epsilon) == (1.0, 1e-5, 2.0)
    assert said.brief == "epsilon 1, delta 1e-05 per sample"
    assert said.floor == "epsilon 2, delta 1e-05 per sample"
    assert said.sentence.startswith("epsilon 1, delta 1e-05 for each sample: with or without")
    assert said.progress == "3 of 5 samples for the next push"
    assert not said.is_none
    assert not said.needs_restart


# What it refuses.

TOO_WEAK = [
    (replace(FLOOR, privacy=Privacy(epsilon=3.0)), {"require_epsilon": 2.0}, "epsilon 3"),
    (replace(FLOOR, privacy=NO_PRIVACY), {"require_epsilon": 8.0}, "privacy none"),
]
LESS = [
    (FLOOR, {"epsilon": 2.5}, "epsilon under [privacy] in peer.toml is 2.5"),
    (FLOOR, {"samples_per_push": 3}, "samples_per_push under [privacy] in peer.toml is 3"),
]


def everything_in(folder: Path) -> dict[str, bytes]:
    """The files of a peer; its locks aside, which are there whoever has held them."""
    files = [path for path in folder.iterdir() if path.suffix != ".lock"]
    return {path.name: path.read_bytes() for path in files}


@pytest.mark.parametrize(("task", "own", "culprit"), TOO_WEAK + LESS)
def test_a_peer_that_may_not_take_part_does_not_start_and_leaves_nothing(
    make_home, task, own, culprit
):
    home = make_home(task, **own)
    before = everything_in(home.folder)
    with pytest.raises(ConfigError) as caught:
        ow.Peer(home.folder)
    assert culprit in str(caught.value)
    assert everything_in(home.folder) == before


@pytest.mark.parametrize(("task", "own", "culprit"), TOO_WEAK)
def test_nobody_is_trusted_or_admitted_under_a_task_that_promises_too_little(
    make_home, task, own, culprit
):
    home = make_home(task, **own)
    page = FolderSource(home)
    before = everything_in(home.folder)
    for change in (
        lambda: trust.send_to(home, BOB, 1.0),
        lambda: trust.admit_one(home, BOB),
        lambda: trust.admit_one(home, BOB.key),
        lambda: trust.admit_anyone(home, revoke=False),
        lambda: page.trust(str(BOB), 1.0),
        lambda: page.admit(str(BOB)),
    ):
        with pytest.raises(ConfigError) as caught:
            change()
        assert culprit in str(caught.value)
        assert "require_epsilon" in str(caught.value)
    assert everything_in(home.folder) == before


# While it runs.


def test_a_running_peer_keeps_the_privacy_it_started_with_and_says_that_it_should_restart(
    make_home, caplog
):
    home = make_home()
    with ow.Peer(home.folder) as peer:

        def said() -> PrivacyStatus:
            return peer.status().privacy

        assert not said().needs_restart
        own = OwnPrivacy(epsilon=1.0, samples_per_push=9)
        rewrite(home, privacy=own, anyone=True)
        until(lambda: said().needs_restart, "it says that peer.toml asks for another privacy")
        assert (said().epsilon, said().samples_per_push) == (2.0, 4)
        rewrite(home, privacy=OwnPrivacy())
        until(lambda: not said().needs_restart, "it says that all is as it was")
    [warning] = [it.message for it in caplog.records if "[privacy] in peer.toml" in it.message]
    assert "start alice again" in warning
