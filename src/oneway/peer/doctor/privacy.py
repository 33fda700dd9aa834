"""What a peer promises about its samples, and whether that holds, in sentences with a remedy."""

from __future__ import annotations

from collections.abc import Iterator

from oneway.errors import ConfigError
from oneway.peer.doctor.edges import QUIET_SECONDS
from oneway.peer.doctor.findings import Finding, SpokenTime, note, problem
from oneway.peer.home.config import PeerConfig
from oneway.records.status import Status
from oneway.task.task import Task


def about_privacy(config: PeerConfig, task: Task, samples: int) -> Iterator[Finding]:
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


def about_batches(status: Status, time: SpokenTime) -> Iterator[Finding]:
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
