"""What is wrong with a peer, in sentences that name the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from typing import Literal, TypeAlias

import msgspec

from oneway.errors import ConfigError
from oneway.metrics.baselines import half_width, is_worse
from oneway.peer.home.config import PeerConfig
from oneway.peer.machine import MachineFacts
from oneway.peer.status_text import nobody_takes_over, what_is_owed, who_has_not_heard
from oneway.records.measures import Baselines, Measures
from oneway.records.status import REPEATED, ReceiverStatus, SenderStatus, Status, is_possible_mass
from oneway.sentences import shown
from oneway.task.task import Task
from oneway.transport.address import parse_address
from oneway.transport.keys import SIZE
from oneway.web.access_control import is_loopback

Severity: TypeAlias = Literal["ok", "note", "problem"]
"""As it should be; worth knowing; something has to be done."""


class Finding(msgspec.Struct, frozen=True):
    """One sentence about a peer; a problem names its remedy."""

    severity: Severity
    sentence: str


ok = partial(Finding, "ok")
note = partial(Finding, "note")
problem = partial(Finding, "problem")

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


@dataclass(frozen=True)
class SpokenTime:
    """Says times as seen from one moment.

    Attributes:
        now: That moment, in seconds since 1970.
        zone: Whose time it is; None is this machine's.
    """

    now: float
    zone: tzinfo | None = None

    def at(self, time: float) -> str:
        """Return the time of day, with the date if that is not today.

        >>> from datetime import UTC
        >>> SpokenTime(7200.0, UTC).at(3600.0), SpokenTime(90000.0, UTC).at(3600.0)
        ('01:00', '1970-01-01 01:00')
        """
        moment, today = (datetime.fromtimestamp(t, self.zone) for t in (time, self.now))
        return moment.strftime("%H:%M" if moment.date() == today.date() else "%Y-%m-%d %H:%M")

    def since(self, time: float) -> str:
        """Return since when and for how long.

        >>> from datetime import UTC
        >>> SpokenTime(4320.0, UTC).since(3600.0)
        'since 01:00 (12 minutes)'
        """
        return f"since {self.at(time)} ({spoken_age(self.now - time)})"


def spoken_age(seconds: float) -> str:
    """Return an age in its largest unit, rounded down.

    >>> spoken_age(0.0), spoken_age(1.5), spoken_age(7199.0), spoken_age(86400.0)
    ('0 seconds', '1 second', '1 hour', '1 day')
    """
    age = max(0.0, seconds)
    unit, size = next((item for item in _UNITS if age >= item[1]), _UNITS[-1])
    count = math.floor(age / size)
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


PATIENCE = 10.0
"""Seconds that a connection or an acknowledgement may take."""

QUIET_SECONDS = 300.0
"""A sender that has not pushed for so long may have stopped; one whose model rests is quiet too."""

MANY_CLIPPED = 0.1

MANY_CLAIMS = 3
"""Restored backups in one life of this peer; once or twice may happen to anybody."""

_BLAMELESS = (REPEATED, "quarantined", "another task", "another version")
"""Reasons why a message is not taken in that do not count against its sender."""


def _about_receivers(status: Status, time: SpokenTime) -> Iterator[Finding]:
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
    if receiver.link == "unresponsive":
        return problem(
            f"{address} accepts connections but {name} has not answered "
            f"{time.since(receiver.link_since)}: its process may be stopped or overloaded, or "
            f"another program listens there; ask {name} to run `oneway peer doctor`"
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


def _about_senders(status: Status, config: PeerConfig, time: SpokenTime) -> Iterator[Finding]:
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
            "at all: check that all your senders run the same release of oneway"
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
            "if you no longer trust it, take its admission back with oneway peer admit --revoke"
        )
    elif sender.strikes:
        count = _count(sender.strikes, "message is", "messages are")
        yield note(
            f"{count} held against {name}{_reasons(sender)}: after {config.limits.max_strikes} it "
            "is quarantined for a while"
        )
    if sender.clipped > MANY_CLIPPED * sender.seq:
        yield note(
            f"what {name} sends is often far from your model, long beside it, or pulls in one "
            f"direction for long, and was clipped {_count(sender.clipped, 'time', 'times')}: "
            "compare your data; if you trust it in everything, raise clip in peer.toml, or turn "
            "it off"
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


def _about_learning(status: Status, task: Task) -> Iterator[Finding]:
    """Yield findings about a loss that is worse than a baseline, beyond chance, lately."""
    measures = status.measures
    found = None if measures is None else measures.lately
    if measures is None or found is None:
        return
    if is_worse(found.loss, found.base_loss, found.base_error):
        yield problem(
            f"your loss is worse than {_constant_answer(measures)}: {_gap(found)} over the last "
            f"{found.samples:,} samples: {_remedy(found, task)}"
        )
    elif is_worse(found.loss, found.alone_loss, found.alone_error):
        assert found.alone_loss is not None
        assert found.alone_error is not None
        apart = _interval(found.loss, found.alone_loss, found.alone_error)
        yield note(
            f"alone you would do better than your predictions: {found.loss:.4f} per sample against "
            f"{found.alone_loss:.4f} ({apart}) over the last {found.samples:,} samples: "
            f"they follow, but late; {_why_together_is_worse(task)}"
        )
    for expert, count in measures.left_out.items():
        yield note(
            f"the expert {expert} had no finite answer {count:,} times, and was left out of those "
            "predictions; the others answer"
        )


def lower_rate(rate: float) -> float:
    """Return about a third of a learning rate, rounded down to 1 or 3 times a power of ten.

    >>> lower_rate(0.1), lower_rate(0.3), lower_rate(1.0), lower_rate(0.05), lower_rate(0.02)
    (0.03, 0.1, 0.3, 0.01, 0.003)
    """
    wanted = rate / 3.0 * (1.0 + 1e-9)
    power = math.floor(math.log10(wanted))
    # Written out, since 3 * 10**-2 is not 0.03.
    return float(f"{3 if wanted >= 3 * 10.0**power * (1 - 1e-6) else 1}e{power}")


def _constant_answer(measures: Measures) -> str:
    if measures.answer_share is None:
        return f"always answering the mean so far, {measures.answer}"
    return (
        f"always answering {shown(measures.answer)} as sure as it is frequent, "
        f"{measures.answer_share:.0%}"
    )


def _gap(found: Baselines) -> str:
    assert found.base_error is not None
    apart = _interval(found.loss, found.base_loss, found.base_error)
    return f"{found.loss:.4f} per sample against {found.base_loss:.4f} ({apart})"


def _interval(loss: float, baseline: float, error: float) -> str:
    """How much worse a loss is, with its interval, as a share of the baseline."""
    if not baseline:
        return f"{loss - baseline:.4f} more"
    excess, half = (loss - baseline) / abs(baseline), half_width(error) / abs(baseline)
    return f"{excess - half:.0%} to {excess + half:.0%} more"


def _remedy(found: Baselines, task: Task) -> str:
    """What to do about a loss worse than the base rate's."""
    anew = "in a new task that all peers agree on"
    alone_is_fine = found.alone_loss is not None and found.alone_loss < found.base_loss
    if alone_is_fine and task.privacy:
        return (
            f"alone, without noise, it would be {found.alone_loss:.4f}, so the noise of the "
            f"privacy is too much for it: {_lowered(found, task)}, or agree on a larger epsilon or "
            f"more samples_per_push, {anew}"
        )
    return f"{_lowered(found, task)}, {anew}"


