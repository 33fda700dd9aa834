"""Relay: gradients travel on beside the model until nodes with mass have taken them in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oneway.errors import ConfigError
from oneway.methods.base import Method, State, moved
from oneway.methods.transforms.base import TRANSFORMS, Transform
from oneway.methods.transforms.chain import transform_memory, transformed
from oneway.records import Matrix, Segment, Vector

_AMOUNTS = {"count": 0.3, "mass": 1 / 8}
_DEPOSIT = "deposit."


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
    enters a numerator once with full weight, wherever that is, so nothing is biased; what
    `deposit_transforms` do to it is another matter.

    Attributes:
        deposit: How much of a parcel a node deposits: by "count" as above, or by "mass" alone,
            phi = min(1, amount * omega).
        amount: Of that; 0.3 by count and 1/8 by mass if it is None.
        deposit_transforms: What happens to a deposit, relative to mass and first learning rate,
            before it enters the numerator: transforms or their names.
    """

    deposit: Literal["count", "mass"] = "count"
    amount: float | None = None
    deposit_transforms: tuple[Transform | str, ...] = ()

    name = "relay"
    label = "Relay"
    meaning = "gradients travel on to nodes with mass"
    colour = "#332288"
    payload = (
        Segment("numerator", "split"),
        Segment("parcel", "forwarded"),
        Segment("count", "forwarded", is_vector=False),
        Segment("mass", "split", is_vector=False),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deposit not in tuple(_AMOUNTS):
            raise ConfigError(f"deposit is {self.deposit!r}; it must be 'count' or 'mass'")
        if self.amount is None:
            object.__setattr__(self, "amount", _AMOUNTS[self.deposit])
        if not (isinstance(self.amount, int | float) and 0 < self.amount < math.inf):
            raise ConfigError(f"amount is {self.amount!r}; it must be a finite number above 0")
        given = self.deposit_transforms
        chain = tuple(
            TRANSFORMS[it]() if isinstance(it, str) else it
            for it in (given if isinstance(given, tuple | list) else [None])
        )
        if not all(isinstance(it, Transform) for it in chain):
            raise ConfigError(
                f"deposit_transforms is {given!r}; it must be a list of transforms or of their "
                'names, such as ["adagrad"]'
            )
        object.__setattr__(self, "deposit_transforms", chain)

    def start(self, params: Matrix) -> State:
        """As in every method, with the memory of what deposits go through."""
        state = super().start(params)
        memory = transform_memory(self._chain, params, _DEPOSIT)
        return State(state.segments, {**state.memory, **memory})

    def step_masses(self, state: State) -> Vector:
        """One: what a node of little mass cannot bear, it does not deposit."""
        return np.ones(len(state.segments["mass"]))

    def descend(self, state: State, steps: Matrix) -> State:
        """Put the steps into the parcels."""
        return self._filled(state, state.segments["parcel"] + steps)

    def _descended(self, state: State, lengths: Matrix, updates: Matrix, spent: bool) -> State:
        if type(self).descend is not Relay.descend:
            return super()._descended(state, lengths, updates, spent)
        return self._filled(state, moved(state.segments["parcel"], lengths, updates, spent))

    def _filled(self, state: State, parcels: Matrix) -> State:
        held = state.segments
        return State({**held, "parcel": parcels, "count": held["count"] + 1.0}, state.memory)

    def fractions(self, state: State) -> Matrix:
        """Phi, `[node, 1]`: the fraction of its parcel that a node deposits."""
        assert self.amount is not None
        bearable = self.amount * np.maximum(state.segments["mass"], 0.0)
        if self.deposit == "count":
            roots = np.sqrt(np.maximum(state.segments["count"], 0.0))
            bearable = np.divide(bearable, roots, out=np.ones_like(roots), where=roots > bearable)
        has_mass = state.segments["mass"] > 0.0
        return np.where(has_mass, np.minimum(1.0, bearable), 0.0)

    def before_push(self, state: State, rng: np.random.Generator) -> State:
        """Deposit a fraction of the parcel into the numerator; the rest is to be forwarded."""
        held = state.segments
        fractions = self.fractions(state)
        kind = held["parcel"].dtype
        deposits, memory = self._deposited(state, fractions.astype(kind) * held["parcel"], rng)
        rest = 1.0 - fractions
        if deposits.dtype == held["numerator"].dtype:
            numerators = np.subtract(held["numerator"], deposits, out=deposits)
        else:
            numerators = held["numerator"] - deposits
        return State(
            {
                **held,
                "numerator": numerators,
                "parcel": rest.astype(kind) * held["parcel"],
                "count": rest * held["count"],
            },
            {**state.memory, **memory},
        )

    @property
    def _chain(self) -> tuple[Transform, ...]:
        return tuple(it for it in self.deposit_transforms if isinstance(it, Transform))

    def _deposited(
        self, state: State, deposits: Matrix, rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """The deposits after their transforms, which see by how many steps they move estimates."""
        if not self._chain:
            return deposits, {}
        units = ((self.rate(0) or 1.0) * state.segments["mass"]).astype(deposits.dtype)
        moves = np.divide(deposits, units, out=np.zeros_like(deposits), where=units > 0.0)
        moves, memory = transformed(self._chain, state.memory, moves, rng, _DEPOSIT)
        return units * moves, memory
