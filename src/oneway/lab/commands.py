"""What one can do to a lab by name, and what makes no sense: every command ends in a sentence."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from oneway.errors import ConfigError
from oneway.lab.flow import CONNECTED, dead_ends, flow_sentence
from oneway.lab.lab import Lab
from oneway.lab.setup import TASK_FILE
from oneway.lab.wiring import Wiring
from oneway.peer.identity.card import check_name
from oneway.records import Ints
from oneway.records.network import (
    AddPeer,
    Command,
    Cut,
    Distrust,
    Finish,
    Heal,
    Kill,
    Restart,
    SetLoss,
    Trust,
)
from oneway.sentences import listed, nearest, shown
from oneway.store.layout import RESULT, RUNS

_FILES = (RESULT, RUNS, TASK_FILE)
"""What a lab leaves in its folder, where peers are folders too."""


class Commands:
    """Carries out commands on a lab.

    Attributes:
        finishing: Whether somebody asked for the end.
    """

    def __init__(
        self, lab: Lab, rng: random.Random, touched: Callable[[int], None] = lambda _: None
    ) -> None:
        """Prepare.

        Args:
            lab: Whose peers they are.
            rng: Chooses what a command leaves open.
            touched: Called with a peer before somebody kills or starts it by hand.
        """
        self.finishing = False
        self._lab = lab
        self._rng = rng
        self._touched = touched
        self._wiring = Wiring()
        self._flow = CONNECTED
        self._dealt = set(np.unique(lab.problem.stream.rows).tolist()) - {-1}

    def carry_out(self, command: Command) -> str:
        """Do it, and say what was done.

        Raises:
            OnewayError: If it cannot be done; says why.
        """
        self._wiring.follow(self._lab.members)
        said = self._do(command)
        self._note_flow()
        return said

    def _do(self, command: Command) -> str:
        match command:
            case Kill(name):
                return self._kill(self._peer(name))
            case Restart(name):
                return self._restart(self._peer(name))
            case Cut(one, other):
                return self._cut(self._peer(one), self._peer(other))
            case Heal(one, other):
                return self._heal(self._peer(one), self._peer(other))
            case SetLoss(loss):
                return self._set_loss(loss)
            case AddPeer():
                return self._add(command)
            case Trust(sender, receiver):
                return self._trust(self._peer(sender), self._peer(receiver))
            case Distrust(sender, receiver):
                return self._distrust(self._peer(sender), self._peer(receiver))
            case Finish():
                self.finishing = True
                return "the lab is finishing"

    def _note_flow(self) -> None:
        """Say where mass gathers from now on, if that has changed."""
        self._wiring.follow(self._lab.members)
        edges = [edge for edge in self._wiring.edges if not self._wiring.is_cut(*edge)]
        running = self._lab.running()
        said = flow_sentence(dead_ends(map(self._name, running), edges), len(running))
        if said != self._flow:
            self._flow = said
            self._lab.note(said)

    def _kill(self, peer: int) -> str:
        if peer not in self._lab.running():
            raise ConfigError(f"{self._name(peer)} is down already; restart it first")
        self._touched(peer)
        return self._lab.kill(peer)

    def _restart(self, peer: int) -> str:
        if peer in self._lab.running():
            raise ConfigError(f"{self._name(peer)} runs already; kill it first")
        self._touched(peer)
        return self._lab.restart(peer)

    def _cut(self, one: int, other: int) -> str:
        names = self._name(one), self._name(other)
        if one == other or not {names, names[::-1]} & set(self._wiring.edges):
            raise ConfigError(
                f"neither of {names[0]} and {names[1]} sends to the other, so there is no line to "
                "cut; choose two peers with an edge"
            )
        if self._wiring.is_cut(*names):
            raise ConfigError(
                f"the line between {names[0]} and {names[1]} is cut already; heal it first"
            )
        return self._lab.cut(one, other)

    def _heal(self, one: int, other: int) -> str:
        names = self._name(one), self._name(other)
        if not self._wiring.is_cut(*names):
            raise ConfigError(
                f"the line between {names[0]} and {names[1]} is not cut; there is nothing to heal"
            )
        return self._lab.heal(one, other)

    def _set_loss(self, loss: float) -> str:
        if not 0.0 <= loss <= 1.0:
            raise ConfigError(f"the loss is {loss:g}; it must be a share from 0 to 1, as 0.2")
        return self._lab.set_loss(loss)

    def _trust(self, sender: int, receiver: int) -> str:
        names = self._name(sender), self._name(receiver)
        if sender == receiver:
            raise ConfigError(f"{names[0]} cannot send to itself; choose another receiver")
        if names in self._wiring.edges:
            raise ConfigError(f"{names[0]} sends to {names[1]} already; choose another receiver")
        return self._lab.trust(sender, receiver)

    def _distrust(self, sender: int, receiver: int) -> str:
        names = self._name(sender), self._name(receiver)
        if names not in self._wiring.edges:
            receivers = [to for of, to in self._wiring.edges if of == names[0]]
            known = f"it sends to {listed(receivers)}" if receivers else "it sends to nobody"
            raise ConfigError(f"{names[0]} does not send to {names[1]}; {known}")
        return self._lab.distrust(sender, receiver)

    def _add(self, command: AddPeer) -> str:
        name = self._new_name(command.name)
        receivers = [self._peer(other) for other in dict.fromkeys(command.receivers)]
        senders = [self._peer(other) for other in dict.fromkeys(command.senders)]
        if not receivers and not senders:
            anybody = self._lab.running() or list(range(len(self._lab.members)))
            receivers, senders = [self._rng.choice(anybody)], [self._rng.choice(anybody)]
        rows = self._rows()
        said = self._lab.add_peer(name, rows, receivers=receivers, senders=senders)
        self._dealt.update(rows.tolist())
        return said

    def _new_name(self, wanted: str) -> str:
        taken = {member.name.lower() for member in self._lab.members}
        if not wanted:
            numbers = (f"peer{number}" for number in range(len(taken) + 1))
            return next(name for name in numbers if name not in taken)
        if wanted.lower() in taken:
            raise ConfigError(f"there is a peer {wanted} already; choose another name")
        if wanted.lower() in _FILES:
            raise ConfigError(
                f"{wanted} is what the lab itself leaves in its folder; choose another name"
            )
        return check_name(wanted)

    def _rows(self) -> Ints:
        """About as many rows as the others have: such as nobody was dealt, if there are enough."""
        problem = self._lab.problem
        count = int(np.median((problem.stream.rows >= 0).sum(axis=0)))
        free = np.setdiff1d(np.arange(len(problem.table)), list(self._dealt))
        pool = free if len(free) >= count else np.arange(len(problem.table))
        rng = np.random.default_rng(self._rng.getrandbits(64))
        rows: Ints = rng.choice(pool, size=count, replace=len(pool) < count)
        return rows

    def _peer(self, name: str) -> int:
        names = [member.name for member in self._lab.members]
        if name not in names:
            known = nearest(name, names) or f"; there are {listed(names)}"
            raise ConfigError(f"there is no peer {shown(name)}{known}")
        return names.index(name)

    def _name(self, peer: int) -> str:
        return self._lab.members[peer].name
