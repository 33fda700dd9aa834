"""Graph generators: graphs out of nothing but a few numbers and a seed, in the registry `GRAPHS`.

A generator is a function from parameters to senders and receivers. One call adds one more, to be
had from `TrustGraph.generate`, the command line and stored descriptions:

    def star_pairs(num_nodes: int) -> Pairs:
        return np.zeros(num_nodes - 1, dtype=np.int64), np.arange(1, num_nodes)

    oneway.topology.GRAPHS.register(Generator("star", star_pairs, least_nodes=2))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from oneway.errors import GraphError
from oneway.files.memory import require_memory
from oneway.files.validation import whole_number
from oneway.records import Ints
from oneway.registry import Registry
from oneway.sentences import listed
from oneway.topology.edges import EdgeList

Pairs: TypeAlias = tuple[Ints, Ints]
"""Senders and receivers, one of each per edge."""

_BYTES = 48.0
"""What drawing a graph takes at its peak, for each node and each edge."""


@dataclass(frozen=True)
class Generator:
    """A kind of graph that a few numbers determine.

    Attributes:
        name: As on the command line; stored descriptions have _ for -.
        pairs: Draws the edges; its arguments, `num_nodes` first, are the kind's parameters, and
            what it draws at random depends on the one named `seed`.
        edges_per_node: About how many, given the parameters: a graph that does not fit into memory
            is refused.
        least_nodes: With fewer there is no such graph.
    """

    name: str
    pairs: Callable[..., Pairs]
    edges_per_node: Callable[[Mapping[str, Any]], float] = lambda _: 3.0
    least_nodes: int = 1

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the arguments of `pairs`."""
        return tuple(inspect.signature(self.pairs).parameters)

    def edges(self, **parameters: Any) -> EdgeList:
        """Draw the edges; the origin is the name and the parameters.

        Raises:
            GraphError: If a parameter breaks a rule.
        """
        try:
            bound = inspect.signature(self.pairs).bind(**parameters)
        except TypeError as error:
            raise GraphError(
                f"a {self.name} graph cannot be made: {error}; it takes {listed(self.parameters)}"
            ) from None
        bound.apply_defaults()
        chosen = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in bound.arguments.items()
        }
        for name, least in (("num_nodes", self.least_nodes), ("seed", 0)):
            if name in chosen:
                what = f"{name} of a {self.name} graph"
                chosen[name] = whole_number(what, chosen[name], least, GraphError)
        self._require_memory(chosen)
        senders, receivers = self.pairs(**chosen)
        origin = {"graph": self.name.replace("-", "_"), **chosen}
        return EdgeList(chosen["num_nodes"], senders, receivers, origin=origin)

    def _require_memory(self, chosen: Mapping[str, Any]) -> None:
        """Refuse a graph that the machine cannot hold, before a part of it is drawn."""
        num_nodes = chosen["num_nodes"]
        try:
            per_node = 1.0 + max(0.0, float(self.edges_per_node(chosen)))
        except (TypeError, ValueError):
            return  # a parameter is wrong, and `pairs` says which
        require_memory(
            _BYTES * num_nodes * per_node,
            f"num_nodes is {num_nodes:,}: a {self.name} graph of so many nodes",
            GraphError,
            remedy="choose fewer nodes",
        )


GRAPHS: Registry[Generator] = Registry("graph")
"""Kinds of graphs by name."""


def random_pairs(num_nodes: int, max_receivers: int, seed: int) -> Pairs:
    """Draw `TrustGraph.random`.

    A cycle through all nodes in random order gives every node its first receiver, which makes the
    graph strongly connected; the others are uniform among the remaining nodes. So the number of
    receivers of a node is exactly uniform on 1 to `max_receivers`.
    """
    max_receivers = whole_number("max_receivers", max_receivers, 1, GraphError)
    if max_receivers >= num_nodes:
        raise GraphError(
            f"max_receivers is {max_receivers} for {num_nodes} nodes; a node can have at most "
            f"{num_nodes - 1} receivers, choose max_receivers from 1 to {num_nodes - 1}"
        )
    rng = np.random.default_rng(seed)
    nodes = np.arange(num_nodes, dtype=np.int32 if num_nodes < 2**31 else np.int64)
    num_receivers = rng.integers(1, max_receivers + 1, size=num_nodes)
    cycle = rng.permutation(num_nodes)
    first = np.empty_like(nodes)
    first[cycle] = np.roll(cycle, -1)

    senders, others = _distinct_numbers(num_receivers - 1, num_nodes - 2, rng)
    # Numbers below num_nodes - 2 become nodes by stepping over the sender and its first receiver.
    others += others >= np.minimum(senders, first[senders])
    others += others >= np.maximum(senders, first[senders])
    return np.concatenate([nodes, senders]), np.concatenate([first, others])


