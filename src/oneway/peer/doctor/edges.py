"""What is wrong between a running peer and the others, in sentences that name the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator

from oneway.peer.doctor.findings import Finding, SpokenTime, note, ok, problem, spoken_age
from oneway.peer.home.config import PeerConfig
from oneway.records.status import REPEATED, ReceiverStatus, SenderStatus, Status

PATIENCE = 10.0
"""Seconds that a connection or an acknowledgement may take."""

QUIET_SECONDS = 300.0
"""A sender that has not pushed for so long may have stopped; one whose model rests is quiet too."""

MANY_CLIPPED = 0.1

MANY_CLAIMS = 3
"""Restored backups in one life of this peer; once or twice may happen to anybody."""

_BLAMELESS = (REPEATED, "quarantined", "another task", "another version")
"""Reasons why a message is not taken in that do not count against its sender."""


def about_receivers(status: Status, time: SpokenTime) -> Iterator[Finding]:
    """Yield a finding for every receiver in trouble, and one for all that are well."""
    lags: list[float] = []
    for receiver in status.receivers:
        if receiver.claims >= MANY_CLAIMS:
            yield note(
                f"{receiver.name} has claimed {receiver.claims:,} times to have been restored from "
                f"a backup: ask {receiver.name}; if it was not, it may want more mass than is its "
                f"due: `oneway peer distrust {receiver.name}`"
            )
        finding = _about_receiver(receiver, status, time)
        if finding is not None:
            yield finding
        else:
            lags.append(receiver.lag)
    if lags:
        within = max(0.1, math.ceil(10 * max(lags)) / 10)
        yield ok(
            f"{_count(len(lags), 'receiver acknowledges', 'receivers acknowledge')} within "
            f"{within:.1f} s"
        )


def _about_receiver(receiver: ReceiverStatus, status: Status, time: SpokenTime) -> Finding | None:
    name, address = receiver.name, receiver.address
    if receiver.problem:
        return problem(receiver.problem)
    if receiver.left and receiver.weight:
        return problem(
            f"{name} has left the network (it said so), and what it had not taken over stays with "
            f"you: `oneway peer distrust {name}`; if it came back as a new peer, ask for its card"
        )
    if receiver.link == "refused":
        return problem(
            f"{name} answers but does not admit you: ask {name} to run "
            f"`oneway peer admit {_card(status)}`"
        )
    if receiver.link == "stranger":
        return problem(
            f"whoever answers at {address} is not {name}: its key differs; ask {name} for a new "
            f"card, then `oneway peer distrust {name}` and `oneway peer trust CARD`"
        )
    if not receiver.weight:
        return note(
            f"{name} has not yet confirmed that you sent it the last: let the peer run; what did "
            "not arrive comes back to you once it does"
        )
    if receiver.link == "connecting":
        if time.now - receiver.link_since <= PATIENCE:
            return note(f"still connecting to {name} at {address}: ask again in a moment")
        return problem(
            f"cannot reach {name} at {address} {time.since(receiver.link_since)}: check that "
            f"{name} runs and that the port is open"
        )
    if receiver.phase == "dead":
        return problem(
            f"{name} was silent for so long that it is presumed dead, and what it had not "
            f"acknowledged was taken back: if it is gone for good, `oneway peer distrust {name}`"
        )
    if receiver.lag > PATIENCE or _is_mute(receiver, time):
        age = max(receiver.lag, time.now - max(receiver.last_answer, receiver.link_since))
        return problem(
            f"{name} is connected but has acknowledged nothing for {spoken_age(age)}: ask {name} "
            "to run `oneway peer doctor`; its disk may be full, or it does not keep up"
        )
    return None


def _is_mute(receiver: ReceiverStatus, time: SpokenTime) -> bool:
    """Whether a receiver was asked how things stand and has not answered."""
    asked = receiver.phase in ("none", "resync")
    return asked and time.now - max(receiver.last_answer, receiver.link_since) > PATIENCE


def about_senders(status: Status, config: PeerConfig, time: SpokenTime) -> Iterator[Finding]:
    """Yield findings about who sends, and who is kept from it."""
    known = [sender for sender in status.senders if sender.admitted]
    for sender in known:
        if sender.left:
            yield note(
                f"{sender.name} has left the network (it said so): nothing is wrong with that; "
                f"revoke its admission if you like: `oneway peer admit --revoke {sender.name}`"
            )
    senders = [sender for sender in known if not (sender.closed or sender.left)]
    never = [sender for sender in senders if not sender.seq and not sender.problem]
    if never and len(never) == len(senders):
        names = ", ".join(sender.name for sender in never)
        yield problem(
            f"nobody has sent to you yet, so your model is only your own: ask {names} to run "
            f"`oneway peer trust {_card(status)}`"
        )
        never = []
    for sender in never:
        yield note(
            f"{sender.name} may send to you but never has: ask {sender.name} to run "
            f"`oneway peer trust {_card(status)}`"
        )
    for sender in senders:
        yield from _about_sender(sender, status, config, time)
    pushing = sum(_is_well(sender, status, time) for sender in senders)
    if pushing:
        yield ok(_count(pushing, "sender pushes", "senders push"))
    if status.refused:
        yield note(
            f"{_count(status.refused, 'message', 'messages')} came from peers that are not "
            "admitted: if you expect somebody, `oneway peer admit CARD` with the card they give you"
        )
    if status.undecodable:
        yield note(
            f"{_count(status.undecodable, 'message was', 'messages were')} too large or no message "
            "at all: if one of your senders has a larger limit, raise max_message_bytes in "
            "peer.toml"
        )


def _about_sender(
    sender: SenderStatus, status: Status, config: PeerConfig, time: SpokenTime
) -> Iterator[Finding]:
    name = sender.name
    if sender.problem:
        yield problem(sender.problem)
    if sender.quarantined:
        count = _count(sender.strikes, "rejected message", "rejected messages")
        yield problem(
            f"{name} is quarantined after {count}{_reasons(sender)}: ask {name} to update oneway; "
            "if you no longer trust it, remove it from the senders in peer.toml"
        )
    elif sender.strikes:
        count = _count(sender.strikes, "message is", "messages are")
        yield note(
            f"{count} held against {name}{_reasons(sender)}: after {config.limits.max_strikes} it "
            "is quarantined for a while"
        )
    if sender.clipped > MANY_CLIPPED * sender.seq:
        yield note(
            f"what {name} sends is often far from your model, or long beside it, and was clipped "
            f"{_count(sender.clipped, 'time', 'times')}: compare your data, or raise clip in "
            "peer.toml if you trust it"
        )
    if sender.waiting:
        yield note(
            f"{name} offers {sender.waiting:.6g} of mass that is not taken in, as more may not "
            f"come in or be held at the moment: it stays with {name} until there is room; if that "
            f"lasts, ask {name} why it has so much"
        )
    silent_since = status.silent_since(sender)
    last_push = sender.last_push or status.started
    if silent_since is not None:
        yield problem(
            f"nothing at all was heard from {name} {time.since(silent_since)}: check that {name} "
            "runs, still trusts you and can reach you"
        )
    elif sender.seq and not sender.quarantined and time.now - last_push > QUIET_SECONDS:
        yield note(
            f"{name} has not pushed {time.since(last_push)}: if it should have, check that "
            f"{name} runs and still trusts you"
        )


def _is_well(sender: SenderStatus, status: Status, time: SpokenTime) -> bool:
    recent = sender.last_push > 0 and time.now - sender.last_push <= QUIET_SECONDS
    is_silent = status.silent_since(sender) is not None
    return recent and not (is_silent or sender.quarantined or sender.problem)


def _reasons(sender: SenderStatus) -> str:
    kinds = {kind: count for kind, count in sender.rejected.items() if kind not in _BLAMELESS}
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f" ({listed})" if listed else ""


def _card(status: Status) -> str:
    """Return the own card, quoted: to some shells a question mark means more."""
    return f"'{status.card}'" if status.card else "CARD"


def _count(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
