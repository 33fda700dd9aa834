"""Verdicts on claims: the effect over seeds, its interval, two tests, and seeds for and against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from oneway.records import Vector

Verdict = Literal["holds", "fails", "mixed"]
LEVEL = 0.05
"""Two-sided level of a test; the intervals cover the rest."""
SKEWED = 1.0
"""Beyond this skewness, either way, Student's t alone is not trusted with a few seeds."""


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
        p_student: Two-sided p-value of Student's t.
        p_wilcoxon: Two-sided p-value of Wilcoxon's signed-rank test.
        skewness: Of the seeds' values.
        verdict: For this setting alone.
        reading: What the effect is.
    """

    setting: str
    effect: float
    low: float
    high: float
    num_for: int
    num_against: int
    p_student: float
    p_wilcoxon: float
    skewness: float
    verdict: Verdict
    reading: str

    @property
    def skewed(self) -> bool:
        """Whether the verdict needs both tests."""
        return abs(self.skewness) > SKEWED

    @property
    def p_value(self) -> float:
        """The p-value that decides: of both tests the larger where values are skewed."""
        return max(self.p_student, self.p_wilcoxon) if self.skewed else self.p_student


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with what speaks for and against it."""

    text: str
    where: str
    findings: tuple[Finding, ...]
    verdict: Verdict
    note: str = ""

    @property
    def tally(self) -> str:
        """How many settings hold and fail, and how many after a correction for several tests."""
        found, stay = (
            [finding.verdict for finding in findings]
            for findings in (self.findings, standing(self.findings))
        )
        return (
            f"Of {len(found)} settings {found.count('holds')} hold and {found.count('fails')} "
            f"fail; with the level divided by {len(found)} tests, {stay.count('holds')} and "
            f"{stay.count('fails')}."
        )


def interval(values: Vector) -> tuple[float, float, float]:
    """Mean over seeds and its 95 % interval; with one seed, or one that diverged, anything goes."""
    mean = float(np.mean(values))
    if len(values) < 2 or not np.isfinite(mean):
        return mean, -np.inf, np.inf
    error = float(stats.sem(values))
    if error == 0:
        return mean, mean, mean
    low, high = stats.t.interval(1 - LEVEL, len(values) - 1, loc=mean, scale=error)
    return mean, float(low), float(high)


def paired(
    setting: str, differences: Vector, reading: str = "difference of average losses"
) -> Finding:
    """A claim that the differences, one per seed, are positive.

    It holds if the whole interval of the mean is above 0, fails if none of it is, and is mixed in
    between. Where the differences are skewed Wilcoxon's test must say the same; otherwise it is
    mixed. That test needs six seeds to say anything.
    """
    return _judged(setting, differences, differences, reading)


def below(setting: str, values: Vector, limit: float, reading: str) -> Finding:
    """A claim that the values, one per seed, are smaller than `limit`; judged like `paired`."""
    return _judged(setting, values, limit - values, reading)


def _judged(setting: str, values: Vector, margins: Vector, reading: str) -> Finding:
    """Judge that the margins are positive; the effect and its interval are those of the values."""
    _, low, high = interval(margins)
    verdict: Verdict = "holds" if low > 0 else "fails" if high <= 0 else "mixed"
    student, wilcoxon, skewness = _tests(margins)
    if abs(skewness) > SKEWED and verdict != _by_ranks(margins, wilcoxon):
        verdict = "mixed"
    num_for = int((margins > 0).sum())
    counts = (num_for, len(margins) - num_for)
    return Finding(
        setting, *interval(values), *counts, student, wilcoxon, skewness, verdict, reading
    )


def _tests(margins: Vector) -> tuple[float, float, float]:
    """The p-values of Student's t and of Wilcoxon's test, and the skewness."""
    if len(margins) < 2 or not np.isfinite(margins).all() or not margins.any():
        return 1.0, 1.0, 0.0
    wilcoxon = float(stats.wilcoxon(margins).pvalue)
    deviations = margins - margins.mean()
    variance = float(np.mean(deviations**2))
    if variance == 0:
        return 0.0, wilcoxon, 0.0
    freedom = len(margins) - 1
    student = 2 * stats.t.sf(abs(margins.mean()) / np.sqrt(variance / freedom), freedom)
    return float(student), wilcoxon, float(np.mean(deviations**3) / variance**1.5)


def _by_ranks(margins: Vector, p_value: float) -> Verdict:
    """What Wilcoxon's test says."""
    if p_value >= LEVEL:
        return "mixed"
    signed_ranks = np.sign(margins) * stats.rankdata(np.abs(margins))
    return "holds" if signed_ranks.sum() > 0 else "fails"


def everywhere(findings: Sequence[Finding]) -> Verdict:
    """The verdict on a claim made for every setting.

    No correction for several tests: that all of them hold by chance is rarer than that one does.
    """
    verdicts = {finding.verdict for finding in findings}
    return verdicts.pop() if len(verdicts) == 1 else "mixed"


def standing(findings: Sequence[Finding]) -> list[Finding]:
    """The findings decided also after a correction for several tests (Bonferroni).

    The more settings are looked at, the likelier is that one is decided by chance: each of m must
    be at the m-th part of the level.
    """
    corrected = LEVEL / max(1, len(findings))
    return [found for found in findings if found.verdict != "mixed" and found.p_value < corrected]


def somewhere(findings: Sequence[Finding]) -> Verdict:
    """The verdict on a claim made for some setting: one must hold after the correction.

    Holm's correction would give the same verdict, as its first step is Bonferroni's.
    """
    if any(found.verdict == "holds" for found in standing(findings)):
        return "holds"
    return "fails" if {found.verdict for found in findings} == {"fails"} else "mixed"
