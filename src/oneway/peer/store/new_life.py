"""A peer's durable state in a new life: made, or opened and told apart from all lives before."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from msgspec.structs import replace

from oneway.peer.estimates import in_life
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, PeerStore
from oneway.protocol.layout import Layout
from oneway.protocol.stamps import RANDOM_BITS, first_stamp
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import restart


def begin_life(path: Path, owner: Owner, layout: Layout) -> PeerStore:
    """Make or open the store of a peer, in a new life.

    Raises:
        StoreError: If it is damaged, cannot be written, or is another peer's or another task's.
    """
    boot = new_stamp()
    if not path.exists():
        ledger = 1 + secrets.randbelow(1 << 61)
        return PeerStore.create(
            path, owner, Snapshot(PeerState.new(layout.width, ledger, boot, layout))
        )
    store = PeerStore.open(path, owner)
    saved = store.load()
    # Durable before the first word: this life must never be mistaken for another.
    history = saved.history.up_to(saved.journal.samples)
    average = in_life(saved.average, boot)
    state = restart(saved.state, boot)
    store.commit(replace(saved, state=state, history=history, average=average))
    return store


def new_stamp() -> int:
    """A number that no other life, edge or prediction of this peer has."""
    return first_stamp(time.time_ns(), secrets.randbits(RANDOM_BITS))