def _lowered(found: Baselines, task: Task) -> str:
    rate = task.learning_rate
    if isinstance(rate, int | float):
        lower = lower_rate(rate)
        if found.loss > 2.0 * found.base_loss:  # far off: a third would not do
            lower = lower_rate(lower)
        return f'lower the learning rate to {lower:g}, or let it be chosen with "auto"'
    return "set a learning rate of your own, for example 0.01"


def _why_together_is_worse(task: Task) -> str:
    if task.privacy:
        return (
            "the noise of the privacy costs more than the others help; agree with all peers on "
            "more samples_per_push, a lower learning rate or a larger epsilon, in a new task"
        )
    return (
        "the data of your senders may differ from yours; take back the admission of those that do "
        "not help: `oneway peer admit --revoke NAME`"
    )


def _about_privacy(config: PeerConfig, task: Task, samples: int) -> Iterator[Finding]:
    """Yield findings about what is promised, after so many samples; of a peer that runs or not."""
    try:
        learned = config.privacy.applied(task)
    except ConfigError as error:
        yield problem(str(error))
        return
    if not learned.build_method().payload:
        return
    if not learned.privacy:
        yield note(
            f"privacy: {learned.privacy_in_words}: set epsilon under [privacy] in peer.toml and "
            "start the peer again, or agree with all peers on a task that has a [privacy]"
        )
    try:
        learned.privacy.check_samples(max(samples, 1))
    except ConfigError as error:
        yield note(
            f"{error}, in the [privacy] of a new task that all peers agree on, and make new peers "
            "for it"
        )


