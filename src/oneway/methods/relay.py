"""Relay: gradients travel on beside the model until nodes with mass have taken them in."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from oneway.errors import ConfigError
from oneway.methods.base import Method, State
from oneway.records import Matrix, Segment, Vector


@dataclass(frozen=True)
class Relay(Method):
    """Steps travel in a parcel, and every node deposits as much of it as its own mass can bear.

    With b the parcel of a node, c how many steps are in it, omega its mass and z its numerator:

        b += gamma * gradient(z / omega),  c += 1
        phi = min(1, amount * omega / sqrt(c))
        z -= phi * b;  the receivers get (1 - phi) * b and (1 - phi) * c, all of it

    and z and omega are pushed as in Online Push-Sum. A parcel of c steps has a noise of about
    sqrt(c), and a step of length s moves the estimate by s / omega: phi keeps what a deposit moves
    it by at the same size, however light the node and however full its parcel. Every gradient
    enters a numerator once with full weight, wherever that is, so nothing is biased.

    Attributes:
        amount: How much of a parcel a node deposits.
    """

    amount: float = 0.3

    name = "relay"
    label = "Relay"
    meaning = "gradients travel on to nodes with mass"
    colour = "#332288"
    usual_bounds = (1e-4, 1e3)
    payload = (
        Segment("numerator", "split"),
        Segment("parcel", "forwarded"),
        Segment("count", "forwarded", is_vector=False),
        Segment("mass", "split", is_vector=False),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.amount, int | float) and 0 < self.amount < math.inf):
            raise ConfigError(f"amount is {self.amount!r}; it must be a finite number above 0")

    def step_masses(self, state: State) -> Vector:
        """One: what a node of little mass cannot bear, it does not deposit."""
        return np.ones(len(state.segments["mass"]))

    def descend(self, state: State, steps: Matrix) -> State:
        """Put the steps into the parcels."""
        held = state.segments
        return State(
            {**held, "parcel": held["parcel"] + steps, "count": held["count"] + 1.0}, state.memory
        )

    def fractions(self, state: State) -> Matrix:
        """Phi, `[node, 1]`: the fraction of its parcel that a node deposits."""
        bearable = self.amount * np.maximum(state.segments["mass"], 0.0)
        roots = np.sqrt(np.maximum(state.segments["count"], 0.0))
        bearable = np.divide(bearable, roots, out=np.ones_like(roots), where=roots > bearable)
        has_mass = state.segments["mass"] > 0.0
        return np.where(has_mass, np.minimum(1.0, bearable), 0.0)

    def before_push(self, state: State, rng: np.random.Generator) -> State:
        """Deposit a fraction of the parcel into the numerator; the rest is to be forwarded."""
        held = state.segments
        fractions = self.fractions(state)
        kind = held["parcel"].dtype
        rest = 1.0 - fractions
        return State(
            {
                **held,
                "numerator": held["numerator"] - fractions.astype(kind) * held["parcel"],
                "parcel": rest.astype(kind) * held["parcel"],
                "count": rest * held["count"],
            },
            state.memory,
        )
