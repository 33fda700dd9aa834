"""Claims about the methods beyond the paper, judged: what a default must be defended with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from oneway.paper.beyond import (
    ALONE,
    NAME,
    OPS_BY_RULE,
    PUBLISHED_OPS,
    SERVER,
    TWICE,
    Measured,
    Results,
)
from oneway.paper.methods import label
from oneway.paper.verdict import Claim, Finding, below, everywhere, paired

CHOSEN = "relay-plain"
"""What the claims are about: by count, with the plain step."""
DEFAULT = "relay-curvature"
"""What a new task runs."""
NEAR = 0.02
"""A loss reaches the server's if it is larger by less than this part of it."""
UNBIASED = 0.1
"""A common model is called the best one if it is off by less than this part of the spread."""
_NOTE = (
    "Not a claim of the paper. Paired by seed, each method at its best rate in that very setting. "
    "Mixed is undecided for one setting, and for all together that settings differ."
)


def judged(results: Results) -> list[Claim]:
    """Every claim with a finding for each setting that can judge it."""
    own = label(CHOSEN).title
    networks = [it for it in results.lockstep if it.setting.world.network is not None]
    sentences: list[tuple[str, Iterator[Finding], str]] = [
        (
            f"{own} has a smaller loss than OPS with any step rule.",
            _against(results.all, _best_rule),
            "Against the step rule with the smallest mean loss in that setting.",
        ),
        (
            "A new task's method and step have a smaller loss than OPS with any step rule.",
            _against(results.all, _best_rule, DEFAULT),
            "Relay with the curvature step, by count, where it was run.",
        ),
        (
            f"{own} has a smaller loss than OPS at equal cost.",
            _against(results.all, lambda _: TWICE),
            f"{own} sends two vectors a push; OPS with the mass step exchanges twice a sample.",
        ),
        (
            f"{own} has a smaller loss than Tracking.",
            _against(results.all, lambda _: "tracking-plain"),
            "",
        ),
        (f"{own} has a smaller loss than Pull.", _against(results.all, lambda _: "pull-plain"), ""),
        (
            f"{own} by count has a smaller loss than by mass.",
            _against(results.all, lambda _: "relay-mass"),
            "",
        ),
        (
            f"{own} has a smaller loss than {own} with AdaGrad on deposits.",
            _against(results.all, lambda _: "relay-adagrad"),
            "",
        ),
        (
            f"{own} has a smaller loss than learning alone.",
            _against(results.all, lambda _: ALONE),
            "Alone has neither batches nor noise at any epsilon.",
        ),
        (
            f"{own} reaches the server's loss up to {NEAR:.0%}.",
            (
                below(it.title, _excess(it), NEAR, "excess over the server, as a fraction")
                for it in results.all
            ),
            "",
        ),
        (
            "Published OPS is worse than learning alone on real trust networks.",
            (paired(it.title, it.losses(PUBLISHED_OPS) - it.losses(ALONE)) for it in networks),
            "Said of the networks that are listed, not of every trust graph.",
        ),
        (
            f"Where nodes differ, {own} settles within {UNBIASED:g} spreads of the best model.",
            (
                below(
                    network,
                    np.array([bias.measured for bias in found["relay"]]),
                    UNBIASED,
                    "distance of the common model from the best one, in spreads",
                )
                for network, found in results.differing.items()
            ),
            "",
        ),
    ]
    claims = []
    for text, found, note in sentences:
        findings = tuple(found)
        claims.append(Claim(text, NAME, findings, everywhere(findings), f"{_NOTE} {note}".strip()))
    return claims


def _against(
    settings: Sequence[Measured], rival: Callable[[Measured], str], own: str = CHOSEN
) -> Iterator[Finding]:
    for it in settings:
        name = rival(it)
        if name in it.cells and own in it.cells:
            reading = f"loss of {label(name).title} minus loss of {label(own).title}"
            yield paired(it.title, it.losses(name) - it.losses(own), reading)


def _best_rule(it: Measured) -> str:
    return min(OPS_BY_RULE, key=lambda rule: float(it.losses(rule).mean()))


def _excess(it: Measured) -> np.ndarray:
    excess: np.ndarray = it.losses(CHOSEN) / it.losses(SERVER) - 1.0
    return excess
