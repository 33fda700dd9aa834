"""Copies of this peer that run elsewhere with its key: what it was told, and what it says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oneway.protocol.lives import is_copied, lifted
from oneway.protocol.messages import Superseded
from oneway.protocol.rules import Rules
from oneway.protocol.state import Key, PeerState
from oneway.protocol.transitions import ask_everybody

COPIES_SECONDS = 300.0
"""For so long a peer that ran twice is named."""


@dataclass
class Copies:
    """What neighbours told of other lives of this peer; `lives` has the rules.

    Attributes:
        proven_by: Who told of a copy that runs, so that this one must stop.
        told_by: Who last told of another life, over which this one was lifted.
        told_at: When.
    """

    clock: Callable[[], float]
    proven_by: Key | None = None
    told_by: Key | None = None
    told_at: float = 0.0

    def meet(self, state: PeerState, teller: Key, message: Superseded, rules: Rules) -> PeerState:
        """Take in that another life of this peer has spoken."""
        if is_copied(state, message.newer, rules):
            self.proven_by = teller
            return state
        after = lifted(state, message.newer, rules)
        if after is state:
            return state
        self.told_by, self.told_at = teller, self.clock()
        # At once, not with the next push: what the other life did is not known here, and it must
        # hear of this one, should it run.
        return ask_everybody(after)

    def why_to_stop(self, name: str, name_of: Callable[[Key], str]) -> str:
        """Why this peer must stop, as a sentence; empty as long as it need not."""
        if self.proven_by is None:
            return ""
        return (
            f"another copy of {name} runs with the same key: it spoke to {name_of(self.proven_by)} "
            "and ran before this one, so this one stops; keep one of the two folders and delete "
            "the other, and never run a copy while the first one runs"
        )

    def warning(self, name: str, name_of: Callable[[Key], str]) -> str:
        """What is to be said of another life that was met lately, as a sentence; or nothing."""
        if self.told_by is None or self.clock() - self.told_at > COPIES_SECONDS:
            return ""
        return (
            f"another life of {name} with the same key spoke to {name_of(self.told_by)}: if a "
            "backup was restored here, that is how it should be; otherwise a copy of its folder "
            "was started somewhere: delete it"
        )
