"""Commands to a lab, each of which ends in a sentence, and where mass gathers afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from msgspec.structs import astuple

from oneway.errors import ConfigError
from oneway.lab.lab import Lab
from oneway.lab.peer_folders import TASK_FILE
from oneway.lab.trust_edges import CONNECTED, TrustEdges, dead_ends, flow_sentence
from oneway.peer.identity.card import check_name
from oneway.peer.identity.names import appearance, check_new_name
from oneway.records import Ints
from oneway.records.network import Command
from oneway.store import RESULT, RUNS

_FILES = (RESULT, RUNS, TASK_FILE)
"""What a lab leaves in its folder, where peers are folders too."""


class Commands:
    """Carries out commands on a lab.

    Attributes:
        finishing: Whether the end was asked for.
    """

    def __init__(self, lab: Lab, rng: random.Random) -> None:
        """Prepare; `rng` chooses what a command leaves open."""
        self.finishing = False
        self._lab = lab
        self._rng = rng
        self._flow = CONNECTED
        self._dealt = set(np.unique(lab.problem.stream.rows).tolist()) - {-1}

    def carry_out(self, command: Command) -> str:
        """Do it, and say what was done.

        Raises:
            OnewayError: If it cannot be done; says why.
        """
        said: str = self.action(type(command))(*astuple(command))
        self._note_flow()
        return said

    def action(self, kind: type[Command]) -> Callable[..., str]:
        """What carries out a kind of command: a method here or of the lab, named like its tag."""
        name = str(kind.__struct_config__.tag)
        found: Callable[..., str] = getattr(self, name, None) or getattr(self._lab, name)
        return found

    def finish(self) -> str:
        """Ask for the end."""
        self.finishing = True
        return "the lab is finishing"

    def _note_flow(self) -> None:
        """Say where mass gathers from now on, if that has changed."""
        trust = TrustEdges.of(self._lab.peers)
        edges = [edge for edge in trust.edges if not trust.is_cut(*edge)]
        running = self._lab.running()
        said = flow_sentence(dead_ends(running, edges), len(running))
        if said != self._flow:
            self._flow = said
            self._lab.note(said)

    def add_peer(self, wanted: str, receivers: list[str], senders: list[str]) -> str:
        """Let a newcomer join; what is left open, its name or its edges, is chosen here."""
        name = self._new_name(wanted)
        receivers, senders = list(dict.fromkeys(receivers)), list(dict.fromkeys(senders))
        if not receivers and not senders:
            known = self._lab.running() or [peer.name for peer in self._lab.peers]
            receivers, senders = [self._rng.choice(known)], [self._rng.choice(known)]
        rows = self._rows()
        said = self._lab.add_peer(name, rows, receivers=receivers, senders=senders)
        self._dealt.update(rows.tolist())
        return said

    def _new_name(self, wanted: str) -> str:
        taken = {appearance(peer.name): peer.name for peer in self._lab.peers}
        if not wanted:
            numbers = (f"peer{number}" for number in range(len(taken) + 1))
            return next(name for name in numbers if appearance(name) not in taken)
        if (known := taken.get(appearance(wanted))) is not None:
            raise ConfigError(
                f"there is a peer {known} already, like {wanted}; choose another name"
            )
        if wanted.lower() in _FILES:
            raise ConfigError(
                f"{wanted} is what the lab itself leaves in its folder; choose another name"
            )
        return check_new_name(check_name(wanted))

    def _rows(self) -> Ints:
        """About as many rows as the others have: such as are not dealt yet, if there are enough."""
        problem = self._lab.problem
        count = int(np.median((problem.stream.rows >= 0).sum(axis=0)))
        free = np.setdiff1d(np.arange(len(problem.table)), list(self._dealt))
        pool = free if len(free) >= count else np.arange(len(problem.table))
        rng = np.random.default_rng(self._rng.getrandbits(64))
        rows: Ints = rng.choice(pool, size=count, replace=len(pool) < count)
        return rows
