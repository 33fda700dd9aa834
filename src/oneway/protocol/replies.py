"""What a peer takes in from its receivers, and about others: a state in, a new state out.

A receiver that was restored from a backup claims to have heard less than it once acknowledged. It
gets that again, and the sender's books stay as they are: no claim ever brings a sender mass that
was acknowledged. A sender that was restored hears that more arrived than it remembers, and believes
it if the total carries its own tag.
"""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from oneway.protocol.bookkeeping import (
    RETIRED,
    booked,
    is_retired,
    retire_settled,
    settle,
    with_in,
    with_out,
)
from oneway.protocol.compact import Packed, nothing
from oneway.protocol.fixed_point import Fixed, mass_of
from oneway.protocol.incoming import Absorbed, Objection, objection
from oneway.protocol.lives import meet
from oneway.protocol.messages import Ack, Closed, Gone, Receipt, Reply, Retired, Stale, State
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import later_stamp
from oneway.protocol.state import (
    KeptReceipt,
    Key,
    OutEdge,
    OutPhase,
    PeerState,
    Settled,
    Told,
)
from oneway.protocol.tags import digest_of, is_mine
from oneway.protocol.transitions import none_yet, resync

MOST_RECEIPTS = 64
"""Receipts that are kept of one teller; the oldest go first."""

NEVER_SENT = Objection("false claim", "it claims to have heard what was never sent")


def receive_reply(state: PeerState, receiver: Key, reply: Reply, rules: Rules) -> Absorbed:
    """Take in what a receiver says about an edge of this peer."""
    known = meet(state, receiver, reply.life)
    if known is None:
        return Absorbed(state, is_older_life=True)
    state = known
    edge = state.out.get((receiver, reply.epoch))
    if edge is None:
        return _about_the_past(state, receiver, reply, rules)
    match reply:
        case Ack():
            return Absorbed(_acknowledged(state, edge, reply))
        case State():
            return _resynced(state, edge, reply, rules)
        case Closed():
            return _closed(state, edge, reply, rules)
        case Stale():
            return Absorbed(_ask_again(state, edge))
        case Gone():
            if reply.ledger != edge.ledger or edge.ledger == 0:
                return Absorbed(state)
            # What was confirmed is lost with the receiver's disk; the rest comes back.
            return Absorbed(settle(state, edge, edge.acked, edge.confirmed, rules))
        case Retired():
            end = Settled(receiver, edge.epoch, edge.ledger, edge.acked, edge.confirmed)
            state = settle(state, edge, edge.acked, edge.confirmed, rules)
            return Absorbed(retire_settled(state, end, reply.until))


def receive_receipt(
    state: PeerState, own: Key, teller: Key, receipt: Receipt, rules: Rules
) -> PeerState:
    """Take in how an edge to a peer that left has ended, or keep it for whom it concerns."""
    if receipt.receiver == own:
        heard = state.in_.get((receipt.sender, receipt.epoch))
        if heard is None or heard.told is not Told.NOBODY:
            return state
        true = (heard.seq, digest_of(heard.heard), heard.tag)
        if (receipt.seq, receipt.digest, receipt.tag) != true:
            return state  # what its sender could not recognise is no help
        return with_in(state, replace(heard, told=Told.WITNESS))  # somebody keeps it
    if receipt.sender == own:
        return _ended(state, receipt, rules)
    return _kept(state, teller, receipt)


def _ended(state: PeerState, receipt: Receipt, rules: Rules) -> PeerState:
    edge = state.out.get((receipt.receiver, receipt.epoch))
    known = edge.totals.get(receipt.seq) if edge else None
    if edge is None or known is None or digest_of(known) != receipt.digest:
        return state
    proof = (receipt.receiver, receipt.epoch, receipt.seq, receipt.digest)
    if not is_mine(receipt.tag, rules.secret, state.ledger, *proof):
        return state
    life = state.lives.get(receipt.receiver)
    if life is not None:
        left = msgspec.structs.replace(life, leaving=True)
        state = replace(state, lives={**state.lives, receipt.receiver: left})
    return settle(state, edge, receipt.seq, known, rules)


