"""Step inference: the steps behind what a sender hands out, given what it held before.

The method is public. A step D enters what is handed out coordinate by coordinate and linearly, so
that an attacker who knows what was held tries two steps, 0 and 1, and has for every segment

    sent = offset + slope * D.

OPS and Pull: slope -1 in the numerator or the model. Relay deposits the fraction phi of its parcel,
which gives -phi in the numerator and 1 - phi in the parcel. Tracking, with the momentum that is
known by induction: 1 - beta in the tracker, -(1 - beta) in the model. Segments that agree about D
are one reading; where they do not, each is, and so is their mean: noise that differs from one
segment to another must not hide that.

The attacker is everybody else together: what a sender holds came from them, or stayed from what it
handed out last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from oneway.errors import ConfigError
from oneway.methods import AutoRate, Method, State
from oneway.methods.transforms import Transform, transform_memory, transformed
from oneway.models import Model, RidgeRegression
from oneway.privacy.reconstruction import Candidates, LinearAttack, Steps, with_substance
from oneway.records import Bools, Ints, Matrix, Vector

LINEAR = ("logistic", "hinge", "ridge", "softmax")
TOGETHER = "all segments together"
SAME = 1e-9
"""Relative to what is held: differences below are rounding."""
_ALIKE = 1e3 * SAME
"""Relative to the steps: readings that differ by less are one."""
_FLAT = 1e-9
"""A segment with a smaller slope reveals nothing about a step."""
_FAR = 1e6
_HALVINGS = 90


@dataclass(frozen=True, eq=False)
class Push:
    """What a sender handed out once, in one row.

    Attributes:
        held: What it held before it learned.
        sent: What it handed out, before it was split among the receivers.
        index: How many samples came before, for the schedule of learning rates.
        squares: What it chooses its learning rate by, before it learned and after.
    """

    held: Mapping[str, Matrix]
    sent: Mapping[str, Matrix]
    index: int
    squares: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Observed:
    """What an attacker knows about the steps of a sender.

    Attributes:
        method: How the sender learns.
        readings: `[step, dim]`, what the steps were, by the segment that reveals them.
        estimates: `[step, dim]`, the models at which the gradients were taken.
        masses: `[step]`, by which the step rule went then.
        indices: `[step]`, how many samples came before.
        chosen: `[step]`, learning rates before and after each step, where the sender chooses them:
            as they follow from the lengths of the steps.
        true_rates: `[step]`, the same as the sender knows them.
    """

    method: Method
    readings: Mapping[str, Matrix]
    estimates: Matrix
    masses: Vector
    indices: Ints
    chosen: tuple[Vector, Vector] | None = None
    true_rates: tuple[Vector, Vector] | None = None

    @classmethod
    def of(cls, method: Method, pushes: Sequence[Push]) -> Observed:
        """Infer the steps from all pushes of a sender, in order."""
        tracked = {it.name: it.tracks for it in method.payload if it.tracks}
        memory = {name: np.zeros_like(pushes[0].held[key]) for key, name in tracked.items()}
        found, befores = [], []
        for push in pushes:
            befores.append(State(push.held, memory))
            found.append(readings_of(method, befores[-1], push.sent))
            # What tracks a memory changes by as much as that memory, whatever the step was.
            memory = {
                name: memory[name] + push.sent[it] - push.held[it] for it, name in tracked.items()
            }
        estimates = np.vstack([method.estimate(before) for before in befores])
        names = dict.fromkeys(name for one in found for name in one) or (TOGETHER,)
        # A segment that reveals nothing about a step, since none of it was left, takes the mean.
        usual = [_mean(one, estimates.shape[1]) for one in found]
        readings = _different(
            {
                name: np.array(
                    [one.get(name, mean) for one, mean in zip(found, usual, strict=True)]
                )
                for name in names
            }
        )
        masses = np.concatenate([method.step_masses(before) for before in befores])
        indices = np.array([push.index for push in pushes])
        if method.auto is None:
            return cls(method, readings, estimates, masses, indices)
        shares = method.rule.lengths(1.0, masses, None)
        chosen = _chosen_rates(method.auto, next(iter(readings.values())), shares)
        squares = np.array([push.squares for push in pushes])
        before, after = (method.auto.rates(it[:, None], estimates.shape[1]) for it in squares.T)
        return cls(method, readings, estimates, masses, indices, chosen, (before, after))

    def lengths(self, curvatures: Vector | None) -> Vector:
        """How long the method's step rule makes steps of these curvatures."""
        rule = self.method.rule
        if self.chosen is not None:
            before, after = self.chosen
            whole = rule.lengths(before, self.masses, None)
            limited = rule.lengths(before, self.masses, curvatures)
            factors = np.divide(limited, whole, out=np.ones_like(whole), where=whole > 0.0)
            return factors * rule.lengths(after, self.masses, None)
        rates = np.array([self.method.rate(int(index)) for index in self.indices])
        # A step rule goes element by element, so that one rate each is as good as one for all.
        return rule.lengths(cast(float, rates), self.masses, curvatures)

    def gradients(self, lengths: Vector) -> dict[str, Matrix]:
        """The gradients behind steps of these lengths, by reading, before the transforms."""
        result = {}
        for name, values in self.readings.items():
            is_step = with_substance(Steps(values, self.estimates)) & (lengths > 0.0)
            updates = values / np.where(lengths > 0.0, lengths, 1.0)[:, None]
            if self.method.transforms:
                updates = untransformed(self.method.transforms, updates, is_step)
            result[name] = updates
        return result

    def candidates(self, model: Model) -> Candidates:
        """The samples that the steps would come from, were each of them one sample's."""
        readings = self.readings
        if self.method.transforms:  # as long as they are where no curvature shortens them
            lengths = self.lengths(np.full(len(self.masses), _FLAT))
            readings = {name: lengths[:, None] * it for name, it in self.gradients(lengths).items()}
        found = [self._samples_of(values, model) for values in readings.values()]
        labels = np.concatenate([one.labels for one in found])
        if isinstance(model, RidgeRegression):
            labels = model.center + model.scale * labels
        return Candidates(np.vstack([one.features for one in found]), labels)

    def _samples_of(self, values: Matrix, model: Model) -> Candidates:
        real = with_substance(Steps(values, self.estimates))
        chosen = None if self.chosen is None else (self.chosen[0][real], self.chosen[1][real])
        kept = replace(
            self,
            estimates=self.estimates[real],
            masses=self.masses[real],
            indices=self.indices[real],
            chosen=chosen,
        )

        def lengths(features: Matrix) -> Vector:
            needed = self.method.rule.needs_curvature
            return kept.lengths(model.curvature_bounds(features) if needed else None)

        return attack_on(model).candidates(Steps(values[real], kept.estimates), lengths)


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


