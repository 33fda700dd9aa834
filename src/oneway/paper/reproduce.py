"""The whole evaluation of the paper again: run what is asked for, judge it, write it down."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from oneway.errors import ConfigError, StoreError
from oneway.paper import async_network, beyond, networks, privacy
from oneway.paper.async_claims import judged as async_claims
from oneway.paper.async_section import async_section
from oneway.paper.beyond_claims import judged as beyond_claims
from oneway.paper.beyond_section import beyond_sections
from oneway.paper.beyond_section import markdown as beyond_markdown
from oneway.paper.claims import claims
from oneway.paper.evidence import Evidence
from oneway.paper.figures import (
    FIGURES,
    LESS_STOCHASTIC,
    STOCHASTIC,
    Figure,
    Panel,
    Scale,
    dealt_worlds,
    reference_world,
    same_samples,
)
from oneway.paper.networks_section import networks_section
from oneway.paper.page import Section, all_sections, claims_csv, page
from oneway.paper.privacy_section import privacy_section
from oneway.paper.run_grid import Need, run_cells
from oneway.paper.verdict import Claim
from oneway.simulator.executors import DEFAULT, Executor, opened

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""The grid of learning rates."""
CELLS = "cells"
"""The folder of what is finished, in that of a reproduction."""
DEFAULT_SEEDS = 10
QUICK_RATES = (0.03, 0.3, 3.0)
CATALOGUE = {
    **{figure.name: (figure.shows, figure.needs) for figure in FIGURES.values()},
    privacy.NAME: (privacy.SHOWS, privacy.NEEDS),
    beyond.NAME: (beyond.SHOWS, beyond.NEEDS),
    networks.NAME: (networks.SHOWS, networks.NEEDS),
    async_network.NAME: (async_network.SHOWS, async_network.NEEDS),
}
"""What can be reproduced: what it shows, and the data it needs."""
FORMER_NAMES = {"trust": beyond.NAME}
"""What figures were called before, and where what they showed is now."""
QUICK_SCALE = Scale(susy_rounds=64, room_rounds=64, trust_rounds=16)
QUICK_SEEDS = 2


@dataclass(frozen=True)
class Plan:
    """What to reproduce and at what length; seeds are counted from 0."""

    figures: tuple[str, ...]
    num_seeds: int
    scale: Scale
    rates: tuple[float, ...] = RATES
    private_rates: tuple[float, ...] = privacy.RATES
    beyond_rates: tuple[float, ...] = beyond.RATES
    network_rates: tuple[float, ...] | None = None
    async_extent: async_network.Extent = async_network.FULL


@dataclass(frozen=True)
class Outcome:
    """What came out: the claims with their verdicts, where the page is, and tables in Markdown."""

    claims: list[Claim]
    page: Path
    markdown: str = ""