def _about_batches(status: Status, time: SpokenTime) -> Iterator[Finding]:
    """Yield findings about what a running peer promises and keeps back."""
    privacy = status.privacy
    if privacy is None:
        return
    if privacy.needs_restart:
        yield problem(
            "[privacy] in peer.toml was changed since the peer started, which goes on with "
            f"{privacy.brief}, and {privacy.samples_per_push} samples in a push: start it again"
        )
    is_quiet = status.finished or time.now - status.last_sample > QUIET_SECONDS
    if is_quiet and status.receivers and 0 < status.samples < privacy.samples_per_push:
        yield note(
            f"only {privacy.progress} are there, so nothing that you learned was ever sent: give "
            "it more samples; fewer in a push would tell more about each"
        )


STALE_SECONDS = 30.0
"""A peer that runs says how it is every few seconds."""

LITTLE_DISK = 100 * 10**6

CLOCK_SLACK = 5.0
"""File systems and clocks may disagree by so many seconds."""

MANY_SKIPPED = 0.1
"""A stream with a larger share of samples that cannot be used is not the one that was meant."""


_PORT_PROBLEMS = {
    "taken": "another program listens on {0.listen}, where {0.name} should: stop it, or choose "
    "another port under listen in peer.toml, and hand out your new card",
    "elsewhere": "{0.listen} is not an address of this machine: correct listen in peer.toml; "
    "0.0.0.0 means every address of this machine",
    "forbidden": "you may not listen on {0.listen}: choose a port from 1024 on under listen in "
    "peer.toml, and hand out your new card",
}
"""Why a peer could not listen where it should; of what it is told, the address and the name."""


def diagnose(
    status: Status | None,
    config: PeerConfig,
    task: Task,
    facts: MachineFacts,
    zone: tzinfo | None = None,
) -> list[Finding]:
    """Return what is to be said about a peer, problems first, in a time zone (None: the machine's).

    The status is what it last said about itself, if ever.
    """
    time = SpokenTime(facts.now, zone)
    alive = facts.process is not None and status is not None
    findings = [*_about_machine(facts, time)]
    if status is not None and alive and status.disk_problem:
        findings.append(_about_disk(status, time))
    elif facts.disk_free is not None and facts.disk_free < LITTLE_DISK:
        findings.append(
            problem(
                f"the disk has {facts.disk_free // 10**6} MB left: make room in {facts.folder}; a "
                "peer that cannot save its state stops sending"
            )
        )
    if status is None or not alive or facts.now - status.time > STALE_SECONDS:
        findings += _about_silence(status, config, facts, time)
        findings += _about_what_is_stored(status, facts)
        findings += [] if status is None else _about_learning(status, task)
        stored = facts.startup.stored
        findings += _about_privacy(config, task, 0 if stored is None else stored.samples)
        findings += _about_trust(config)
    else:
        findings += _about_peer(status, task, facts, time)
        findings += _about_privacy(config, task, status.samples)
        findings += _about_batches(status, time)
        findings += _about_learning(status, task)
        findings += _about_trust(config)
        findings += _about_receivers(status, time)
        findings += _about_senders(status, config, time)
    # A peer that is both receiver and sender has each of its faults once.
    return _summed_up(list(dict.fromkeys(findings)))


