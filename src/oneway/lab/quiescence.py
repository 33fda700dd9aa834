"""Quiescence detection: when nothing is in flight any more between peers that were paused."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from oneway.lab.peer_process import Observation
from oneway.peer.identity.keys import key_text
from oneway.protocol.state import Key, OutPhase

_LONG = 5.0
"""Seconds after which what is not acknowledged waits for more than its turn."""


def overfull(observations: Sequence[Observation], down: Collection[Key] = ()) -> set[Key]:
    """The peers that let mass wait, because they hold several units and hand out none.

    Whoever pauses first is handed what the others have, and takes in little more then (see
    `peer.inflow`): it comes to rest only after it has passed something on.
    """
    waited_for = {
        edge.key
        for peer in observations
        if peer.status is not None and peer.key not in down
        for edge in peer.status.receivers
        if edge.lag > _LONG
    }
    return {it.key for it in observations if key_text(it.key) in waited_for and it.key not in down}


class Quiescence:
    """Watches peers that were paused, until they say that nothing is in flight between them.

    That includes what is not durable yet; the stores must say so too, see `num_unsettled`. What a
    peer said before the last one paused proves nothing: it may have been sent something since.
    """

    def __init__(self) -> None:
        self._said_before: dict[Key, float] = {}

    def seen_in(self, observations: Sequence[Observation], down: Collection[Key] = ()) -> bool:
        """Whether the peers say that they are at rest; to be asked again and again.

        Args:
            observations: Every peer at this moment.
            down: Peers that are down for good; what is on its way to them will never arrive.
        """
        running = [peer for peer in observations if peer.key not in down]
        paused = {
            peer.key: peer.status
            for peer in running
            if peer.status is not None and peer.state == "paused"
        }
        if len(paused) < len(running):
            self._said_before = {}
            return False
        if paused.keys() != self._said_before.keys():
            self._said_before = {key: status.time for key, status in paused.items()}
        names = {key_text(key) for key in down}
        return all(
            status.time > self._said_before[key]
            and all(
                edge.phase == "none" or (edge.phase == OutPhase.OPEN and edge.seq == edge.acked)
                for edge in status.receivers
                if edge.key not in names
            )
            for key, status in paused.items()
        )