def without_former_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Figures by today's names, and a sentence for every former name among them.

    >>> without_former_names(["local", "trust"])[0]
    ['local', 'beyond']
    """
    sentences = [
        f"The figure {name} is now a part of {FORMER_NAMES[name]}, which is reproduced instead."
        for name in names
        if name in FORMER_NAMES
    ]
    return [FORMER_NAMES.get(name, name) for name in names], sentences


def plan(
    names: Sequence[str],
    num_seeds: int | None,
    rounds: int | None,
    quick: bool,
    peers: int | None = None,
) -> Plan:
    """Turn what the command line says into a plan.

    Args:
        names: Figures, or all.
        num_seeds: How many seeds; None for the default.
        rounds: On SUSY; None for the default.
        quick: A smoke run.
        peers: Of one more network of `async`, larger than the others.

    Raises:
        ConfigError: If a figure is unknown, or a quick run is to be long.
    """
    names, _ = without_former_names(names)
    wanted = tuple(CATALOGUE if "all" in names else dict.fromkeys(names))
    for name in wanted:
        if name not in CATALOGUE:
            raise ConfigError(
                f"there is no figure {name!r}; there are {', '.join(CATALOGUE)}, and all"
            )
    if quick:
        if any(it is not None for it in (num_seeds, rounds, peers)):
            raise ConfigError(
                f"--quick runs {QUICK_SEEDS} seeds and {QUICK_SCALE.susy_rounds} rounds; leave out "
                "--seeds, --rounds and --peers, or --quick"
            )
        rates = (QUICK_RATES, QUICK_RATES, QUICK_RATES, networks.QUICK_RATES)
        return Plan(wanted, QUICK_SEEDS, QUICK_SCALE, *rates, async_network.QUICK)
    scale = Scale() if rounds is None else Scale(susy_rounds=rounds)
    extent = async_network.FULL if peers is None else async_network.FULL.with_size(peers)
    num_seeds = DEFAULT_SEEDS if num_seeds is None else num_seeds
    return Plan(wanted, num_seeds, scale, async_extent=extent)


def is_reproduction(folder: Path) -> bool:
    """Whether `reproduce` has begun in a folder, and would go on there."""
    return (folder / CELLS).is_dir()


def reproduce(
    plan: Plan, out: Path, on_done: Callable[[int, int], None], on: str = DEFAULT
) -> Outcome:
    """Run the plan and write figures, numbers and one page into a folder.

    Runs that were done before, in this folder and with the same configuration, are not repeated.

    Args:
        plan: What to reproduce.
        out: The folder.
        on_done: Called with the number of finished cells and of all.
        on: Where runs are carried out: "local", "ray" or "ray://HOST:PORT".

    Raises:
        ClusterError: If the cluster does not answer, or does not fit.
        OnewayError: If data is missing or the folder cannot be written.
    """
    with opened(on) as executor:
        return _reproduce(plan, out, on_done, executor)


def _reproduce(
    plan: Plan, out: Path, on_done: Callable[[int, int], None], executor: Executor
) -> Outcome:
    told = (plan.num_seeds, out / CELLS, on_done, executor)
    try:
        judged, sections = _paper(plan, *told[1:])
        texts = {}
        if privacy.NAME in plan.figures:
            tradeoffs = privacy.measure(plan.scale, plan.private_rates, *told)
            judged.append(privacy.together_beats_alone(tradeoffs))
            sections.append(privacy_section(tradeoffs))
            texts[privacy.NAME] = privacy.markdown(tradeoffs)
        if beyond.NAME in plan.figures:
            results = beyond.measure(plan.scale, plan.beyond_rates, *told)
            judged += beyond_claims(results)
            shown = beyond_sections(results)
            sections += shown
            texts[beyond.NAME] = beyond_markdown(shown)
        if {beyond.NAME, networks.NAME} & set(plan.figures):
            learned = networks.measure(plan.scale, plan.network_rates, *told)
            judged += networks.judged(learned)
            sections.append(networks_section(learned))
            absent = [f"{sentence}\n" for sentence in learned.absent]
            texts[networks.NAME] = "\n".join([beyond_markdown(sections[-1:]), *absent])
        if async_network.NAME in plan.figures:
            answers = async_network.measure(plan.async_extent, *told)
            answered = async_claims(answers)
            judged += answered
            sections.append(async_section(answers, answered))
            texts[async_network.NAME] = beyond_markdown(sections[-1:])
        for name, text in texts.items():
            (out / f"{name}.md").write_text(text, encoding="utf-8")
        _write_panels(out / "panels", sections)
        (out / "claims.csv").write_text(claims_csv(judged), encoding="utf-8")
        path = out / "report.html"
        text = page(plan.num_seeds, judged, sections, _facts(plan))
        path.write_text(text, encoding="utf-8")
        return Outcome(judged, path, "\n".join(texts.values()))
    except OSError as error:
        raise StoreError(
            f"cannot write the reproduction to {out}: {error.strerror or error}"
        ) from error


def _paper(
    plan: Plan, folder: Path, on_done: Callable[[int, int], None], executor: Executor
) -> tuple[list[Claim], list[Section]]:
    """Run and judge the figures of the plan; nothing if it has none of them."""
    figures = {
        FIGURES[name]: FIGURES[name].panels(plan.scale) for name in plan.figures if name in FIGURES
    }
    if not figures:
        return [], []
    cells = run_cells(_needs(plan, figures), plan.rates, folder, on_done, executor)
    evidence = Evidence(cells, plan.rates, range(plan.num_seeds), plan.scale)
    return claims(evidence), all_sections(figures, evidence)


def _needs(plan: Plan, figures: Mapping[Figure, Sequence[Panel]]) -> Iterator[Need]:
    """Every cell of the figures, and those the learning rates are tuned on."""
    for figure, panels in figures.items():
        for panel in panels:
            for seed in range(plan.num_seeds):
                for line in panel.lines:
                    worlds = [line.world]
                    if figure.name == "comparison" and line.world.stochastic < 1:
                        # How the loss depends on clusters is looked at closest for OPS.
                        for part in LESS_STOCHASTIC if line.method == "ops" else (0.5,):
                            dealt = dealt_worlds(line.world.data, part, plan.scale)
                            worlds += dealt.values()
                    if figure.name == "size":
                        worlds.append(same_samples(line.world))
                    worlds += [
                        reference_world(line.world.data, part, plan.scale) for part in STOCHASTIC
                    ]
                    for world in worlds:
                        yield Need(world, line.method, seed)


def _facts(plan: Plan) -> dict[str, str]:
    packages = ("oneway", "numpy", "scipy", "numba", "scikit-learn")
    return {
        "seeds": f"0 to {plan.num_seeds - 1}: graph, dealing and order of the samples",
        "learning rates": ", ".join(f"{rate:g}" for rate in plan.rates),
        "learning rates, privacy": ", ".join(f"{rate:g}" for rate in plan.private_rates),
        "learning rates, beyond": ", ".join(f"{rate:g}" for rate in plan.beyond_rates),
        "model": "logistic regression with intercept, l2 = 1e-4",
        "versions": ", ".join(
            [f"python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
    }


def _write_panels(folder: Path, sections: Sequence[Section]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for section in sections:
        for panel in section.panels:
            (folder / f"{panel.name}.png").write_bytes(panel.png)
            (folder / f"{panel.name}.svg").write_text(panel.svg, encoding="utf-8")
            (folder / f"{panel.name}.csv").write_text(panel.csv, encoding="utf-8")
