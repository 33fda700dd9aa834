"""What a peer says about its privacy, and what it refuses: a task too weak, settings of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
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
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.task import Feature, Task
from oneway.testing.memory_network import MemoryNetwork

FLOOR = Task(
    "logistic",
    "late",
    (Feature("rain"),),
    ("no", "yes"),
    privacy=Privacy(epsilon=2.0),
    samples_per_push=4,
)
BOB = Card(bytes([7]) * 32, "127.0.0.1", 7709, "bob")
SECONDS = 300.0

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


def test_a_batch_that_was_not_full_is_counted_on_after_a_restart(make_home):
    home = make_home()
    assert said_by(home, samples=3).waiting == 3
    assert said_by(home).waiting == 3
    assert said_by(home, samples=1).waiting == 0


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


def run(home: Home, *more: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "oneway", "peer", "run", "--home", home.folder, *map(str, more)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_process_whose_own_epsilon_is_weaker_than_the_floor_sends_nothing(make_home, tmp_path):
    """A receiver listens where it would send to: nobody as much as connects."""
    home = make_home(FLOOR, epsilon=8.0)
    rows = "".join(f"{n % 2},{'yes' if n % 2 else 'no'}\n" for n in range(100))
    (tmp_path / "stream.csv").write_text(f"rain,late\n{rows}")
    with socket.create_server(("127.0.0.1", 0)) as receiver:
        port = receiver.getsockname()[1]
        trust.send_to(home, replace(BOB, port=port), 1.0)
        before = everything_in(home.folder)
        process = run(home, "--data", tmp_path / "stream.csv", "--until-done")
        try:
            out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
        receiver.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            receiver.accept()
    assert process.returncode == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("Error: epsilon under [privacy] in peer.toml is 8, ")
    assert "at most 2;" in err
    assert everything_in(home.folder) == before


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
