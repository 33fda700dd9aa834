"""Step inference: which step explains what a sender handed out, given what it held before.

The method is public. A step D enters what is handed out coordinate by coordinate and linearly, so
that an attacker who knows what was held tries two steps, 0 and 1, and has for every segment

    sent = offset + slope * D.

OPS and Pull: slope -1 in the numerator or the model. Relay deposits the fraction phi of its parcel
b, which gives -phi in the numerator and 1 - phi in the parcel; phi follows from mass and count,
which travel too. Tracking, with the momentum m that is known by induction: 1 - beta in the tracker,
-(1 - beta) in the model. Segments that say the same about D are one reading; where they do not,
each is, and so is their mean: noise that differs from one segment to another must not hide that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oneway.methods import Method, State
from oneway.methods.transforms import Transform, transform_memory, transformed
from oneway.records import Bools, Ints, Matrix, Vector

TOGETHER = "all segments together"
SAME = 1e-9
"""Relative to what is held: differences below are rounding."""
_FLAT = 1e-9
"""A segment with a smaller slope says nothing about a step."""
_EXACT = 1e-14
_REFINEMENTS = 60
_FAR = 1e6
_HALVINGS = 90


@dataclass(frozen=True, eq=False)
class Explanation:
    """How a push came about.

    Attributes:
        step: `[dim]`, of all readings the one that explains most; zeros if there was no step.
        readings: `[dim]`, what each segment says the step was, and their mean.
        after: What the sender held when it handed out, its memory included.
        misfit: By how much what was sent differs from what `step` would have made.
    """

    step: Vector
    readings: Mapping[str, Vector]
    after: State
    misfit: float


class StepInference:
    """What anybody who knows a method makes of the segments that a sender hands out; one row."""

    def __init__(self, method: Method) -> None:
        self._method = method
        self._vectors = [segment.name for segment in method.payload if segment.is_vector]
        self._scalars = [segment.name for segment in method.payload if not segment.is_vector]
        self._tracked = {segment.name: segment.tracks for segment in method.payload}
        self._rng = np.random.default_rng(0)  # methods draw nothing that matters here

    def explain(
        self, before: State, sent: Mapping[str, Matrix], *, stepped: bool | None = None
    ) -> Explanation:
        """Which step makes what was sent of what was held.

        Args:
            before: What the sender held before the step, or is guessed to have held.
            sent: The segments that were seen as they were handed out, undivided.
            stepped: Whether there was a step; None to find out, which takes an exact `before`.
        """
        idle = self._method.before_push(before, self._rng)
        size = 1.0 + max(float(np.abs(array).max(initial=0.0)) for array in sent.values())
        if stepped is None:
            stepped = self._distance(idle, sent) > SAME * size
        if not stepped:
            nothing = self._zeros(before)[0]
            return Explanation(nothing, {}, _with(idle, sent), self._distance(idle, sent))
        scalars = self.scalars(before, sent)
        readings = self._readings(before, sent, scalars)
        mean: Vector = np.mean([*readings.values()] or self._zeros(before), axis=0)
        step, after, misfit = mean, before, math.inf
        for tried in (mean, *readings.values()):
            made = self._after(before, tried[None, :], scalars)
            if (off := self._distance(made, sent)) < misfit:
                step, after, misfit = tried, made, off
            if misfit <= SAME * size:
                break
        if len(readings) > 1:
            readings[TOGETHER] = mean
        after = self._remembered(before, _with(after, sent), sent)
        return Explanation(step, readings, after, misfit)

    def scalars(self, before: State, sent: Mapping[str, Matrix]) -> dict[str, Matrix]:
        """Mass and count right before what was sent was handed out.

        They are seen after a part of them was deposited, which depends on them: found in turns.
        """
        still = self._method.descend(before, self._zeros(before))
        found = {name: still.segments[name] for name in self._scalars}
        for _ in range(_REFINEMENTS):
            made = self._after(before, 0.0, found).segments
            off = {name: sent[name] - made[name] for name in self._scalars if name in sent}
            if all(abs(off[name].item()) <= _EXACT * sent[name].item() for name in off):
                break
            found = {name: np.maximum(found[name] + off.get(name, 0.0), 0.0) for name in found}
        return found

    def _readings(
        self, before: State, sent: Mapping[str, Matrix], scalars: Mapping[str, Matrix]
    ) -> dict[str, Vector]:
        """The step by every segment that says something about it."""
        offset, raised = (self._after(before, step, scalars).segments for step in (0.0, 1.0))
        slopes = {name: raised[name] - offset[name] for name in self._vectors if name in sent}
        return {
            name: ((sent[name] - offset[name]) / slope)[0]
            for name, slope in slopes.items()
            if np.abs(slope).min() > _FLAT
        }

    def _after(self, before: State, step: float | Matrix, scalars: Mapping[str, Matrix]) -> State:
        moved = self._method.descend(before, self._zeros(before) + step)
        segments = {**moved.segments, **scalars}
        return self._method.before_push(State(segments, moved.memory), self._rng)

    def _remembered(self, before: State, after: State, sent: Mapping[str, Matrix]) -> State:
        """What tracks a memory has changed by as much as that memory, whatever the step was."""
        exact = {
            memory: before.memory[memory] + sent[name] - before.segments[name]
            for name, memory in self._tracked.items()
            if memory and name in sent
        }
        return State(after.segments, {**after.memory, **exact})

    def _zeros(self, before: State) -> Matrix:
        return np.zeros_like(before.segments[self._vectors[0]])

    def _distance(self, made: State, sent: Mapping[str, Matrix]) -> float:
        return max(
            float(np.abs(made.segments[name] - array).max(initial=0.0))
            for name, array in sent.items()
        )


def _with(state: State, seen: Mapping[str, Matrix]) -> State:
    return State({**state.segments, **seen}, state.memory)


def untransformed(
    transforms: Sequence[Transform], updates: Matrix, times: Ints, is_step: Bools
) -> Matrix:
    """The gradients that transforms made updates of, `[step, dim]`; rows without a step are kept.

    Transforms are public and remember only what they were shown, so that an attacker remembers it
    too. Those that go coordinate by coordinate and grow with the gradient are undone; of others,
    such as a clip, what came out is taken for what went in.

    Args:
        transforms: Of the method.
        updates: What came out of them.
        times: `[step]`, of several rows of one time all but the first are other explanations.
        is_step: `[step]`, which rows are steps.
    """
    rng, gradients = np.random.default_rng(0), updates.copy()
    memory = after = transform_memory(transforms, updates[:1])
    known = -1
    for row in np.flatnonzero(is_step):
        if times[row] != known:
            memory = after

        def made(gradient: Matrix, memory: Mapping[str, Matrix] = memory) -> Matrix:
            return transformed(transforms, memory, gradient, rng)[0]

        gradients[row] = _undone(made, updates[[row]])
        if times[row] != known:
            after = transformed(transforms, memory, gradients[[row]], rng)[1]
            known = int(times[row])
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
