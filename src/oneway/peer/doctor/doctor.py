"""What is wrong with a peer, in sentences that name the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from oneway.errors import ConfigError
from oneway.peer.doctor.edges import QUIET_SECONDS, about_receivers, about_senders
from oneway.peer.doctor.findings import Finding, SpokenTime, note, ok, problem
from oneway.peer.doctor.learning import about_learning
from oneway.peer.doctor.machine import MachineFacts, examine
from oneway.peer.doctor.privacy import about_batches, about_privacy
from oneway.peer.home.config import PeerConfig
from oneway.peer.status_text import nobody_takes_over, what_is_owed, who_has_not_heard
from oneway.protocol.rules import Rules
from oneway.records.status import Status, is_possible_mass
from oneway.task.task import Task
from oneway.transport.address import parse_address
from oneway.transport.keys import SIZE
from oneway.web.access_control import is_loopback

__all__ = ["Finding", "MachineFacts", "diagnose", "examine"]

STALE_SECONDS = 30.0
"""A peer that runs says how it is every few seconds."""

MASS_FLOOR = Rules.mass_floor
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
    findings = [*_about_machine(config, task, facts, time)]
    alive = facts.process is not None and status is not None
    if status is None or not alive or facts.now - status.time > STALE_SECONDS:
        findings += _about_silence(status, config, facts, time)
        findings += _about_what_is_stored(status, facts)
        findings += [] if status is None else about_learning(status, task)
        stored = facts.startup.stored
        findings += about_privacy(config, task, 0 if stored is None else stored.samples)
        findings += _about_trust(config)
    else:
        findings += _about_peer(status, task, facts, time)
        findings += about_privacy(config, task, status.samples)
        findings += about_batches(status, time)
        findings += about_learning(status, task)
        findings += _about_trust(config)
        findings += about_receivers(status, time)
        findings += about_senders(status, config, time)
    # A peer that is both receiver and sender has each of its faults once.
    return _summed_up(list(dict.fromkeys(findings)))


def _about_machine(
    config: PeerConfig, task: Task, facts: MachineFacts, time: SpokenTime
) -> Iterator[Finding]:
    if facts.newest_file > facts.now + CLOCK_SLACK:
        yield problem(
            f"the clock was set back: it says {time.at(facts.now)}, and the peer wrote its files "
            f"at {time.at(facts.newest_file)}; set the clock right"
        )
    if facts.disk_free is not None and facts.disk_free < LITTLE_DISK:
        yield problem(
            f"the disk has {facts.disk_free // 10**6} MB left: make room in {facts.folder}; a peer "
            "that cannot save its state stops sending"
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
    try:
        # Not the model's parameters: a method may send more than those, or nothing.
        config.limits.check_dim(task.layout.width)
    except ConfigError as error:
        yield problem(str(error))


def _about_silence(
    status: Status | None, config: PeerConfig, facts: MachineFacts, time: SpokenTime
) -> Iterator[Finding]:
    """Say why a peer does not speak."""
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
            f"the mass is {mass:,.6g}, which cannot be ({rule} can): stop the peer if it runs, and "
            "`oneway peer repair` starts again from one unit at the last sound model, and costs "
            "whatever others had handed over to it"
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
    if status.disk_problem:
        yield problem(
            f"the state cannot be saved, so nothing is sent: {status.disk_problem}; the peer goes "
            "on by itself once it can"
        )
    if status.leaving:
        yield _about_leaving(status)
    elif status.receivers and status.minted and status.mass <= MASS_FLOOR:
        last = max((sender.last_push for sender in status.senders), default=0.0)
        if time.now - last > QUIET_SECONDS / 10:
            yield problem(
                f"you have given away nearly all your mass ({status.mass:.4f} is left) and nothing "
                "comes back, so you no longer push: somebody who hears from you, directly or "
                "through others, must send to you; admit them"
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
    """Say what is missing in peer.toml."""
    try:
        # Any key will do: it is the address that may be missing.
        config.card(bytes(SIZE))
    except ConfigError as error:
        yield problem(str(error))
    if config.paused:
        yield note("the peer is paused and neither learns nor sends: set paused to false to go on")
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
