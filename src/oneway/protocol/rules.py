"""The numbers that the rules of the protocol refer to."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """What one peer allows, and by what it recognises itself.

    Sender and receiver must agree on `mass_cap`, `radius` and `longest_step`, or honest pushes
    would be rejected: they belong to the shared task. The rest is each peer's own affair.

    Attributes:
        secret: For tags on one's own totals; must survive a restored backup.
        window: How many totals may be unacknowledged, which bounds what is stored of them.
        mass_cap: The most mass that one push may carry.
        mass_limit: The most mass that a peer may hold; what comes beyond it is burned. Times the
            radius, it must be far below what 63 bits hold.
        radius: The largest absolute parameter of an estimate.
        longest_step: The longest step that any honest peer takes; infinite if there is no such
            limit. A parcel of c steps is no longer than c of them.
        clip: How far from one's own estimate a sender's model may lie, relative to 1 + the norm of
            that estimate; the rest is dropped. What comes beside a model may be `CARRIED` times as
            long, of `protocol.incoming`. If infinite, senders have no accounts either
            (`peer.inflow`).
        compact: Whether pushes are quantised (`protocol.compact`), one at a time under way.
        most_edges: Edges of one sender that are kept: so many that are open, and so many of which
            both ends know how they ended.
    """

    secret: bytes
    window: int = 16
    mass_cap: float = 16.0
    mass_limit: float = 256.0
    radius: float = 1000.0
    longest_step: float = math.inf
    clip: float = math.inf
    most_edges: int = 16
    compact: bool = False