def ring_pairs(num_nodes: int) -> Pairs:
    """Every node sends to the next one, the last to the first."""
    nodes = np.arange(num_nodes)
    return nodes, np.roll(nodes, -1)


def complete_pairs(num_nodes: int) -> Pairs:
    """Every node sends to every other."""
    return _numbered_pairs(np.arange(num_nodes * (num_nodes - 1)), num_nodes)


def erdos_renyi_pairs(num_nodes: int, density: float, seed: int) -> Pairs:
    """Every ordered pair is an edge with probability `density`, independently."""
    if not 0 <= density <= 1:
        raise GraphError(f"density is {density!r}; it is a probability, choose it from 0 to 1")
    rng = np.random.default_rng(seed)
    num_pairs = num_nodes * (num_nodes - 1)
    num_edges = rng.binomial(num_pairs, density)
    _, picks = _distinct_numbers(np.array([num_edges]), num_pairs, rng)
    return _numbered_pairs(picks, num_nodes)


def scale_free_pairs(num_nodes: int, seed: int) -> Pairs:
    """Directed preferential attachment (Bollobas et al., 2003) as networkx grows it."""
    import networkx  # slow to import, and only this generator needs it

    grown = networkx.scale_free_graph(num_nodes, seed=seed)
    pairs = np.array(list(grown.edges(keys=False)), dtype=np.int64)
    return pairs[:, 0], pairs[:, 1]


GRAPHS.register(
    Generator("random", random_pairs, lambda chosen: (1 + chosen["max_receivers"]) / 2, 2)
)
GRAPHS.register(Generator("ring", ring_pairs, lambda _: 1.0))
GRAPHS.register(Generator("complete", complete_pairs, lambda chosen: chosen["num_nodes"]))
GRAPHS.register(
    Generator(
        "erdos-renyi", erdos_renyi_pairs, lambda chosen: chosen["density"] * chosen["num_nodes"]
    )
)
GRAPHS.register(Generator("scale-free", scale_free_pairs, least_nodes=3))


def _numbered_pairs(numbers: Ints, num_nodes: int) -> Pairs:
    """Number the ordered pairs of different nodes 0, 1, 2, ... and return those numbered so."""
    senders, receivers = np.divmod(numbers, max(num_nodes - 1, 1))
    receivers += receivers >= senders
    return senders, receivers


def _distinct_numbers(counts: Ints, num_choices: int, rng: np.random.Generator) -> Pairs:
    """For every node `counts[node]` different numbers below `num_choices`, all sets equally likely.

    Draws what is missing until nothing is: the first distinct values of a sequence of independent
    draws are a uniform set. Nodes that want more than half of all numbers draw those they do
    without, so a draw is new with probability one half at least and the missing ones halve each
    time. Work and memory are proportional to the numbers returned.

    Returns:
        Nodes and numbers, sorted by node and number; int32 if that holds them.
    """
    inverted = counts > num_choices // 2
    wanted = np.where(inverted, num_choices - counts, counts)
    keys: Ints = np.empty(0, dtype=np.int64)
    missing = wanted
    while missing.any():
        nodes = np.repeat(np.arange(len(missing)), missing)
        fresh = nodes * num_choices + rng.integers(num_choices, size=len(nodes))
        # Not np.unique: its hash table takes ten times as long on such keys.
        keys = np.sort(np.concatenate([keys, fresh]))
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
        missing = wanted - np.bincount(keys // num_choices, minlength=len(wanted))
    others = np.flatnonzero(inverted)
    if others.size:
        every = others[:, None] * num_choices + np.arange(num_choices)
        keys = np.setxor1d(keys, every.ravel(), assume_unique=True)
    kind = np.int32 if max(len(counts), num_choices) < 2**31 else np.int64
    nodes, numbers = np.divmod(keys, max(num_choices, 1))
    return nodes.astype(kind), numbers.astype(kind)
