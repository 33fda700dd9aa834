"""The privacy audit: all attackers against one setting, and what came of it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from oneway.audit.observed import Observed, attack_on
from oneway.audit.simulation import canary_test, watch
from oneway.errors import ConfigError
from oneway.methods import Method
from oneway.models import Model
from oneway.privacy.canaries import Evidence
from oneway.privacy.reconstruction import Score, nearest, read_exactly, score
from oneway.records import Matrix, Vector
from oneway.tables import Table
from oneway.task.assembly import assemble
from oneway.task.privacy import DEFAULT_DELTA
from oneway.task.settings import SETTINGS, Settings
from oneway.topology import TrustGraph

DEFAULT_ROUNDS = 2000
"""Samples of the victim that are attacked unless `rounds` is given."""
DEFAULT_CANARIES = 8000
EXAMPLES = 3
_MOST_OTHERS = 2000


@dataclass(frozen=True)
class Example:
    """A sample of the victim beside the nearest that an attacker came up with, in raw units."""

    true: dict[str, float]
    read: dict[str, float]
    cosine: float
    exact: bool


@dataclass(frozen=True)
class Finding:
    """What one attacker could read."""

    attacker: str
    score: Score
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        findings: One for each attacker.
        evidence: Of the membership test.
        settings: What was audited.
        delta: At which epsilon is bounded.
        victim: Whose samples were attacked.
        versions: Of the software.
    """

    findings: tuple[Finding, ...]
    evidence: Evidence
    settings: Settings
    delta: float
    victim: str
    versions: Mapping[str, str]

    @property
    def worst(self) -> Finding:
        """The attacker that read most."""
        return max(
            self.findings,
            key=lambda one: (
                one.score.rows_read_exactly,
                one.score.cosine - one.score.cosine_by_chance,
            ),
        )

    @property
    def epsilon_promised(self) -> float | None:
        """What the settings promise; None if nothing."""
        return self.settings.privacy.epsilon if self.settings.privacy else None

    @property
    def is_kept(self) -> bool | None:
        """Whether the promise withstood the attack; None if there is none."""
        promised = self.epsilon_promised
        return None if promised is None else self.evidence.epsilon_lower_bound <= promised

    @property
    def numbers(self) -> dict[str, Any]:
        """All of it, in terms JSON can hold."""
        worst = self.worst.score
        said = {name: getattr(self.settings, name) for name in SETTINGS if name != "privacy"}
        return {
            "victim": self.victim,
            "rows": worst.rows,
            "rows_read_exactly": worst.rows_read_exactly,
            "cosine": worst.cosine,
            "cosine_by_chance": worst.cosine_by_chance,
            "epsilon_promised": self.epsilon_promised,
            "epsilon_lower_bound": self.evidence.epsilon_lower_bound,
            "delta": self.delta,
            "confidence": self.evidence.confidence,
            "promise_withstood": self.is_kept,
            "attackers": {one.attacker: asdict(one.score) for one in self.findings},
            "membership": asdict(self.evidence),
            "settings": {
                name: value
                for name, value in said.items()
                if isinstance(value, str | int | float | None)
            }
            | {"privacy": self.settings.privacy.as_json()},
            "versions": dict(self.versions),
        }


@dataclass(frozen=True, eq=False)
class _Victim:
    """Whose samples are attacked, and all that the attack needs to know."""

    name: str
    node: int
    method: Method
    model: Model
    table: Table
    graph: TrustGraph
    rows: Matrix
    labels: Vector
    others: Matrix
    seen: list[Observed]


def audit(
    settings: Settings,
    *,
    canaries: int = DEFAULT_CANARIES,
    tick: Callable[[str, int], None] = lambda _what, _done: None,
) -> Audit:
    """Run all attacks on a simulated network.

    Real peers clip, add noise and step by the same code, and all other nodes together know at
    least as much as the neighbours of a real peer.

    Args:
        settings: What to audit; `rounds` is the number of samples each node has.
        canaries: About how many canaries the membership test has.
        tick: Called with the name of the attack and the number of finished rounds.

    Raises:
        ConfigError: An argument breaks its rule, or the attack does not know the model.
        OnewayError: A setting does not fit the data or another setting.
    """
    if canaries < 100:
        raise ConfigError(f"canaries is {canaries}; it must be at least 100 to bound anything")
    settings = replace(settings, rounds=settings.rounds or DEFAULT_ROUNDS)
    victim = _attacked(settings, tick)
    settings = settings.with_model_for(victim.table.label_kind)
    findings = tuple(_finding(victim, seen) for seen in victim.seen)
    # Where nothing is promised, epsilon is bounded at the delta that tasks have by default.
    delta = settings.privacy.delta if settings.privacy else DEFAULT_DELTA
    evidence = canary_test(
        victim.method,
        victim.model.dim(victim.rows.shape[1]),
        victim.graph,
        victim.node,
        canaries,
        delta,
        settings.seed,
        lambda done: tick("membership", done),
    )
    return Audit(findings, evidence, settings, delta, victim.name, _versions())


def _attacked(settings: Settings, tick: Callable[[str, int], None]) -> _Victim:
    parts = assemble(settings)
    attack_on(parts.model)
    # The one with most samples, and so with most to lose.
    node = int((parts.stream.rows >= 0).sum(axis=0).argmax())
    names, own = parts.stream.node_names, parts.stream.rows[:, node]
    seen = watch(
        parts.method,
        parts.model,
        parts.stream,
        parts.graph,
        node,
        settings.seed,
        lambda done: tick("reconstruction", done),
    )
    own = own[own >= 0]
    return _Victim(
        names[node] if names else f"node {node}",
        node,
        parts.method,
        parts.model,
        parts.table,
        parts.graph,
        parts.stream.features[own].astype(float),
        parts.stream.labels[own].astype(float),
        _others(parts.table, own),
        seen,
    )


def _others(table: Table, own: Any) -> Matrix:
    """Samples of the same table that the victim never had."""
    free = np.setdiff1d(np.arange(len(table.labels)), own)
    spread = free[:: max(1, len(free) // _MOST_OTHERS)]
    return np.asarray(table.features[spread], float)


def _finding(victim: _Victim, seen: Observed) -> Finding:
    candidates = seen.candidates(victim.method, victim.model)
    found = score(candidates, victim.rows, victim.labels, victim.others)
    examples: list[Example] = []
    if len(candidates.labels) and len(victim.rows):
        exact = read_exactly(candidates, victim.rows, victim.labels)
        places, cosines = nearest(candidates.features, victim.rows)
        # The first, one in the middle and the last: not chosen by how well they were read.
        chosen = np.unique(np.linspace(0, len(victim.rows) - 1, EXAMPLES).astype(int))
        examples = [
            Example(
                _raw(victim.table, victim.rows[row]),
                _raw(victim.table, candidates.features[places[row]]),
                float(cosines[row]),
                bool(exact[row]),
            )
            for row in chosen
        ]
    return Finding(seen.attacker, found, tuple(examples))


def _raw(table: Table, row: Vector) -> dict[str, float]:
    """A sample in the units of its file, without digits that mean nothing there."""
    raw = row * table.scales + table.means
    digits = 5 - np.floor(np.log10(table.scales)).astype(int)
    return {
        name: round(value, int(places))
        for name, value, places in zip(table.feature_names, raw.tolist(), digits, strict=True)
    }


def _versions() -> dict[str, str]:
    packages = ("oneway", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