def _about_machine(facts: MachineFacts, time: SpokenTime) -> Iterator[Finding]:
    if facts.newest_file > facts.now + CLOCK_SLACK:
        yield problem(
            f"the clock was set back: it says {time.at(facts.now)}, and the peer wrote its files "
            f"at {time.at(facts.newest_file)}; set the clock right"
        )
    if not facts.folder_writable:
        yield problem(
            f"the folder {facts.folder} cannot be written: chmod u+rwx {facts.folder}, or run the "
            "peer as the user it belongs to"
        )
    if facts.key_mode is None:
        yield problem(
            f"the key file {facts.key_path} is missing or cannot be seen: put it back from your "
            "backup; without it nobody knows you"
        )
    elif facts.key_mode & 0o077:
        yield problem(
            f"the key file can be read by others (mode {facts.key_mode:04o}): "
            f"chmod 600 {facts.key_path}"
        )
    elif facts.startup.key_problem:
        yield problem(facts.startup.key_problem)
    if facts.startup.store_problem:
        yield problem(facts.startup.store_problem)


def _about_disk(status: Status, time: SpokenTime) -> Finding:
    since = status.disk_problem_since
    return problem(
        f"the peer cannot write to its disk{f' {time.since(since)}' if since else ''}, and sends "
        f"nothing that is not saved: {status.disk_problem}; it goes on by itself once it can"
    )


def _about_silence(
    status: Status | None, config: PeerConfig, facts: MachineFacts, time: SpokenTime
) -> Iterator[Finding]:
    """Say why a peer does not speak."""
    if facts.process is not None and status is not None and status.disk_problem:
        return  # this is why
    if facts.process is not None:
        last = f" {time.since(status.time)}" if status else " yet"
        yield problem(
            f"process {facts.process} runs {config.name} but has said nothing{last}: look at what "
            f"it printed, and if it stays so: kill {facts.process}, and start it again"
        )
        return
    if config.leaving and status is not None and status.drained:
        yield note(
            f"{config.name} has left and handed over everything: to take part again, make a new "
            "peer in another folder with oneway peer init"
        )
        if status.unheard:
            yield note(
                f"{who_has_not_heard(status)}: they go on looking for {config.name} until they run "
                f"`oneway peer distrust {config.name}`"
            )
        return
    last = f"; it last did at {time.at(status.time)}" if status else ""
    if status is not None and status.stopped:
        yield problem(status.stopped)
    elif config.leaving and status is not None:
        yield problem(
            f"{config.name} is not running{last}, and has not left yet: {what_is_owed(status)}; go "
            "on with `oneway peer leave`"
        )
    elif facts.startup.store_problem:
        yield note(f"{config.name} is not running{last}, and cannot before that is mended")
    else:
        yield problem(f"{config.name} is not running{last}: start it with `oneway peer run`")
    if facts.port in _PORT_PROBLEMS:
        yield problem(_PORT_PROBLEMS[facts.port].format(config))


def _about_what_is_stored(status: Status | None, facts: MachineFacts) -> Iterator[Finding]:
    """Say what is wrong with what a peer left when it stopped."""
    stored = facts.startup.stored
    if stored is not None:
        yield from _about_mass(stored.mass, stored.mass_limit)
        last = "" if status is None else status.last_skipped
        yield from _about_skipped(stored.skipped, stored.samples, last)
    elif status is not None:
        yield from _about_mass(status.mass, status.mass_limit)
        yield from _about_skipped(status.skipped, status.samples, status.last_skipped)


def _about_mass(mass: float, limit: float) -> Iterator[Finding]:
    if not is_possible_mass(mass, limit):
        rule = f"from 0 to {limit:,.6g}" if limit else "0 or more"
        yield problem(
            f"the mass is {mass:,.6g}, which is impossible; it must be {rule}: stop this peer, "
            "make a new one in another folder, and please report it"
        )


