"""The whole evaluation of the paper again: run what is asked for, judge it, write it down."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from oneway.errors import ConfigError, StoreError
from oneway.paper import (
    figure_comparison,
    figure_density,
    figure_local,
    figure_size,
    reproduction_text,
    trust_networks,
)
from oneway.paper.claims import DEALINGS, claims
from oneway.paper.evidence import STOCHASTIC, Evidence
from oneway.paper.panel import Figure, Scale, reference_world
from oneway.paper.runner import Need, run_cells
from oneway.paper.verdict import Claim
from oneway.report.bands import as_csv, band_chart
from oneway.report.figures import as_png, as_svg
from oneway.report.reproduction import Reproduction, reproduction_page

FIGURES: dict[str, Callable[[Scale], Figure]] = {
    "comparison": figure_comparison.figure,
    "size": figure_size.figure,
    "density": figure_density.figure,
    "local": figure_local.figure,
    "trust": trust_networks.figure,
}
"""What can be reproduced, by name."""
CONTENTS = {
    "comparison": ("OPS, DOL-Symm, DOL-Asymm and COL; 4 panels", "susy, occupancy"),
    "size": ("OPS in networks of different sizes; 4 panels", "susy, occupancy"),
    "density": ("OPS with different bounds on receivers; 4 panels", "susy, occupancy"),
    "local": ("OPS against everybody learning alone; 2 panels", "susy"),
    "trust": ("two real trust networks, not in the paper; 2 panels", "susy, advogato, epinions"),
}
"""What each figure shows, and the data sets it needs."""
RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""The grid of learning rates."""
DEFAULT_SEEDS = 10
QUICK_RATES = (0.03, 0.3, 3.0)
QUICK_SCALE = Scale(susy_rounds=64, room_rounds=64, trust_rounds=16)
QUICK_SEEDS = 2


@dataclass(frozen=True)
class Plan:
    """What to reproduce and at what length."""

    figures: tuple[str, ...]
    num_seeds: int
    scale: Scale
    rates: tuple[float, ...] = RATES

    @property
    def seeds(self) -> range:
        """The seeds, counted from 0."""
        return range(self.num_seeds)


@dataclass(frozen=True)
class Outcome:
    """What came out: the claims with their verdicts, and where the page is."""

    claims: list[Claim]
    page: Path


def plan(names: Sequence[str], num_seeds: int | None, rounds: int | None, quick: bool) -> Plan:
    """Turn what the command line says into a plan.

    Raises:
        ConfigError: If a figure is unknown, or a quick run is to be long.
    """
    wanted = tuple(FIGURES) if "all" in names else tuple(dict.fromkeys(names))
    for name in wanted:
        if name not in FIGURES:
            raise ConfigError(
                f"there is no figure {name!r}; there are {', '.join(FIGURES)}, and all"
            )
    if quick:
        if num_seeds is not None or rounds is not None:
            raise ConfigError(
                f"--quick runs {QUICK_SEEDS} seeds and {QUICK_SCALE.susy_rounds} rounds; leave out "
                "--seeds and --rounds, or --quick"
            )
        return Plan(wanted, QUICK_SEEDS, QUICK_SCALE, QUICK_RATES)
    scale = Scale() if rounds is None else Scale(susy_rounds=rounds)
    return Plan(wanted, DEFAULT_SEEDS if num_seeds is None else num_seeds, scale)


def reproduce(plan: Plan, out: Path, on_done: Callable[[int, int], None]) -> Outcome:
    """Run the plan and write figures, numbers and one page into a folder.

    Runs that were done before, in this folder and with the same configuration, are not repeated.

    Args:
        plan: What to reproduce.
        out: The folder.
        on_done: Called with the number of finished cells and of all.

    Raises:
        OnewayError: If data is missing or the folder cannot be written.
    """
    figures = [FIGURES[name](plan.scale) for name in plan.figures]
    try:
        cells = run_cells(_needs(plan, figures), plan.rates, out / "cells", on_done)
        evidence = Evidence(cells, plan.rates, tuple(plan.seeds), plan.scale)
        judged = claims(evidence)
        reproduction = Reproduction(
            title="Learning over single-sided trust: the paper's evaluation, run again",
            introduction=reproduction_text.introduction(plan.num_seeds),
            claims=[reproduction_text.claim_part(claim) for claim in judged],
            sections=[
                *(reproduction_text.figure_section(figure, evidence) for figure in figures),
                *reproduction_text.closing_sections(figures, evidence),
            ],
            facts=_facts(plan),
        )
        return Outcome(judged, _write(out, reproduction))
    except OSError as error:
        raise StoreError(
            f"cannot write the reproduction to {out}: {error.strerror or error}"
        ) from error


def _needs(plan: Plan, figures: Sequence[Figure]) -> Iterator[Need]:
    """Every cell of the figures, and those the learning rates are tuned on."""
    for seed in plan.seeds:
        for figure in figures:
            for panel in figure.panels:
                if panel.most_seeds is not None and seed >= panel.most_seeds:
                    continue
                for line in panel.lines:
                    yield Need(line.world, line.method, seed)
                    if figure.name == "comparison" and line.world.stochastic < 1:
                        for other in DEALINGS.values():
                            yield Need(replace(line.world, **other), line.method, seed)
                    if figure.name == "size":
                        yield Need(figure_size.same_samples(line.world), line.method, seed)
                    if figure.name != "trust":
                        for part in STOCHASTIC:
                            world = reference_world(panel.data, part, plan.scale)
                            yield Need(world, line.method, seed)


def _facts(plan: Plan) -> dict[str, str]:
    packages = ("oneway", "numpy", "scipy", "numba", "scikit-learn")
    return {
        "seeds": f"0 to {plan.num_seeds - 1}: graph, dealing and order of the samples",
        "learning rates": ", ".join(f"{rate:g}" for rate in plan.rates),
        "model": "logistic regression with intercept, l2 = 1e-4",
        "versions": ", ".join(
            [f"python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
    }


def _write(out: Path, reproduction: Reproduction) -> Path:
    for section in reproduction.sections:
        for panel in section.panels:
            folder = out / "panels"
            folder.mkdir(parents=True, exist_ok=True)
            chart = band_chart(panel.bands, panel.title)
            (folder / f"{panel.name}.png").write_bytes(as_png(chart))
            (folder / f"{panel.name}.svg").write_text(as_svg(chart), encoding="utf-8")
            (folder / f"{panel.name}.csv").write_text(as_csv(panel.bands), encoding="utf-8")
    path = out / "report.html"
    path.write_text(reproduction_page(reproduction), encoding="utf-8")
    return path
