"""A verdict on a claim: its effect, the effect's interval over seeds, the seeds for and against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from oneway.records import Vector

Verdict = Literal["holds", "fails", "mixed"]
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Finding:
    """What one setting says about a claim.

    Attributes:
        setting: Where it was measured.
        effect: Mean over seeds; positive speaks for the claim unless `reading` says otherwise.
        low: Lower end of the 95 % interval of that mean (Student's t over seeds).
        high: Upper end.
        num_for: Seeds that speak for the claim.
        num_against: Seeds that speak against it.
        verdict: For this setting alone.
        reading: What the effect is.
    """

    setting: str
    effect: float
    low: float
    high: float
    num_for: int
    num_against: int
    verdict: Verdict
    reading: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with what speaks for and against it."""

    text: str
    where: str
    findings: tuple[Finding, ...]
    verdict: Verdict
    note: str = ""


def interval(values: Vector) -> tuple[float, float, float]:
    """Mean over seeds and its 95 % interval; with one seed, or one that diverged, anything goes."""
    mean = float(np.mean(values))
    if len(values) < 2 or not np.isfinite(mean):
        return mean, -np.inf, np.inf
    error = float(stats.sem(values))
    if error == 0:
        return mean, mean, mean
    low, high = stats.t.interval(_CONFIDENCE, len(values) - 1, loc=mean, scale=error)
    return mean, float(low), float(high)


def paired(
    setting: str, differences: Vector, reading: str = "difference of average losses"
) -> Finding:
    """A claim that the differences, one per seed, are positive.

    It holds if the whole interval of the mean is above 0, fails if none of it is, and is mixed in
    between.
    """
    mean, low, high = interval(differences)
    verdict: Verdict = "holds" if low > 0 else "fails" if high <= 0 else "mixed"
    num_for = int((differences > 0).sum())
    return Finding(setting, mean, low, high, num_for, len(differences) - num_for, verdict, reading)


def below(setting: str, values: Vector, limit: float, reading: str) -> Finding:
    """A claim that the values, one per seed, are smaller than `limit`."""
    mean, low, high = interval(values)
    verdict: Verdict = "holds" if high < limit else "fails" if low >= limit else "mixed"
    num_for = int((values < limit).sum())
    return Finding(setting, mean, low, high, num_for, len(values) - num_for, verdict, reading)


def everywhere(findings: Sequence[Finding]) -> Verdict:
    """The verdict on a claim made for every setting."""
    verdicts = {finding.verdict for finding in findings}
    return verdicts.pop() if len(verdicts) == 1 else "mixed"


def somewhere(findings: Sequence[Finding]) -> Verdict:
    """The verdict on a claim made for some setting."""
    verdicts = {finding.verdict for finding in findings}
    if "holds" in verdicts:
        return "holds"
    return "fails" if verdicts == {"fails"} else "mixed"
