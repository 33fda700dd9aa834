"""What attackers make of a sender's pushes: its steps, and the samples that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from oneway.audit.inference import SAME, TOGETHER, Explanation, untransformed
from oneway.errors import ConfigError
from oneway.methods import AutoRate, Method, State
from oneway.models import Model, RidgeRegression
from oneway.privacy.reconstruction import Candidates, LinearAttack, Steps, with_substance
from oneway.records import Ints, Matrix, Vector

_NEARLY_FLAT = 1e-9
LINEAR = ("logistic", "hinge", "ridge", "softmax")


@dataclass(frozen=True, eq=False)
class Observed:
    """What one attacker knows about the steps of a sender.

    Attributes:
        attacker: Who it is, in a few words.
        readings: `[step, dim]`, what it takes the steps to be, by the segment that says so.
        estimates: `[step, dim]`, the models at which the gradients were taken.
        masses: `[step]`, by which the method's step rule went then.
        indices: `[step]`, how many samples came before, for the schedule of learning rates.
        chosen: `[step]`, learning rates before and after each step, where the sender chooses them.
    """

    attacker: str
    readings: Mapping[str, Matrix]
    estimates: Matrix
    masses: Vector
    indices: Ints
    chosen: tuple[Vector, Vector] | None = None

    @classmethod
    def of(
        cls, attacker: str, method: Method, found: Iterable[tuple[State, Explanation, int]]
    ) -> Observed:
        """From what a sender held before each push, how the push came about, and its index."""
        befores, explanations, indices = zip(*found, strict=True)
        estimates = np.vstack([method.estimate(before) for before in befores])
        names = dict.fromkeys(name for one in explanations for name in one.readings)
        # A segment that says nothing about a step, since none of it was left, leaves it to others.
        readings = {
            name: np.array([one.readings.get(name, one.step) for one in explanations])
            for name in names or (TOGETHER,)
        }
        masses = np.concatenate([method.step_masses(before) for before in befores])
        told = _different(readings)
        chosen = None
        if method.auto is not None:
            shares = method.rule.lengths(1.0, masses, None)
            chosen = _chosen_rates(method.auto, next(iter(told.values())), shares, indices)
        return cls(attacker, told, estimates, masses, np.array(indices), chosen)

    def lengths(self, method: Method, curvatures: Vector | None) -> Vector:
        """How long the method's step rule makes steps of these curvatures."""
        if self.chosen is not None:
            before, after = self.chosen
            whole = method.rule.lengths(before, self.masses, None)
            limited = method.rule.lengths(before, self.masses, curvatures)
            factors = np.divide(limited, whole, out=np.ones_like(whole), where=whole > 0.0)
            return factors * method.rule.lengths(after, self.masses, None)
        rates = np.array([method.rate(int(index)) for index in self.indices])
        # A step rule goes element by element, so that one rate each is as good as one for all.
        return method.rule.lengths(cast(float, rates), self.masses, curvatures)

    def gradients(self, method: Method, lengths: Vector) -> dict[str, Matrix]:
        """What the steps, of these lengths, say the gradients were, without the transforms."""
        result = {}
        for name, values in self.readings.items():
            is_step = with_substance(Steps(values, self.estimates)) & (lengths > 0.0)
            updates = values / np.where(lengths > 0.0, lengths, 1.0)[:, None]
            if method.transforms:
                updates = untransformed(method.transforms, updates, self.indices, is_step)
            result[name] = updates
        return result

    def candidates(self, method: Method, model: Model) -> Candidates:
        """The samples that the steps would come from, were each of them one sample's."""
        readings = self.readings
        if method.transforms:  # as long as they are where no curvature shortens them
            lengths = self.lengths(method, np.full(len(self.masses), _NEARLY_FLAT))
            plain = self.gradients(method, lengths)
            readings = {name: lengths[:, None] * it for name, it in plain.items()}
        steps = [Steps(values, self.estimates) for values in readings.values()]
        found = [self._of(one, method, model) for one in steps if with_substance(one).any()]
        if not found:
            return Candidates(np.zeros((0, 0)), np.zeros(0))
        return Candidates(
            np.vstack([one.features for one in found]),
            np.concatenate([one.labels for one in found]),
        )

    def _of(self, steps: Steps, method: Method, model: Model) -> Candidates:
        real = with_substance(steps)
        chosen = self.chosen
        kept = Observed(
            self.attacker,
            {},
            self.estimates[real],
            self.masses[real],
            self.indices[real],
            None if chosen is None else (chosen[0][real], chosen[1][real]),
        )

        def lengths(features: Matrix) -> Vector:
            curvatures = None
            if method.rule.needs_curvature:
                curvatures = model.curvature_bounds(features)
            return kept.lengths(method, curvatures)

        found = attack_on(model).candidates(Steps(steps.values[real], kept.estimates), lengths)
        if isinstance(model, RidgeRegression):
            return replace(found, labels=model.center + model.scale * found.labels)
        return found


def _chosen_rates(
    auto: AutoRate, steps: Matrix, shares: Vector, indices: Sequence[int]
) -> tuple[Vector, Vector]:
    """The rates that a sender chose before and after its steps: they follow from their lengths.

    Of several readings of one step, which have the same index, the first counts.
    """
    squares, before, after, last = 0.0, [], [], None
    for step, share, index in zip(steps, shares, indices, strict=True):
        if index != last:
            earlier, last = squares, index
            length = float(np.linalg.norm(step)) / share if share > 0.0 else 0.0
            squares = earlier + auto.inverted(earlier, length)
        before.append(earlier)
        after.append(squares)
    old, new = (auto.rates(np.array(it)[:, None], steps.shape[1]) for it in (before, after))
    return old, new


def _different(readings: Mapping[str, Matrix]) -> dict[str, Matrix]:
    """The readings that say something else than those before, up to rounding."""
    result: dict[str, Matrix] = {}
    for name, values in readings.items():
        size = float(np.abs(values).max(initial=0.0))
        if not any(np.abs(values - known).max() <= 1e3 * SAME * size for known in result.values()):
            result[name] = values
    return result


def attack_on(model: Model) -> LinearAttack:
    """The attack on a model.

    Raises:
        ConfigError: It is not linear.
    """
    if model.name not in LINEAR:
        raise ConfigError(
            f"model {model.name} is not one that the audit's attack can invert; it knows "
            f"{', '.join(LINEAR)}: audit one of these"
        )
    facts: dict[str, Any] = model.describe()
    return LinearAttack(
        loss=cast(Any, model.name),
        l2=float(facts["l2"]),
        intercept=bool(facts["intercept"]),
        num_classes=int(facts.get("num_classes", 0)),
    )