def readings_of(method: Method, before: State, sent: Mapping[str, Matrix]) -> dict[str, Vector]:
    """The step that makes what was sent of what was held, by every segment that reveals it.

    Empty if there was no step. If several segments do, their mean is a reading too.
    """
    rng = np.random.default_rng(0)  # methods draw nothing that matters here
    idle = method.before_push(before, rng).segments
    size = 1.0 + max(float(np.abs(array).max(initial=0.0)) for array in sent.values())
    if all(np.abs(idle[name] - it).max(initial=0.0) <= SAME * size for name, it in sent.items()):
        return {}
    vectors = [segment.name for segment in method.payload if segment.is_vector]
    zeros = np.zeros_like(before.segments[vectors[0]])
    offset, raised = (
        method.before_push(method.descend(before, zeros + step), rng).segments for step in (0, 1)
    )
    slopes = {name: raised[name] - offset[name] for name in vectors}
    found = {
        name: ((sent[name] - offset[name]) / slope)[0]
        for name, slope in slopes.items()
        if np.abs(slope).min() > _FLAT
    }
    return {**found, TOGETHER: _mean(found, zeros.shape[1])} if len(found) > 1 else found


def _mean(readings: Mapping[str, Vector], dim: int) -> Vector:
    mean: Vector = np.mean(list(readings.values()) or [np.zeros(dim)], axis=0)
    return mean


def _different(readings: Mapping[str, Matrix]) -> dict[str, Matrix]:
    """The readings that say something else than those before, up to rounding."""
    result: dict[str, Matrix] = {}
    for name, values in readings.items():
        size = float(np.abs(values).max(initial=0.0))
        if not any(np.abs(values - known).max() <= _ALIKE * size for known in result.values()):
            result[name] = values
    return result


def _chosen_rates(auto: AutoRate, steps: Matrix, shares: Vector) -> tuple[Vector, Vector]:
    """The rates that a sender chose before and after its steps: they follow from their lengths."""
    squares = [0.0]
    for step, share in zip(steps, shares, strict=True):
        length = float(np.linalg.norm(step)) / share if share > 0.0 else 0.0
        squares.append(squares[-1] + auto.inverted(squares[-1], length))
    rates = auto.rates(np.array(squares)[:, None], steps.shape[1])
    return rates[:-1], rates[1:]


def untransformed(transforms: Sequence[Transform], updates: Matrix, is_step: Bools) -> Matrix:
    """The gradients that transforms made updates of, `[step, dim]`; rows without a step are kept.

    Transforms are public and remember only what they were shown, so that an attacker remembers it
    too. Those that go coordinate by coordinate and grow with the gradient are undone; of others,
    such as a clip, what came out is taken for what went in.
    """
    rng, gradients = np.random.default_rng(0), updates.copy()
    memory = transform_memory(transforms, updates[:1])
    for row in np.flatnonzero(is_step):

        def made(gradient: Matrix, memory: Mapping[str, Matrix] = memory) -> Matrix:
            return transformed(transforms, memory, gradient, rng)[0]

        gradients[row] = _undone(made, updates[[row]])
        memory = transformed(transforms, memory, gradients[[row]], rng)[1]
    return gradients


def _undone(made: Callable[[Matrix], Matrix], update: Matrix) -> Matrix:
    """Solve `made(gradient) = update`, coordinate by coordinate; by halving what it lies in."""
    if np.allclose(made(update), update, rtol=SAME, atol=0.0):
        return update
    lows, highs = np.full_like(update, -_FAR), np.full_like(update, _FAR)
    for _ in range(_HALVINGS):
        middle = (lows + highs) / 2
        below = made(middle) < update
        lows, highs = np.where(below, middle, lows), np.where(below, highs, middle)
    found: Matrix = (lows + highs) / 2
    return found if np.allclose(made(found), update, rtol=1e-6, atol=1e-12) else update
