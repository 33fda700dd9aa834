"""What a peer may say, read from its last durable state and from nothing else.

A crash then never makes a peer deny what it said: at worst it has to say it again.
"""

from __future__ import annotations

from collections.abc import Iterator

from oneway.protocol.bookkeeping import RETIRED, is_retired
from oneway.protocol.compact import nothing
from oneway.protocol.fixed_point import zeros
from oneway.protocol.incoming import total_of
from oneway.protocol.lives import answer_to, life_of
from oneway.protocol.messages import (
    NO_PROGRESS,
    Ack,
    Close,
    Closed,
    Compact,
    Data,
    Gone,
    Hello,
    Life,
    Push,
    Receipt,
    Reply,
    Retired,
    Stale,
    State,
    Superseded,
)
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, Key, OutEdge, OutPhase, PeerState, Settled, Told
from oneway.protocol.tags import NO_TAG, digest_of, sign


def say(durable: PeerState, edge: OutEdge, rules: Rules) -> Push:
    """What the sender of an edge has to say now; saying it again does no harm."""
    epoch, life = edge.epoch, life_of(durable, rules)
    match edge.phase:
        case OutPhase.OPEN:
            return _say_total(durable, edge, rules)
        case OutPhase.RESYNC:
            return Hello(epoch, life, edge.ledger, edge.session)
        case OutPhase.CLOSING | OutPhase.DEAD:
            tag = _tag(durable, edge, edge.acked, rules)
            return Close(
                epoch, life, edge.ledger, edge.acked, edge.confirmed, tag, durable.progress
            )


def _say_total(durable: PeerState, edge: OutEdge, rules: Rules) -> Data | Compact:
    digest = digest_of(edge.sent)
    tag = sign(rules.secret, durable.ledger, edge.receiver, edge.epoch, edge.seq, digest)
    about = (edge.epoch, life_of(durable, rules), edge.ledger, edge.session, edge.granted, edge.seq)
    packed = edge.packed
    if edge.in_flight == 0 and rules.compact:
        packed = nothing(durable.layout, edge.sent, edge.seq)
    if packed is None:
        return Data(*about, edge.sent, tag, durable.progress)
    return Compact(*about, packed, digest, tag, durable.progress)


def remind(durable: PeerState, end: Settled, rules: Rules) -> Close:
    """Repeat how an edge ended: its receiver then knows that both know."""
    digest = digest_of(end.total)
    tag = sign(rules.secret, durable.ledger, end.receiver, end.epoch, end.seq, digest)
    life = life_of(durable, rules)
    return Close(end.epoch, life, end.ledger, end.seq, end.total, tag, durable.progress)


def report(durable: PeerState, edge: InEdge, rules: Rules) -> Ack | Closed:
    """Tell the sender of an edge what was heard, for a sender that was restored from a backup."""
    if edge.closed and edge.told is not Told.SENDER:
        return _end(durable, edge, rules)
    return Ack(edge.epoch, life_of(durable, rules), edge.seq, digest_of(edge.heard), edge.tag)


def answer(durable: PeerState, sender: Key, message: Push, rules: Rules) -> Iterator[Reply]:
    """The replies to a push, once what it brought is durable; one of them at most has a total."""
    life, epoch = life_of(durable, rules), message.epoch
    progress = durable.heard_progress.get(sender, NO_PROGRESS)
    if message.ledger not in (0, durable.ledger):
        yield Gone(epoch, life, message.ledger, progress)
        return
    if is_retired(durable.in_, sender, epoch):
        yield Retired(epoch, life, durable.in_[sender, RETIRED].seq, progress)
        return
    edge = durable.in_.get((sender, epoch))
    if isinstance(message, Hello):
        # Every edge from this sender, not only this one: it may have forgotten the others.
        for other in durable.in_.values():
            if other.sender == sender and other.epoch not in (epoch, RETIRED):
                digest = digest_of(other.heard)
                yield Ack(other.epoch, life, other.seq, digest, other.tag)
    if edge is None:
        if isinstance(message, Data | Compact):
            yield Stale(epoch, life)
        elif isinstance(message, Close) and message.seq == 0:
            yield Closed(epoch, life, 0, zeros(durable.dim), NO_TAG, progress)
    elif edge.closed:
        yield _end(durable, edge, rules)
    elif isinstance(message, Hello):
        yield _state(durable, edge, rules)
    elif isinstance(message, Data | Compact) and _is_lost_on(durable, edge, message):
        yield Stale(epoch, life)
    else:
        yield report(durable, edge, rules)


def _is_lost_on(durable: PeerState, edge: InEdge, message: Data | Compact) -> bool:
    """Whether a push says nothing to its receiver, which may have been restored from a backup."""
    # From an older session too: the newer one may be from a life the sender forgot.
    if (message.session, message.granted) != (edge.session, edge.granted):
        return True
    if not isinstance(message, Compact) or message.seq <= edge.seq:
        return False
    return total_of(durable.layout, edge, message) is None


def supersede(durable: PeerState, peer: Key, older: Life, rules: Rules) -> Superseded | None:
    """Tell an older life of a key about the newest one, or about one that was lifted over it."""
    newer = answer_to(durable, peer, older)
    return None if newer is None else Superseded(0, life_of(durable, rules), newer)


def receipts(durable: PeerState, own: Key, rules: Rules) -> Iterator[Receipt]:
    """What neighbours are to keep for senders that are away, of this peer's leaving and others'."""
    life = life_of(durable, rules)
    if durable.leaving:
        for edge in durable.in_.values():
            if edge.seq and edge.closed and edge.told is Told.NOBODY:
                digest = digest_of(edge.heard)
                yield Receipt(edge.epoch, life, own, edge.sender, edge.seq, digest, edge.tag)
    for (receiver, sender, epoch), kept in durable.receipts.items():
        yield Receipt(epoch, life, receiver, sender, kept.seq, kept.digest, kept.tag)


def _end(durable: PeerState, edge: InEdge, rules: Rules) -> Closed:
    progress = durable.heard_progress.get(edge.sender, NO_PROGRESS)
    return Closed(edge.epoch, life_of(durable, rules), edge.seq, edge.heard, edge.tag, progress)


def _state(durable: PeerState, edge: InEdge, rules: Rules) -> State:
    return State(
        edge.epoch,
        life_of(durable, rules),
        durable.ledger,
        edge.session,
        edge.granted,
        edge.seq,
        edge.heard,
        edge.tag,
        durable.heard_progress.get(edge.sender, NO_PROGRESS),
    )


def _tag(durable: PeerState, edge: OutEdge, seq: int, rules: Rules) -> bytes:
    digest = digest_of(edge.totals[seq])
    return sign(rules.secret, durable.ledger, edge.receiver, edge.epoch, seq, digest)
