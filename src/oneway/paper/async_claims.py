"""Claims about asynchronous networks: an answer to each question, with a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oneway.methods.batches import DEFAULT_SAMPLES
from oneway.paper.async_network import (
    ALONE,
    BATCHES,
    CLIPS,
    CONDITIONS,
    DEATHS,
    DEFAULT_DEATH,
    DEFAULT_WINDOW,
    METHODS,
    NAME,
    SLOW_LINKS,
    WINDOWS,
    Answers,
    batched,
    conditioned,
    presuming,
    windowed,
)
from oneway.paper.methods import label
from oneway.paper.verdict import Claim, Finding, below, everywhere, paired

CHEAP = 0.05
"""A condition is cheap if it costs less of the loss than this."""
SAME = 0.01
"""A choice is as good as another if it is worse by less of the loss than this."""
NO_BETTER = (
    f"No other window, batch or presumed-death time is better by {SAME:.0%} of the loss than the "
    "peers' own."
)
SLOWLY = 0.25
"""The exponent of the number of peers below which time grows slowly."""


def judged(answers: Answers) -> list[Claim]:
    """An answer to each question, with a verdict."""
    return [
        *(_cheap(answers, method) for method in METHODS if method != ALONE),
        *(_together(answers, method) for method in METHODS if method != ALONE),
        _claim(NO_BETTER, list(_choices(answers))),
        _claim(
            f"Time to a given loss grows more slowly than n^{SLOWLY:g} with the number n of peers.",
            [
                below(
                    f"{min(answers.extent.sizes):,} to {max(answers.extent.sizes):,} peers",
                    answers.exponents(),
                    SLOWLY,
                    "exponent p of time ~ n^p",
                )
            ],
        ),
        *_liars(answers),
    ]


def _claim(text: str, findings: Sequence[Finding]) -> Claim:
    note = (
        "Not a claim of the paper. Asynchronous network in virtual time, logistic regression on "
        "synthetic rows, epsilon 8, rates chosen while learning, paired by seed."
    )
    return Claim(text, NAME, tuple(findings), everywhere(findings), note)


def _cheap(answers: Answers, method: str) -> Claim:
    own = label(method).title
    return _claim(
        f"No condition costs {own} more than {CHEAP:.0%} of its loss.",
        [
            below(title, answers.cost(title, method), CHEAP, f"cost of it to {own}, part of loss")
            for title in CONDITIONS
        ],
    )


def _together(answers: Answers, method: str) -> Claim:
    own, extent = label(method).title, answers.extent
    findings = []
    for title in CONDITIONS:
        together, alone = (answers.losses(conditioned(extent, title, it)) for it in (method, ALONE))
        findings.append(paired(title, alone - together, f"loss alone minus loss of {own}"))
    return _claim(
        f"Under every condition {own} with noise is better than nodes alone without.", findings
    )


def _choices(answers: Answers) -> Iterator[Finding]:
    """How much better than the default every other choice is, as a part of the loss."""
    extent = answers.extent
    reading = "loss of the default minus loss of this, part of the former"
    for links, words in (((), ""), ((SLOW_LINKS,), ", delay x 10")):
        usual = windowed(extent, DEFAULT_WINDOW, links)
        for window in WINDOWS:
            if window != DEFAULT_WINDOW:
                less = -answers.more(windowed(extent, window, links), usual)
                yield below(f"window {window}{words}", less, SAME, reading)
    for samples in BATCHES:
        if samples != DEFAULT_SAMPLES:
            less = -answers.more(batched(extent, samples), batched(extent, DEFAULT_SAMPLES))
            yield below(f"batches of {samples}", less, SAME, reading)
    for seconds in DEATHS:
        if seconds != DEFAULT_DEATH:
            less = -answers.more(presuming(extent, seconds), presuming(extent, DEFAULT_DEATH))
            yield below(f"presumed dead after {seconds:g} s", less, SAME, reading)


def _liars(answers: Answers) -> list[Claim]:
    many, (clip, none) = answers.extent.many, CLIPS
    setting = f"one liar among {many:,} peers"
    with_clip, without = (answers.lie_cost(it) for it in (clip, none))
    costs = below(setting, with_clip, SAME, "cost to the honest, part of their loss")
    saved = paired(setting, without - with_clip, "cost without the clip minus cost with it")
    return [
        _claim(
            f"With the clip at {clip:g} one liar in {many:,} costs the honest less than "
            f"{SAME:.0%} of their loss.",
            [costs],
        ),
        _claim("Without the clip a liar costs the honest more.", [saved]),
    ]
