"""The engine of a partitioned network: parts take turns, and what they say is put together.

Parts may be plain objects or actors on other machines: `Hands` calls them. Between two reports
nothing is waited for here. What one part hands out goes to the next calls of the others as it is,
so that rows need not pass through this process and rounds follow each other without a pause.

Every sum over nodes is made here, or by a part for a block of nodes, in the order in which one
process makes it: all numbers of a run are those of one process, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from oneway.methods import Method
from oneway.models import LinearModel, Model, typical_sample
from oneway.records import Matrix, NetworkState, Vector
from oneway.simulator import part_kernels
from oneway.simulator.exchange import Mixing
from oneway.simulator.fast_engine import routes_of
from oneway.simulator.measurements import Measurements, Seed, divergence
from oneway.simulator.part import Part, PartSetup, Report
from oneway.simulator.part_routes import Partition, split_routes
from oneway.simulator.snapshots import Reader, Snapshot
from oneway.streams import Stream

DISAGREEMENT_EVERY = 10
"""Disagreement is measured after so many rounds, unless told otherwise."""
_MOST_LOSSES = 8_000_000
"""So many losses of nodes are waited for, at most, before they are added up."""
_REMEMBERED = 32
"""Of so many different mixings parts keep the edges."""


class Hands(Protocol):
    """How parts are made and called."""

    def begin(self, setups: Iterator[PartSetup], num_parts: int) -> None:
        """Make the parts, in order; those that there were are gone."""

    def call(self, part: int, name: str, *given: Any, returns: int = 1) -> list[Any]:
        """Call a method of a part; so many promises of what it returns, for `get` or `call`."""

    def get(self, promises: list[Any]) -> list[Any]:
        """What was promised.

        Raises:
            LostPartError: A part is gone.
        """


class LocalHands:
    """Parts in this process."""

    def begin(self, setups: Iterator[PartSetup], num_parts: int) -> None:
        """Make the parts."""
        self._parts = [Part(setup) for setup in setups]

    def call(self, part: int, name: str, *given: Any, returns: int = 1) -> list[Any]:
        """Call at once."""
        result = getattr(self._parts[part], name)(*given)
        return [result] if returns == 1 else list(result)

    def get(self, promises: list[Any]) -> list[Any]:
        """What was returned."""
        return promises


class PartsEngine:
    """Runs a network part by part.

    Args:
        partition: Which node belongs to which part.
        hands: How parts are called.
        every: Disagreement is measured after so many rounds, and after the last.
    """

    name = "ray"
    pace = 2.0

    def __init__(
        self,
        method: Method,
        model: Model,
        stream: Stream,
        measurements: Measurements,
        seed: Seed,
        *,
        partition: Partition,
        hands: Hands,
        every: int = DISAGREEMENT_EVERY,
    ) -> None:
        assert isinstance(model, LinearModel)
        self.method = method.suited(*typical_sample(model, stream.dim))
        self._given = (method, model, stream, seed)
        self.dim, self._num_nodes = model.dim(stream.dim), stream.num_nodes
        self._rows, self._num_rounds = stream.rows, stream.num_rounds
        self.measurements, self.partition = measurements, partition
        self._hands, self._every = hands, every
        measurements.disagreement[:] = np.nan
        self.begin_again()

    def begin_again(self) -> None:
        """Make all parts, as they are before the first round."""
        self._keys: dict[int, tuple[Mixing | None, int]] = {}
        setups = part_setups(self.partition, *self._given, self._tallies)
        self._hands.begin(setups, self.partition.num_parts)

    @property
    def state(self) -> NetworkState:
        """What all nodes hold."""
        numerators = np.empty((self._num_nodes, self.dim))
        masses = np.empty(self._num_nodes)
        for part, nodes in enumerate(self.partition.nodes):
            [[numerators[nodes], masses[nodes]]] = self._get(self._hands.call(part, "state"))
        return NetworkState(numerators, masses)

    def advance(self, first: int, last: int, mixing: Mixing | None) -> None:
        """Run rounds `first` to `last` (excluded), all with the same shares.

        Raises:
            DivergenceError: If a loss or an estimate is no longer finite.
            LostPartError: A part is gone.
        """
        key = self._key(mixing)
        most = max(1, _MOST_LOSSES // self._num_nodes)
        while first < last:
            measured = min((first // self._every + 1) * self._every, self._num_rounds)
            end = min(last, measured, first + most)
            self._stretch(key, first, end)
            if end == measured:
                self.measure(end - 1)
            first = end

    def finish(self, num_rounds: int) -> None:
        """Note the disagreement after the last round that was run."""
        self.measure(num_rounds - 1)

    def measure(self, round_index: int) -> None:
        """Note the disagreement after a round, which was the last one.

        Raises:
            DivergenceError: It is not finite.
        """
        if not np.isnan(self.measurements.disagreement[round_index]):
            return
        mean = part_kernels.mean_of_totals(np.array(self._totals()), self.dim)
        distances = self._joined(self._all("distances", mean))
        found = part_kernels.sum_in_order(distances) / self._num_nodes
        if not np.isfinite(found):
            raise divergence(self.method, round_index, 0, self.state.masses)
        self.measurements.disagreement[round_index] = found

    def snapshots(self) -> Iterator[tuple[str, Snapshot]]:
        """What every part needs to go on, one after the other."""
        for part in range(self.partition.num_parts):
            yield f"part{part}", *self._get(self._hands.call(part, "snapshot"))

    def restore_from(self, read: Reader) -> None:
        """Go on from what `snapshots` told, which `read` gives by name."""
        for part in range(self.partition.num_parts):
            self._get(self._hands.call(part, "restore", read(f"part{part}")))

    def _stretch(self, key: int, first: int, last: int) -> None:
        """Run some rounds, and put together what parts report."""
        num_parts = self.partition.num_parts
        arrived: list[list[Any]] = [[] for _ in range(num_parts)]
        for round_index in range(first, last):
            for mix in range(self.method.mixes):
                sent = [
                    self._hands.call(
                        part, "turn", key, round_index, mix, *arrived[part], returns=num_parts
                    )
                    for part in range(num_parts)
                ]
                arrived = [[sent[of][to] for of in range(num_parts)] for to in range(num_parts)]
        settled = [self._hands.call(part, "settle", *arrived[part])[0] for part in range(num_parts)]
        self._note(first, self._get(settled))

    def _note(self, first: int, reports: list[Report]) -> None:
        """Add up what all nodes suffered, in their order."""
        measured = self.measurements
        losses = self._joined([report.losses for report in reports])
        last = first + len(losses)
        measured.correct_counts[first:last] = sum(report.correct for report in reports)
        if measured.tallying is not None:
            scores = self._joined([report.scores for report in reports])
            measured.tallying.take_scores(self._rows[first:last], scores)
        for place, of_nodes in enumerate(losses):
            loss_sum = part_kernels.sum_in_order(of_nodes)
            measured.loss_sums[first + place] = loss_sum
            found = [int(report.bad[place]) for report in reports if report.bad[place] >= 0]
            if found or not np.isfinite(loss_sum):
                suspect = part_kernels.first_not_finite(of_nodes)
                node = suspect if suspect >= 0 else min(found, default=0)
                masses = self._lightest(reports, place)
                raise divergence(self.method, first + place, node, masses)

    def _lightest(self, reports: list[Report], place: int) -> Vector:
        """Masses of all nodes after a round, of which only the smallest ones are known."""
        masses = np.full(self._num_nodes, np.inf)
        for report in reports:
            masses[report.light[place]] = report.masses[place]
        return masses

    def _totals(self) -> list[Vector]:
        """The totals of blocks of nodes, each made by one part of the rows of all."""
        num_parts, bounds = self.partition.num_parts, part_kernels.block_bounds(self._num_nodes)
        promises = []
        for block, (begin, end) in enumerate(pairwise(bounds)):
            rows = [
                self._hands.call(part, "rows_between", begin, end)[0] for part in range(num_parts)
            ]
            part_of = self.partition.part_of[begin:end]
            promises += self._hands.call(block % num_parts, "total", part_of, *rows)
        return self._get(promises)

    def _all(self, name: str, *given: Any) -> list[Any]:
        parts = range(self.partition.num_parts)
        return self._get([self._hands.call(part, name, *given)[0] for part in parts])

    def _get(self, promises: list[Any]) -> list[Any]:
        return self._hands.get(promises)

    def _joined(self, values: list[Any]) -> Matrix:
        """Values of the nodes of each part, as those of all nodes in their order."""
        shape = (*values[0].shape[:-1], self._num_nodes)
        together = np.empty(shape)
        for nodes, some in zip(self.partition.nodes, values, strict=True):
            together[..., nodes] = some
        return together

    def _key(self, mixing: Mixing | None) -> int:
        """By which name parts know the edges of a mixing; they are told them if they do not."""
        if id(mixing) not in self._keys:
            if len(self._keys) >= _REMEMBERED:
                for _, key in self._keys.values():
                    self._all("forget", key)
                self._keys.clear()
            key = len(self._keys)
            split = split_routes(routes_of(self.method, mixing), self.partition)
            self._get(
                [self._hands.call(part, "use", key, own)[0] for part, own in enumerate(split)]
            )
            # The mixing is held too: while it lives, nothing else has its id.
            self._keys[id(mixing)] = (mixing, key)
        return self._keys[id(mixing)][1]

    @property
    def _tallies(self) -> bool:
        return self.measurements.tallying is not None


def part_setups(
    partition: Partition, method: Method, model: Model, stream: Stream, seed: Seed, scores: bool
) -> Iterator[PartSetup]:
    """What each part is made from, one after the other: of the table only what its nodes see."""
    has_sample = None
    if method.batches is not None and method.batches.noise:
        has_sample = np.where(stream.known_rows >= 0, 0, -1).astype(np.int8)
    for index, nodes in enumerate(partition.nodes):
        own = own_stream(stream, nodes)
        yield PartSetup(
            index, nodes, method, model, own, seed, stream.num_nodes, has_sample, scores
        )


def own_stream(stream: Stream, nodes: Any) -> Stream:
    """The samples of some nodes, with a table of only those rows that they see."""
    rows = stream.rows[:, nodes]
    late = None if stream.late is None else stream.late[:, nodes]
    needed = np.zeros(len(stream.labels) + 1, np.bool_)
    for some in (rows, late):
        if some is not None:
            needed[some] = True
    needed[-1] = False  # where a node has no sample
    chosen = np.flatnonzero(needed)
    place = np.full(len(needed), -1, stream.rows.dtype)
    place[chosen] = np.arange(len(chosen))
    return Stream(
        stream.features[chosen],
        stream.labels[chosen],
        place[rows],
        late=None if late is None else place[late],
        _known_finite=True,
    )
