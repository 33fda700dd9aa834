"""What a peer may say, read from its last durable state and from nothing else.

A crash then never makes a peer deny what it said: at worst it has to say it again.
"""

from __future__ import annotations

from oneway.protocol.messages import (
    Ack,
    Close,
    Closed,
    Data,
    Gone,
    Hello,
    Push,
    Reply,
    Stale,
    State,
)
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, Key, OutEdge, OutPhase, PeerState, Settled
from oneway.protocol.tags import digest_of, sign


def say(durable: PeerState, edge: OutEdge, rules: Rules) -> Push:
    """What the sender of an edge has to say now; saying it again does no harm."""
    match edge.phase:
        case OutPhase.OPEN:
            tag = _tag(durable, edge, edge.seq, rules)
            return Data(
                edge.epoch, edge.ledger, edge.session, edge.granted, edge.seq, edge.sent, tag
            )
        case OutPhase.RESYNC:
            return Hello(edge.epoch, edge.ledger, edge.session)
        case OutPhase.CLOSING | OutPhase.DEAD:
            tag = _tag(durable, edge, edge.acked, rules)
            return Close(edge.epoch, edge.ledger, edge.acked, edge.confirmed, tag)


def remind(durable: PeerState, end: Settled, rules: Rules) -> Close:
    """Repeat how an edge ended, for a receiver that was restored from a backup."""
    digest = digest_of(end.total)
    tag = sign(rules.secret, durable.ledger, end.receiver, end.epoch, end.seq, digest)
    return Close(end.epoch, end.ledger, end.seq, end.total, tag)


def report(durable: PeerState, edge: InEdge) -> Ack | Closed:
    """Tell the sender of an edge what was heard, for a sender that was restored from a backup."""
    if edge.closed:
        return Closed(edge.epoch, edge.seq, edge.heard, edge.tag, durable.boot)
    return Ack(edge.epoch, edge.seq, digest_of(edge.heard), edge.tag, durable.boot)


def answer(durable: PeerState, sender: Key, message: Push) -> list[Reply]:
    """The replies to a push, once what it brought is durable."""
    if message.ledger not in (0, durable.ledger):
        return [Gone(message.epoch, message.ledger)]
    if isinstance(message, Hello):
        # Every edge from this sender, not only this one: it may have forgotten the others.
        return [_state(durable, edge) for edge in durable.in_.values() if edge.sender == sender]
    edge = durable.in_.get((sender, message.epoch))
    if isinstance(message, Data) and not (edge and edge.closed):
        known = (edge.session, edge.granted) if edge else (0, 0)
        if (message.session, message.granted) != known:
            # From an older session too: the newer one may be from a life the sender forgot.
            return [Stale(message.epoch, durable.boot)]
    return [report(durable, edge)] if edge else []


def _state(durable: PeerState, edge: InEdge) -> State | Ack | Closed:
    if edge.closed:
        return report(durable, edge)
    return State(
        edge.epoch,
        durable.ledger,
        edge.session,
        edge.granted,
        edge.seq,
        edge.heard,
        edge.tag,
        durable.boot,
    )


def _tag(durable: PeerState, edge: OutEdge, seq: int, rules: Rules) -> bytes:
    digest = digest_of(edge.totals[seq])
    return sign(rules.secret, durable.ledger, edge.receiver, edge.epoch, seq, digest)
