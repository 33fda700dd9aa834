"""`check_method` passes every registered method, and says of wrong ones what they break."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import wrong_methods

import oneway as ow
from oneway.methods import METHODS, TRANSFORMS, Segment, State
from oneway.testing import check_method


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("mixes", [1, 3])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_the_promises_of_its_interface(name, mixes, seed):
    check_method(METHODS[name](0.1, mixes=mixes), seed=seed)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_every_method_keeps_them_with_every_transform(name, transform):
    check_method(METHODS[name](0.1, transforms=(TRANSFORMS[transform](),)))


class PeeksInItsStep(ow.OnlinePushSum):
    def descend(self, state, steps):
        return super().descend(state, steps + steps.mean(axis=0))


class OverwritesInItsStep(ow.OnlinePushSum):
    def descend(self, state, steps):
        state.segments["numerator"][:] -= steps
        return state


class PeeksBeforeItPushes(ow.Relay):
    def fractions(self, state):
        return super().fractions(state) / state.segments["count"].max()


class OverwritesBeforeItPushes(ow.Pull):
    def before_push(self, state, rng):
        state.segments["model"][:] = np.round(state.segments["model"], 2)
        return state


class PeeksInItsEstimate(ow.Pull):
    def estimate(self, state):
        model = state.segments["model"]
        return 0.9 * model + 0.1 * model.mean(axis=0)


class MakesMass(ow.OnlinePushSum):
    def before_push(self, state, rng):
        return State({**state.segments, "mass": 1.01 * state.segments["mass"]}, state.memory)


class GainsMassByLearning(ow.OnlinePushSum):
    def descend(self, state, steps):
        after = super().descend(state, steps)
        return State({**after.segments, "mass": state.segments["mass"] + 0.1}, after.memory)


class LearnsWithoutASample(ow.OnlinePushSum):
    def local_step(self, state, gradients, rng):
        return self.descend(state, self.rate(gradients.index) * gradients.values)


class RemembersWithoutASample(ow.OnlinePushSum):
    def start(self, params):
        state = super().start(params)
        return State(state.segments, {**state.memory, "seen": np.zeros((len(params), 1))})

    def local_step(self, state, gradients, rng):
        after = super().local_step(state, gradients, rng)
        return State(after.segments, {**after.memory, "seen": after.memory["seen"] + 1.0})


class TracksWhatIsNotThere(ow.Pull):
    payload = (Segment("model", "copied"), Segment("tracker", "split", tracks="momentum"))

    def start(self, params):
        return State(super().start(params).segments, {})


class DepositsItsTracker(ow.Tracking):
    """Moves its model by the tracker when it pushes, and takes the tracker for spent."""

    def before_push(self, state, rng):
        model = state.segments["model"] - state.segments["tracker"]
        return State({"model": model, "tracker": 0.0 * state.segments["tracker"]}, state.memory)


class AddsASegment(ow.Pull):
    def before_push(self, state, rng):
        return State({**state.segments, "more": state.segments["model"]}, state.memory)


@dataclass(frozen=True)
class NamesAnotherMemory(ow.Pull):
    def before_push(self, state, rng):
        return State(state.segments, {"pushed": state.segments["model"]})


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (PeeksInItsStep, "local_step of a node depends on other nodes: numerator"),
        (OverwritesInItsStep, "local_step changed the state it was given: numerator"),
        (PeeksBeforeItPushes, "before_push of a node depends on other nodes"),
        (OverwritesBeforeItPushes, "before_push changed the state it was given: model"),
        (PeeksInItsEstimate, "the estimate of a node depends on other nodes"),
        (MakesMass, "before_push made or lost mass"),
        (GainsMassByLearning, "local_step made or lost mass"),
        (LearnsWithoutASample, "local_step changed a node without a sample: numerator"),
        (RemembersWithoutASample, "local_step changed a node without a sample: seen"),
        (TracksWhatIsNotThere, "tracker tracks no memory of start"),
        (DepositsItsTracker, "after before_push the sum of tracker is not that of momentum"),
        (wrong_methods.AveragesItsTracker, "after an exchange the sum of tracker is not"),
        (wrong_methods.AddsTheMomentumAndNotItsChange, "after local_step the sum of tracker is"),
        (AddsASegment, "before_push renamed a segment"),
        (NamesAnotherMemory, "before_push renamed a memory"),
    ],
)
def test_a_method_that_breaks_a_promise_is_caught(wrong, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_method(wrong(0.1))


def test_a_segment_that_an_exchange_does_not_conserve_is_caught():
    class GivesTooMuch(ow.OnlinePushSum):
        def shares(self, graph):
            return 1.1 * graph.mixing()

    with pytest.raises(AssertionError, match="numerator is not conserved"):
        check_method(GivesTooMuch(0.1))