def _about_peer(
    status: Status, task: Task, facts: MachineFacts, time: SpokenTime
) -> Iterator[Finding]:
    if facts.port == "free":
        yield problem(
            "the peer runs, but does not listen where peer.toml says: if you changed listen, "
            "start it again"
        )
    if status.copies:
        yield problem(status.copies)
    if status.task != task.fingerprint.hex() and not facts.startup.store_problem:
        yield problem(
            "task.toml was changed since the peer started, which goes on with the old one and "
            "would refuse the new one: put the old one back, or make a new peer for the new task"
        )
    yield from _about_mass(status.mass, status.mass_limit)
    if status.owed:
        yield note(
            f"{status.owed:.6g} of mass had been handed over in a life that the peer forgot when "
            "it was restored from a backup: it is paid back from what comes in, by itself"
        )
    if status.leaving:
        yield _about_leaving(status)
    elif status.replenished and status.receivers:
        yield note(
            "less mass comes back than you hand out: somebody who hears from you, directly or "
            "through others, sends to nobody who leads back to you. The peer mints what is missing "
            f"({status.replenished:.3g} so far) and goes on; those downstream learn from you, and "
            "you learn from those who send to you"
        )
    yield from _about_samples(status, time)


def _about_leaving(status: Status) -> Finding:
    unheard = who_has_not_heard(status)
    if status.drained and not unheard:
        return note("the peer has handed over everything and has left; stop it whenever you like")
    if status.drained:
        return note(f"the peer has handed over everything, but {unheard}: let it run until then")
    if nobody_takes_over(status):
        return problem(f"the peer cannot leave: {what_is_owed(status)}")
    owing = [peer.name for peer in status.receivers if peer.seq > peer.acked]
    whom = f" until {', '.join(owing)} acknowledged it" if owing else ""
    also = f"; {unheard}" if unheard else ""
    return note(f"the peer is leaving and hands over what it has: let it run{whom}{also}")


def _about_samples(status: Status, time: SpokenTime) -> Iterator[Finding]:
    quiet_since = max(status.last_sample, status.started)
    if not status.finished and time.now - quiet_since > QUIET_SECONDS:
        yield note(
            f"no sample has arrived {time.since(quiet_since)}: if some should have, check where "
            "they come from"
        )
    yield from _about_skipped(status.skipped, status.samples, status.last_skipped)


def _about_skipped(skipped: int, samples: int, last_skipped: str) -> Iterator[Finding]:
    if skipped:
        count = f"{skipped:,} samples were" if skipped > 1 else "1 sample was"
        last = f", the last because of {last_skipped}" if last_skipped else ""
        many = skipped > MANY_SKIPPED * (samples + skipped)
        yield (problem if many else note)(
            f"{count} skipped{last}: correct where they come from, nothing was learned from them"
        )


def _about_trust(config: PeerConfig) -> Iterator[Finding]:
    """Say what is missing in peer.toml and peers.toml."""
    try:
        # Any key will do: it is the address that may be missing.
        config.card(bytes(SIZE))
    except ConfigError as error:
        yield problem(str(error))
    if config.paused:
        yield note(
            "the peer is paused and neither learns nor sends: set paused = false in peers.toml to "
            "go on"
        )
    if not config.senders and not config.anyone:
        yield problem(
            "nobody sends to you, so your model is only your own: hand out `oneway peer card` and "
            "admit those who send"
        )
    if not config.receivers:
        yield note(
            "you send to nobody, so nobody learns from you: `oneway peer trust CARD` with the card "
            "of somebody you would send your model to"
        )
    afar = [peer.name for peer in config.receivers if not is_loopback(peer.card.host)]
    if afar and not config.advertise and is_loopback(parse_address(config.listen)[0]):
        yield note(
            f"you listen on {config.listen}, which other machines cannot reach, but {afar[0]} is "
            "on another: if it should send to you, set listen in peer.toml to an address of this "
            "machine that others reach, and hand out your new card"
        )


def _summed_up(findings: list[Finding]) -> list[Finding]:
    """Put the worst first, and say that all is well if it is."""
    problems, notes, well = (
        [finding for finding in findings if finding.severity == severity]
        for severity in ("problem", "note", "ok")
    )
    if not problems:
        said = ", ".join(finding.sentence for finding in well)
        verdict = "apart from that, all is well" if notes else "all is well"
        well = [ok(f"{verdict}: {said}" if said else verdict)]
    return [*problems, *notes, *well]
