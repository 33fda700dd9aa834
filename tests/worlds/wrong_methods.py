"""Wrong methods and transforms, each a mistake somebody could make; tests must tell them apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import oneway as ow
from oneway.methods import Segment, State
from oneway.methods.base import only
from oneway.methods.transforms import AdaGrad, Momentum


class KeepsAShareOfItsParcel(ow.Relay):
    payload = tuple(Segment(it.name, "split", is_vector=it.is_vector) for it in ow.Relay.payload)


class KeepsAShareOfItsCount(ow.Relay):
    payload = tuple(
        replace(it, kind="split") if it.name == "count" else it for it in ow.Relay.payload
    )


class ForwardsItsMass(ow.Relay):
    payload = tuple(replace(it, kind="forwarded") for it in ow.Relay.payload)


class DepositsBeforeItsOwnGradient(ow.Relay):
    def local_step(self, state, gradients, rng):
        return super().local_step(super().before_push(state, rng), gradients, rng)

    def before_push(self, state, rng):
        return state


class CountIsNotReducedByTheDeposit(ow.Relay):
    def before_push(self, state, rng):
        after = super().before_push(state, rng)
        return State({**after.segments, "count": state.segments["count"]}, after.memory)


class ParcelIsNotReducedByTheDeposit(ow.Relay):
    def before_push(self, state, rng):
        after = super().before_push(state, rng)
        return State({**after.segments, "parcel": state.segments["parcel"]}, after.memory)


class DropsWhatItDoesNotDeposit(ow.Relay):
    def before_push(self, state, rng):
        after = super().before_push(state, rng)
        parcel = np.zeros_like(after.segments["parcel"])
        return State({**after.segments, "parcel": parcel}, after.memory)


class DepositsAll(ow.Relay):
    """Online Push-Sum."""

    def fractions(self, state):
        return np.ones_like(state.segments["mass"])


class GoesByTheCountAndNotItsRoot(ow.Relay):
    def fractions(self, state):
        counts = np.maximum(state.segments["count"], 1e-300)
        return np.minimum(1.0, self.amount * state.segments["mass"] / counts)


class ForgetsItsMass(ow.Relay):
    def fractions(self, state):
        ones = np.ones_like(state.segments["mass"])
        return super().fractions(State({**state.segments, "mass": ones}, state.memory))


class CountsNodesWithoutASample(ow.Relay):
    def before_push(self, state, rng):
        counts = np.maximum(state.segments["count"], 1.0)
        return super().before_push(State({**state.segments, "count": counts}, state.memory), rng)


class MintsWithoutANumerator(ow.OnlinePushSum):
    def bounded(self, state):
        after = super().bounded(state)
        lacks = state.segments["mass"] < after.segments["mass"]
        kept = np.where(lacks, state.segments["numerator"], after.segments["numerator"])
        return State({**after.segments, "numerator": kept}, after.memory)


class BurnsMassWithoutANumerator(ow.OnlinePushSum):
    def bounded(self, state):
        after = super().bounded(state)
        has_too_much = state.segments["mass"] > after.segments["mass"]
        kept = np.where(has_too_much, state.segments["numerator"], after.segments["numerator"])
        return State({**after.segments, "numerator": kept}, after.memory)


class MintsAtTheMeanOfTheNetwork(ow.OnlinePushSum):
    def bounded(self, state):
        after = super().bounded(state)
        mean = state.segments["numerator"].sum(axis=0) / state.segments["mass"].sum()
        added = (after.segments["mass"] - state.segments["mass"]) * mean
        numerator = state.segments["numerator"] + added
        return State({**after.segments, "numerator": numerator}, after.memory)


class MintsBeforeTheExchange(ow.OnlinePushSum):
    def before_push(self, state, rng):
        return super().bounded(state)

    def bounded(self, state):
        return state


class NeverMints(ow.OnlinePushSum):
    def bounded(self, state):
        after = super().bounded(state)
        return only((state.segments["mass"] > after.segments["mass"])[:, 0], state, after)


class NeverBurns(ow.OnlinePushSum):
    def bounded(self, state):
        after = super().bounded(state)
        return only((state.segments["mass"] < after.segments["mass"])[:, 0], state, after)


class ShortensStepsByMassToo(ow.Relay):
    def step_masses(self, state):
        return self.masses(state)


class TracksGradients(ow.Tracking):
    """Not their momenta."""

    def descend(self, state, steps):
        return ow.Tracking(0.1, beta=0.0).descend(state, steps)


class MovesByTheOldTracker(ow.Tracking):
    def descend(self, state, steps):
        after = super().descend(state, steps)
        model = state.segments["model"] - state.segments["tracker"]
        return State({**after.segments, "model": model}, after.memory)


class MovesByItsOwnMomentum(ow.Tracking):
    def descend(self, state, steps):
        after = super().descend(state, steps)
        model = state.segments["model"] - after.memory["momentum"]
        return State({**after.segments, "model": model}, after.memory)


class AddsTheMomentumAndNotItsChange(ow.Tracking):
    def descend(self, state, steps):
        after = super().descend(state, steps)
        tracker = state.segments["tracker"] + after.memory["momentum"]
        model = state.segments["model"] - tracker
        return State({"model": model, "tracker": tracker}, after.memory)


class SplitsItsModel(ow.Tracking):
    payload = (Segment("model", "split"), ow.Tracking.payload[1])


class AveragesItsTracker(ow.Tracking):
    payload = (ow.Tracking.payload[0], Segment("tracker", "copied", tracks="momentum"))


class ForwardsItsTracker(ow.Tracking):
    payload = (ow.Tracking.payload[0], Segment("tracker", "forwarded", tracks="momentum"))


class AddsUpItsMomentum(ow.Tracking):
    """beta * m + g, as some write it, at the same rate."""

    def descend(self, state, steps):
        return super().descend(state, steps / (1.0 - self.beta))


class PullsWithThePapersShares(ow.Pull):
    """Naive gossip."""

    payload = (Segment("model", "split"),)


class PullsFromItsReceivers(ow.Pull):
    def shares(self, graph):
        return graph.mixing().T.tocsr()


class PullsFromOthersOnly(ow.Pull):
    """Every node takes over what it gets; alone it keeps its own."""

    payload = (Segment("model", "forwarded"),)


@dataclass(frozen=True)
class SquaresOfThePast(AdaGrad):
    """The gradient's own square comes too late."""

    def update(self, gradients, memory, rng):
        after = {"squares": memory["squares"] + gradients**2}
        return gradients / (np.sqrt(memory["squares"]) + self.epsilon), after


@dataclass(frozen=True)
class NoRoot(AdaGrad):
    def update(self, gradients, memory, rng):
        squares = memory["squares"] + gradients**2
        return gradients / (squares + self.epsilon), {"squares": squares}


@dataclass(frozen=True)
class OneSquareForAllParameters(AdaGrad):
    def update(self, gradients, memory, rng):
        squares = memory["squares"] + (gradients**2).mean(axis=1, keepdims=True)
        return gradients / (np.sqrt(squares) + self.epsilon), {"squares": squares}


@dataclass(frozen=True)
class ForgetsSquares(AdaGrad):
    """RMSProp."""

    def update(self, gradients, memory, rng):
        squares = 0.9 * memory["squares"] + 0.1 * gradients**2
        return gradients / (np.sqrt(squares) + self.epsilon), {"squares": squares}


@dataclass(frozen=True)
class LooksAhead(Momentum):
    """Nesterov's momentum."""

    def update(self, gradients, memory, rng):
        mean, after = super().update(gradients, memory, rng)
        return self.beta * mean + (1.0 - self.beta) * gradients, after


@dataclass(frozen=True)
class AddsUp(Momentum):
    def update(self, gradients, memory, rng):
        return super().update(gradients / (1.0 - self.beta), memory, rng)
