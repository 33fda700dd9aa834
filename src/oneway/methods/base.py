"""Method: how a node starts, what it does alone, and what travels; the core both drivers execute.

Rows are nodes: the simulator calls these functions with one row for every node of a network, a
peer with a single row. NumPy only, and pure: a state in, a new state out, randomness an argument.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias
from zlib import crc32

import numpy as np

from oneway.errors import ConfigError
from oneway.methods.auto_rate import AUTO, SQUARES, AutoRate, Schedule
from oneway.methods.batches import Batches, Normals
from oneway.methods.step_rules import STEP_RULES, StepRule
from oneway.methods.transforms import Transform, kept_share, transform_memory, transformed
from oneway.records import Bools, Matrix, Segment, Vector
from oneway.registry import Registry, describe

_BATCH = "batch."
BATCH_MEMORY = tuple(_BATCH + name for name in ("sum", "count", "past"))
"""Names of the memory of an unfinished batch, and of the noise drawn so far."""
UNFINISHED = BATCH_MEMORY[:2]
"""Samples that nothing was made public of yet."""
PAST_NOISE = BATCH_MEMORY[2]
"""Never to be stored: every start begins a new sequence of noise."""


class Graph(Protocol):
    """What a method asks of a trust graph; a mixing is `[sender, receiver]`, rows sum to 1."""

    def mixing(self) -> Any:
        """Row-stochastic shares over all one-way edges."""

    def metropolis(self) -> Any:
        """Doubly stochastic shares over the mutual edges only."""


@dataclass(frozen=True, eq=False)
class State:
    """What nodes hold.

    Attributes:
        segments: The payload by name, `[node, width]`.
        memory: Arrays that never travel, by name, one row per node: the transforms' and, where a
            method has no payload, its model.
    """

    segments: Mapping[str, Matrix]
    memory: Mapping[str, Matrix]


@dataclass(frozen=True, eq=False)
class Gradients:
    """What nodes learned from their samples.

    Attributes:
        values: `[node, dim]`, at the estimates.
        index: How many steps came before, for the schedule.
        curvatures: Per node the largest second derivative of its loss; None if there is no bound,
            or the step rule needs none.
        active: Which nodes had a sample; None if all had. The others do not step.
    """

    values: Matrix
    index: int
    curvatures: Vector | None = None
    active: Bools | None = None


@dataclass(frozen=True)
class Method(ABC):
    """A way to learn from every sample at once, alone or by exchanging payload with others.

    A method of one's own subclasses this (or one of the methods), sets `name` and `payload`, and
    overrides what differs; by default the first segment is the numerator, and it descends.

    Attributes:
        learning_rate: gamma: a number, a schedule of the step's index, or "auto", which every node
            chooses as it learns (`auto_rate`).
        step: How far, given the mass: a step rule or its name.
        transforms: What happens to a gradient before the step, in this order.
        batches: How gradients of several samples become one, before all else; None if every
            sample is a step.
        mixes: How many times payload is exchanged in a round; in a peer, how many pushes follow a
            step.
        bounds: Between which masses a node is kept (`bounded`); None if nobody's mass is changed,
            as published. Peers, and simulations of graphs that are not strongly connected, take
            `usual_bounds` in place of None; peers hold at most `most_in_peer`.

    Raises:
        ConfigError: A parameter breaks its rule.
    """

    learning_rate: float | Schedule | AutoRate | Literal["auto"]
    step: StepRule | str = "paper"
    transforms: tuple[Transform, ...] = ()
    batches: Batches | None = field(default=None, kw_only=True)
    mixes: int = field(default=1, kw_only=True)
    bounds: tuple[float, float] | None = field(default=None, kw_only=True)

    name: ClassVar[str]
    """Short name, as on the command line."""
    label: ClassVar[str] = ""
    """Name for people; the short one if there is none."""
    meaning: ClassVar[str] = ""
    """What it does, in a few words."""
    colour: ClassVar[str] = ""
    """For charts, "#rrggbb"; one is chosen if there is none."""
    exchange: ClassVar[Literal["graph", "average", "none"]] = "graph"
    """With whom payload is exchanged: along a graph, with everybody (a server), with nobody."""
    payload: ClassVar[tuple[Segment, ...]] = ()
    """What travels. The first segment is the model, or with a segment `mass` its numerator."""

    usual_bounds: ClassVar[tuple[float, float]] = (0.25, 4.0)
    """The bounds of masses on graphs that are not strongly connected. The lower one is the smallest
    mass at which the method's steps still suit a model."""
    most_in_peer: ClassVar[float] = 8.0
    """The most mass that a peer keeps: others bring it as much as they like, and its own steps move
    it the less the heavier it is."""

    has_mass: ClassVar[bool] = False
    """Whether a mass travels with the payload and corrects the bias of a directed graph."""

    def __init_subclass__(cls) -> None:
        # A subclass that forgot its name must not be taken for the method it changes.
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.lower()
        cls.has_mass = any(segment.name == "mass" for segment in cls.payload)

    def __post_init__(self) -> None:
        if isinstance(self.step, str):
            object.__setattr__(self, "step", STEP_RULES[self.step]())
        if isinstance(self.learning_rate, str):
            if self.learning_rate != AUTO:
                raise ConfigError(
                    f"the learning rate of {self.name} is {self.learning_rate!r}; it must be a "
                    f'finite number, 0 or more, or "{AUTO}"'
                )
            object.__setattr__(self, "learning_rate", AutoRate())
        object.__setattr__(self, "transforms", tuple(self.transforms))
        if not (type(self.mixes) is int and self.mixes >= 1):
            raise ConfigError(f"mixes is {self.mixes!r}; it must be a whole number from 1 on")
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _checked_bounds(self.bounds))
        if not (callable(self.learning_rate) or self.auto):
            self.rate(0)

    @property
    def rule(self) -> StepRule:
        """The step rule."""
        assert isinstance(self.step, StepRule)
        return self.step

    @property
    def auto(self) -> AutoRate | None:
        """How the learning rate is chosen; None if it is given."""
        return self.learning_rate if isinstance(self.learning_rate, AutoRate) else None

    # What drivers call.

    def suited(self, curvature: float | None, num_features: int) -> Self:
        """The same method for a model; drivers call this once, before all else.

        Args:
            curvature: Of the model's loss at a sample of standardised features; None if unknown.
            num_features: Of a sample.
        """
        if self.auto is None:
            return self
        other = copy(self)
        object.__setattr__(other, "learning_rate", self.auto.suited(curvature, num_features))
        return other

    def suited_to_any_graph(self) -> Self:
        """The same method, which keeps masses within its usual bounds unless it has others."""
        if not self.has_mass or self.bounds is not None:
            return self
        other = copy(self)
        object.__setattr__(other, "bounds", self.usual_bounds)
        return other

    def suited_to_peers(self) -> Self:
        """The same method as peers run it: nobody of them knows the whole graph, or all others."""
        suited = self.suited_to_any_graph()
        if suited.bounds is None or self.bounds is not None:
            return suited
        lowest, highest = suited.bounds
        object.__setattr__(suited, "bounds", (lowest, min(highest, self.most_in_peer)))
        return suited

    def start(self, params: Matrix) -> State:
        """Before the first step: every node has the model `params[node, dim]`, and mass 1."""
        held = self._start_payload(params)
        return State(
            segments={segment.name: held[segment.name] for segment in self.payload},
            memory={
                **({} if self.payload else {"model": params}),
                **{it.tracks: np.zeros_like(params) for it in self.payload if it.tracks},
                **(self.auto.start(len(params)) if self.auto else {}),
                **transform_memory(self.transforms, params),
            },
        )

    def learn(
        self,
        state: State,
        gradients: Gradients,
        rng: np.random.Generator,
        normals: Normals | None = None,
    ) -> State:
        """What drivers do with the gradients of one sample a node: batches, then `local_step`.

        What a method does, its memory included, depends on samples through full batches only. The
        noise comes from `normals` if there is one, else from `rng`.
        """
        if self.batches is None:
            if self.auto:
                limited = self._scaled(state, gradients)
                gradients = replace(gradients, values=limited, curvatures=None)
            return self.local_step(state, gradients, rng)
        own = {name: array for name, array in state.memory.items() if name in BATCH_MEMORY}
        sums, full, own = self.batches.add(
            self._scaled(state, gradients),
            gradients.active,
            {name.removeprefix(_BATCH): array for name, array in own.items()},
            rng if normals is None else normals,
        )
        others = {name: array for name, array in state.memory.items() if name not in BATCH_MEMORY}
        after = State(state.segments, others)
        if full.any():
            learned = Gradients(sums, gradients.index)
            if not full.all():
                # Nothing may look at an unfinished batch, not even to throw the result away.
                learned = Gradients(
                    np.where(full[:, None], sums, 0.0), gradients.index, active=full
                )
            after = self.local_step(after, learned, rng)
        return State(after.segments, {**after.memory, **{_BATCH + name: own[name] for name in own}})

    def _scaled(self, state: State, gradients: Gradients) -> Matrix:
        """The gradients times what their own samples shorten the step by.

        The rest of the step, which depends on the mass alone, is taken when the batch is full.
        """
        if gradients.curvatures is None:
            return gradients.values
        masses = self.step_masses(state)
        rate: float | Vector
        if self.auto:
            rate = self.auto.rates(state.memory[SQUARES], gradients.values.shape[1])
        else:
            rate = self.rate(gradients.index)
        plain = self.rule.lengths(rate, masses, None)
        own = self.rule.lengths(rate, masses, gradients.curvatures)
        factors = np.divide(own, plain, out=np.zeros_like(own), where=plain > 0.0)
        return factors[:, None].astype(gradients.values.dtype) * gradients.values

    def local_step(self, state: State, gradients: Gradients, rng: np.random.Generator) -> State:
        """What nodes do alone with their gradients; nodes without a sample stay as they are."""
        updates, memory = transformed(self.transforms, state.memory, gradients.values, rng)
        rate: float | Vector
        if self.auto:
            kept = kept_share(self.transforms, memory)
            memory[SQUARES] = self.auto.grown(kept * state.memory[SQUARES], updates)
            rate = self.auto.rates(memory[SQUARES], updates.shape[1])
        else:
            rate = self.rate(gradients.index)
        lengths = self.rule.lengths(rate, self.step_masses(state), gradients.curvatures)
        # Of the kind that the model's numbers are: float32 must not become float64 on the way.
        after = self.descend(state, lengths[:, None].astype(updates.dtype) * updates)
        if memory:
            after = State(after.segments, {**after.memory, **memory})
        return after if gradients.active is None else only(gradients.active, state, after)

    def descend(self, state: State, steps: Matrix) -> State:
        """Take `steps[node, dim]` off the first segment; off the model where nothing travels."""
        first = self._first(state) - steps
        if not self.payload:
            return State(state.segments, {**state.memory, "model": first})
        return State({**state.segments, self.payload[0].name: first}, state.memory)

    def _first(self, state: State) -> Matrix:
        return state.segments[self.payload[0].name] if self.payload else state.memory["model"]

    def before_push(self, state: State, rng: np.random.Generator) -> State:
        """What nodes do right before they hand over their payload; by default nothing."""
        return state

    def bounded(self, state: State) -> State:
        """The state with every mass within `bounds`; no estimate changes.

        A node mints the mass that it lacks, and burns what is too much, at its own estimate:

            omega' = min(max(omega, lowest), highest),  z' = x * omega'

        Where trust is one-sided mass drains from some nodes and gathers in others for ever; without
        this the former would end without mass, and so without a voice.
        """
        if self.bounds is None or not self.has_mass:
            return state
        mass = state.segments["mass"]
        kept = np.where(mass > 0.0, mass.clip(*self.bounds), mass)
        if np.array_equal(kept, mass):
            return state
        factors = np.divide(kept, mass, out=np.ones_like(mass), where=mass > 0.0)
        name = self.payload[0].name
        numerators = state.segments[name]
        scaled = factors.astype(numerators.dtype) * numerators
        return State({**state.segments, name: scaled, "mass": kept}, state.memory)

    def estimate(self, state: State) -> Matrix:
        """The models to predict with, `[node, dim]`: x = z / omega."""
        first = self._first(state)
        return first / state.segments["mass"].astype(first.dtype) if self.has_mass else first

    @property
    def lets_go(self) -> bool:
        """Whether a node that sends to nobody lets go of what a single receiver would get.

        Steps that others forward would else gather there, and carry its estimate about: they were
        taken at other estimates, and do not bring it back. With as little mass as arrives, it
        follows the models that arrive.
        """
        return self.has_mass and any(segment.kind == "forwarded" for segment in self.payload)

    def masses(self, state: State) -> Vector:
        """Omega of every node; 1 in a method without mass."""
        if self.has_mass:
            return state.segments["mass"][:, 0]
        return np.ones(len(self.estimate(state)))

    def step_masses(self, state: State) -> Vector:
        """The masses that the step rule goes by; 1 where something else looks after light nodes."""
        return self.masses(state)

    def numerators(self, state: State) -> Matrix:
        """Z of every node: the estimate times the mass."""
        return state.segments[self.payload[0].name] if self.has_mass else self.estimate(state)

    def shares(self, graph: Graph) -> Any:
        """The mixing this method uses on a graph; None if it uses no graph."""
        return graph.mixing() if self.exchange == "graph" else None

    # The learning rate.

    def rate(self, index: int) -> float:
        """The learning rate of one step; the largest that may be if it is chosen.

        Raises:
            ConfigError: If it is negative or not finite.
        """
        if self.auto:
            return self.auto.most(1)
        rate: Any = self.learning_rate
        value = float(rate(index) if callable(rate) else rate)
        if not (math.isfinite(value) and value >= 0):
            raise ConfigError(
                f"the learning rate of {self.name} is {value} in round {index}; "
                "it must be a finite number, 0 or more"
            )
        return value

    @property
    def longest_step(self) -> float:
        """No node ever takes a longer step; infinite if its length is not limited.

        A rate that is chosen is at most `reach` over the length of the step's own update.
        """
        if self.auto:
            return self.auto.reach
        batches = self.batches
        if callable(self.learning_rate) or self.transforms or batches is None or batches.noise:
            return math.inf
        return self.rate(0) * batches.samples * batches.clip

    def rates(self, first: int, last: int) -> Vector:
        """The learning rates of steps `first` to `last` (excluded).

        Raises:
            ConfigError: If one is negative or not finite.
        """
        if callable(self.learning_rate):
            return np.array([self.rate(index) for index in range(first, last)])
        return np.full(last - first, self.rate(first))

    # About itself.

    def describe(self) -> dict[str, Any]:
        """Name and all parameters, in terms JSON can hold; the name under `method`."""
        described = describe(self)
        for name, usual in (("batches", None), ("mixes", 1), ("bounds", None)):
            if getattr(self, name) == usual:
                del described[name]
        return {"method": described.pop("name"), **described}

    # For methods of one's own.

    def _start_payload(self, params: Matrix) -> dict[str, Matrix]:
        """Every segment before the first step: the model, masses of 1, and zeros."""
        held = {
            segment.name: np.zeros_like(params) if segment.is_vector else np.zeros((len(params), 1))
            for segment in self.payload
        }
        if self.payload:
            held[self.payload[0].name] = params
        if self.has_mass:
            held["mass"] = np.ones((len(params), 1))
        return held


