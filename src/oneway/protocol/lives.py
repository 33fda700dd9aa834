"""One key, one life: how a peer finds out that it runs twice, and who of the two stops.

Boots order the lives of a key. Whoever hears an older life after a newer one says so, with the
newer life's own proof. The older one cannot know yet whether that life still runs: its clock may
have been set back, and the newer life be one that it forgot with a restored backup. So it lifts its
boot over the newer one and goes on. A life that runs on elsewhere then hears of one that was lifted
over *its own* boot, which nobody could have known beforehand: this proves two copies, and it stops.
So the copy that ran first goes on: it has all that the network knows of it, the later one has not.
No neighbour can forge that, since every proof needs the key. Of three copies, the third may be
lifted over the second before the first one speaks: so the lives before the newest are remembered.
"""

from __future__ import annotations

from msgspec.structs import replace

from oneway.protocol.messages import Life
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import later_stamp
from oneway.protocol.state import Key, PeerState
from oneway.protocol.tags import sign_life

MOST_FORMER = 8
"""Lives of another peer that are remembered beside the newest: so many more copies can be told."""


def life_of(state: PeerState, rules: Rules) -> Life:
    """What a peer says of its life in every message."""
    proof = sign_life(rules.secret, state.boot, state.over)
    return Life(state.boot, state.over, state.leaving, proof)


def meet(state: PeerState, peer: Key, life: Life) -> PeerState | None:
    """The state that knows of another peer's life; None if a newer life of its has spoken."""
    known = state.lives.get(peer)
    if known is None:
        return replace(state, lives={**state.lives, peer: life})
    if life.boot > known.boot:
        former = (known, *state.former_lives.get(peer, ()))[:MOST_FORMER]
        return replace(
            state,
            lives={**state.lives, peer: life},
            former_lives={**state.former_lives, peer: former},
        )
    if life.boot < known.boot:
        return None
    if life.leaving != known.leaving:
        return replace(state, lives={**state.lives, peer: life})
    return state


def answer_to(state: PeerState, peer: Key, older: Life) -> Life | None:
    """What an older life of another peer is to hear of: who was lifted over it, or the newest."""
    newest = state.lives.get(peer)
    lifts = (life for life in state.former_lives.get(peer, ()) if life.over == older.boot)
    return next(lifts, newest)


def is_copied(state: PeerState, newer: Life, rules: Rules) -> bool:
    """Whether a life proves that another copy of this peer runs, and that this one must stop."""
    return newer.boot > state.boot and newer.over == state.boot and _is_own(newer, rules)


def lifted(state: PeerState, newer: Life, rules: Rules) -> PeerState:
    """The state in a life after a newer one of the same key, if that is proven."""
    if newer.boot <= state.boot or not _is_own(newer, rules):
        return state
    return replace(state, boot=later_stamp(newer.boot, state.boot), over=newer.boot)


def _is_own(life: Life, rules: Rules) -> bool:
    return life.proof == sign_life(rules.secret, life.boot, life.over)
