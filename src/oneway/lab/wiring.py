"""Who is told to send to whom, and which lines are cut: as the configurations of the peers say."""

from __future__ import annotations

from collections.abc import Sequence

from oneway.errors import OnewayError
from oneway.lab.setup import Member
from oneway.peer.home.config import PeerConfig

Edge = tuple[str, str]
"""A sender and a receiver, by name."""


class Wiring:
    """Follows the configurations of peers, reading again only what was written anew.

    Attributes:
        edges: Who sends to whom.
        reopened: Edges that were taken away once, whether they came back or not.
    """

    def __init__(self) -> None:
        self.edges: list[Edge] = []
        self.reopened: set[Edge] = set()
        self._configs: dict[str, tuple[object, PeerConfig]] = {}
        self._cuts: set[frozenset[str]] = set()

    def is_cut(self, one: str, other: str) -> bool:
        """Whether the line between two peers is cut, at either end."""
        return frozenset((one, other)) in self._cuts

    def follow(self, members: Sequence[Member]) -> None:
        """Take in what peers were told since the last time."""
        names = {member.key: member.name for member in members}
        before = set(self.edges)
        self.edges, self._cuts = [], set()
        for member in members:
            config = self._config(member)
            self.edges += [
                (member.name, names[receiver.key])
                for receiver in config.receivers
                if receiver.key in names
            ]
            self._cuts |= {frozenset((member.name, other)) for other in config.faults.cut}
        self.reopened |= before - set(self.edges)

    def _config(self, member: Member) -> PeerConfig:
        known, config = self._configs.get(member.name, (None, None))
        try:
            facts = member.home.config_path.stat()
            version = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
            if config is None or known != version:
                config = member.home.config()
                self._configs[member.name] = (version, config)
        except (OSError, OnewayError):
            # Somebody is writing nonsense into it; the peer goes on as before, and so does this.
            if config is None:
                raise
        return config
