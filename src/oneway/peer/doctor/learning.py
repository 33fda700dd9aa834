"""Whether a peer learns: its loss against the base rate and against itself alone, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from oneway.metrics.baselines import half_width, is_worse
from oneway.peer.doctor.findings import Finding, note, problem
from oneway.records.measures import Baselines, Measures
from oneway.records.status import Status
from oneway.sentences import shown
from oneway.task.task import Task


def about_learning(status: Status, task: Task) -> Iterator[Finding]:
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
            f"alone you would do better than together: {found.loss:.4f} per sample against "
            f"{found.alone_loss:.4f} ({apart}) over the last {found.samples:,} samples: "
            f"{_why_together_is_worse(task)}"
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
        "the data of those you hear from may be of another kind than yours; revoke those that do "
        "not help with `oneway peer revoke`"
    )
