"""Commands by name: every one is known, and what makes no sense is refused and changes nothing."""

from __future__ import annotations

import random
from typing import get_args

import pytest

from oneway.errors import ConfigError
from oneway.lab.commands import Commands
from oneway.lab.lab import Lab
from oneway.records.network import AddPeer, Command, Finish, Heal, Kill, SetLoss, Trust


@pytest.fixture
def lab(tmp_path, problem):
    """Five peers, none of which was started."""
    lab = Lab(tmp_path / "lab", problem)
    yield lab
    lab.close()


@pytest.fixture
def commands(lab):
    return Commands(lab, random.Random(1))


def test_every_command_can_be_carried_out(commands):
    assert all(callable(commands.action(kind)) for kind in get_args(Command))


@pytest.mark.parametrize(
    ("command", "culprit"),
    [
        (Kill("peer0"), "peer0 is down"),
        (Kill("pear0"), "'pear0'.*'peer0'"),
        (Heal("peer0", "peer1"), "peer0 and peer1 is not cut"),
        (SetLoss(1.5), "loss is 1"),
        (Trust("peer1", "peer1"), "peer1 cannot send to itself"),
        (AddPeer("PEER1", [], []), "PEER1"),
        (AddPeer("task.toml", [], []), "task.toml"),
        (AddPeer("dora", ["peer33"], []), "'peer33'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(commands, lab, command, culprit):
    with pytest.raises(ConfigError, match=culprit):
        commands.carry_out(command)
    assert (len(lab.peers), lab.events, lab.loss) == (5, [], 0.0)
    assert not (lab.peers[0].home.folder.parent / "dora").exists()


def test_a_finish_is_remembered(commands):
    assert not commands.finishing
    commands.carry_out(Finish())
    assert commands.finishing