def _kept(state: PeerState, teller: Key, receipt: Receipt) -> PeerState:
    name = (receipt.receiver, receipt.sender, receipt.epoch)
    told = KeptReceipt(receipt.seq, receipt.digest, receipt.tag, teller)
    known = state.receipts.get(name)
    # Whoever leaves is believed before those who pass on its word: they may have made it up.
    if known is not None and (known == told or teller != receipt.receiver):
        return state
    others = {other: kept for other, kept in state.receipts.items() if other != name}
    of_teller = [other for other, kept in others.items() if kept.teller == teller]
    if len(of_teller) >= MOST_RECEIPTS:
        # What is passed on makes way for who leaves, not for more of the same: peers that tell
        # each other of more than they keep would forget and learn it again for ever.
        if teller != receipt.receiver:
            return state
        passed_on = [other for other in of_teller if other[0] != teller]
        del others[(passed_on or of_teller)[0]]
    return replace(state, receipts={**others, name: told})


def _acknowledged(state: PeerState, edge: OutEdge, reply: Ack) -> PeerState:
    if edge.phase is OutPhase.RESYNC:
        return state  # the answer to the hello says more
    known = edge.totals.get(reply.seq)
    if known is not None and digest_of(known) == reply.digest:
        totals = {seq: total for seq, total in edge.totals.items() if seq >= reply.seq}
        packed = edge.packed if reply.seq == edge.acked else None
        after = replace(
            edge, acked=reply.seq, totals=totals, their_boot=reply.life.boot, packed=packed
        )
        if edge.phase is OutPhase.DEAD:  # more had arrived than was taken back
            return with_out(state, after, gained=edge.counted - after.counted)
        return with_out(state, after)
    if reply.seq < edge.acked and reply.life.boot == edge.their_boot:
        return state  # overtaken by a later one
    return _ask_again(state, edge)  # one of us was restored from a backup


def _resynced(state: PeerState, edge: OutEdge, reply: State, rules: Rules) -> Absorbed:
    if edge.phase is not OutPhase.RESYNC or edge.ledger not in (0, reply.ledger):
        return Absorbed(state)
    if reply.session > edge.session:  # my clock was set back
        return Absorbed(
            with_out(state, replace(edge, session=later_stamp(reply.session, state.boot)))
        )
    if reply.session < edge.session:
        return Absorbed(state)
    packed = None
    seq, is_claim = max(edge.seq, reply.seq) + 1, False
    if _remembers(edge, reply):
        packed = _packed_from(state, edge, reply.seq, rules)
        totals = {number: total for number, total in edge.totals.items() if number >= reply.seq}
        opened = replace(edge, acked=reply.seq, totals={**totals, seq: edge.sent})
    elif not _believes(state, edge.receiver, reply, rules):
        return Absorbed(state, NEVER_SENT)
    else:
        is_claim = True
        if _is_behind(state, reply.total, edge.sent, seq - reply.seq, rules):
            acked, known = reply.seq, reply.total
            if mass_of(known - edge.confirmed) < 0:
                # It gets that again, but it stays acknowledged: otherwise the end of the edge
                # would bring it back, and one who lies still has it.
                acked, known = max(edge.acked, reply.seq + 1), edge.confirmed
            seq = max(seq, acked + 1)
            opened = replace(edge, acked=acked, totals={acked: known, seq: edge.sent})
        else:
            opened = replace(edge, acked=seq, totals={seq: reply.total})
    opened = replace(
        opened,
        seq=seq,
        phase=OutPhase.OPEN,
        ledger=reply.ledger,
        granted=reply.granted,
        their_boot=reply.life.boot,
        packed=packed,
    )
    after = with_out(state, opened, gained=edge.counted - opened.counted)
    return Absorbed(after, is_claim=is_claim)