METHODS: Registry[type[Method]] = Registry("method")
"""The methods by name."""


def only(active: Bools, before: State, after: State) -> State:
    """The state after something for the active rows, the state before it for the others."""

    def chosen(old: Mapping[str, Matrix], new: Mapping[str, Matrix]) -> dict[str, Matrix]:
        return {
            name: array if array is old[name] else np.where(active[:, None], array, old[name])
            for name, array in new.items()
        }

    return State(chosen(before.segments, after.segments), chosen(before.memory, after.memory))


def _checked_bounds(bounds: object) -> tuple[float, float]:
    """Two masses around 1, which every node begins with.

    Raises:
        ConfigError: They are not.
    """
    match bounds:
        case [int() | float() as lowest, int() | float() as highest]:
            if 0.0 < lowest <= 1.0 <= highest < math.inf:
                return float(lowest), float(highest)
    raise ConfigError(
        f"bounds is {bounds!r}; it must be two masses, the first above 0 and at most 1, the second "
        "finite and at least 1"
    )


# How methods are called and drawn, everywhere the same.

Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]
"""A line style, as matplotlib has them."""

_COLORS = ("#56b4e9", "#e69f00")
"""For methods that bring no colour of their own."""
_DASHES: tuple[Dashes, ...] = (
    "solid",
    "dashed",
    "dashdot",
    "dotted",
    (0, (5, 1)),
    (0, (1, 3)),
    (0, (3, 1, 1, 1)),
    (0, (8, 2, 1, 2, 1, 2)),
)


@dataclass(frozen=True)
class Label:
    """A method as a reader sees it.

    Attributes:
        title: What it is called.
        meaning: What it does, in a few words.
        color: Distinct for any colour vision.
        dashes: Line style, distinct without colour.
    """

    title: str
    meaning: str
    color: str
    dashes: Dashes


def label_of(method: str) -> Label:
    """The label of a registered method; a name that is not registered stands for itself.

    >>> label_of("ops").title, label_of("a method of tomorrow").title
    ('Online Push-Sum', 'a method of tomorrow')
    """
    names = list(METHODS)
    place = names.index(method) if method in names else crc32(method.encode())
    entry = METHODS[method] if method in names else Method
    return Label(
        entry.label or method,
        entry.meaning,
        entry.colour or _COLORS[place % len(_COLORS)],
        _DASHES[place % len(_DASHES)],
    )