def _closed(state: PeerState, edge: OutEdge, reply: Closed, rules: Rules) -> Absorbed:
    if _remembers(edge, reply):
        return Absorbed(settle(state, edge, reply.seq, reply.total, rules))
    if not _believes(state, edge.receiver, reply, rules):
        return Absorbed(state, NEVER_SENT)
    if _is_behind(state, reply.total, edge.confirmed, edge.acked - reply.seq, rules):
        # It will hear how the edge ended, and take in the rest then.
        return Absorbed(settle(state, edge, edge.acked, edge.confirmed, rules), is_claim=True)
    return Absorbed(settle(state, edge, reply.seq, reply.total, rules), is_claim=True)


def _about_the_past(state: PeerState, receiver: Key, reply: Reply, rules: Rules) -> Absorbed:
    """A reply about an edge that is settled, or that this peer has forgotten."""
    if reply.epoch == RETIRED or is_retired(state.settled, receiver, reply.epoch):
        return Absorbed(state)
    end = state.settled.get((receiver, reply.epoch))
    if end is not None:
        return _about_an_end(state, end, reply, rules)
    if not isinstance(reply, Ack | State | Closed) or reply.seq == 0:
        return Absorbed(state)
    digest = reply.digest if isinstance(reply, Ack) else digest_of(reply.total)
    if not is_mine(reply.tag, rules.secret, state.ledger, receiver, reply.epoch, reply.seq, digest):
        return Absorbed(state)
    # Restored from a backup that is older than this edge: close it, and count what was heard.
    forgotten = OutEdge(receiver, reply.epoch, state.boot, OutPhase.CLOSING, none_yet(state))
    return Absorbed(with_out(state, forgotten), is_claim=True)


def _about_an_end(state: PeerState, end: Settled, reply: Reply, rules: Rules) -> Absorbed:
    match reply:
        case Retired():
            return Absorbed(retire_settled(state, end, reply.until))
        case Closed():
            if reply.seq == end.seq and np.array_equal(reply.total, end.total):
                return Absorbed(state)
            if not _believes(state, end.receiver, reply, rules):
                return Absorbed(state, NEVER_SENT)
            if _is_behind(state, reply.total, end.total, end.seq - reply.seq, rules):
                return Absorbed(state)  # it will hear how the edge ended
            anew = replace(end, seq=reply.seq, total=reply.total)
            after = replace(state, settled={**state.settled, (end.receiver, end.epoch): anew})
            return Absorbed(booked(after, end.total - anew.total), is_claim=True)
        case _:
            return Absorbed(state)


# Details.


def _remembers(edge: OutEdge, claim: State | Closed) -> bool:
    """Whether a claim about what was heard is one of the totals still at hand."""
    known = edge.totals.get(claim.seq)
    return known is not None and np.array_equal(known, claim.total)


def _packed_from(state: PeerState, edge: OutEdge, seq: int, rules: Rules) -> Packed | None:
    """How all that was sent follows from what a receiver has, if little is to be said of it."""
    if not rules.compact:
        return None
    if seq == edge.seq:
        return nothing(state.layout, edge.sent, seq)
    return edge.packed if seq == edge.acked else None


def _believes(state: PeerState, receiver: Key, claim: State | Closed, rules: Rules) -> bool:
    """Whether a claim beyond one's own memory is proven by one's own tag, or needs no proof."""
    if claim.total.shape != state.holding.shape:
        return False
    if claim.seq == 0:
        return not claim.total.any()
    digest = digest_of(claim.total)
    return is_mine(claim.tag, rules.secret, state.ledger, receiver, claim.epoch, claim.seq, digest)


def _is_behind(state: PeerState, claimed: Fixed, known: Fixed, pushes: int, rules: Rules) -> bool:
    """Whether a receiver can get to a total from the one it claims as if pushes had been lost."""
    if pushes <= 0:
        return False
    layout = state.layout
    rest = layout.with_copies(layout.booked(known - claimed), known)
    return objection(rest, pushes, rules, layout) is None


def _ask_again(state: PeerState, edge: OutEdge) -> PeerState:
    return with_out(state, resync(state, edge)) if edge.phase is OutPhase.OPEN else state
