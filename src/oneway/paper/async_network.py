"""What delays, losses, churn, sleepers, limits, size and liars cost an asynchronous network.

Not in the paper. Every peer learns as a new task does (batches, noise, chosen rate, curvature
step), in virtual time by the fast level of `simulate_async`; all costs are paired by seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import isotonic_regression

from oneway.asynchronous.conditions import Conditions
from oneway.asynchronous.simulate import simulate_async
from oneway.datasets.synthetic import synthetic
from oneway.errors import DivergenceError
from oneway.methods import DEFAULT_METHOD, Method
from oneway.methods.batches import DEFAULT_SAMPLES
from oneway.models import LogisticRegression
from oneway.records import Vector
from oneway.simulator.executors import Executor, Job, Local
from oneway.simulator.result_folder import ResultFolder, key_of, whole
from oneway.tables import Table
from oneway.task.learning import Learning
from oneway.topology import TrustGraph

NAME = "async"
SHOWS = "what delay, loss, churn, sleepers, limits, size and liars cost; not in the paper"
NEEDS = "none: synthetic rows"
ALONE = "local"
METHODS = (DEFAULT_METHOD, "ops", "pull", ALONE)
MAX_RECEIVERS = 8
NUM_FEATURES = 10
NUM_ROWS = 50_000
"""Of a seed's table, from which the samples of all its networks are drawn."""
CALM, STEADY, BUSY = 0.1, 1.0, 10.0
"""Samples a second and peer: as people make them, for large networks, and as sensors do."""
SLOW_LINKS = ("delay", "lognormal:0.5,0.5")
"""Ten times the delay that is presumed otherwise."""
SLEEPY = ("sleepers", 0.3)
Told: TypeAlias = tuple[tuple[str, Any], ...]
CONDITIONS: dict[str, tuple[float, Told]] = {
    "delay x 10": (CALM, (SLOW_LINKS,)),
    "10 % of messages lost": (CALM, (("loss", 0.1),)),
    "30 % of messages lost": (CALM, (("loss", 0.3),)),
    "crashes, one in 500 s, down for 60 s": (CALM, (("crashes", 0.002), ("down", 60.0))),
    "20 % join later, 20 % leave": (CALM, (("joining", 0.2), ("leaving", 0.2))),
    "30 % sleep half of the time": (CALM, (SLEEPY,)),
    "unequal speeds (sigma 1)": (CALM, (("unequal", 1.0),)),
    "10 samples a second: delay x 10": (BUSY, (SLOW_LINKS,)),
    "10 samples a second: 30 % lost": (BUSY, (("loss", 0.3),)),
}
"""By its title how many samples a second there are, and what is not as usual."""
WINDOWS, BATCHES, DEATHS = (1, 4, 16, 64), (4, 16, 64), (15.0, 120.0, 600.0)
DEFAULT_WINDOW, DEFAULT_DEATH = 16, Conditions().presume_dead_after
CLIPS = (0.5, math.inf)
NEAR_END = 1.05
"""The loss to reach, relative to what the smallest network ends with."""
LARGE = 1500
"""Of networks of more peers there are fewer seeds, by as much as they are larger."""


@dataclass(frozen=True)
class Extent:
    """How much is run.

    Attributes:
        num_nodes: Of the networks that conditions and choices are tried on.
        rounds: Samples of a peer of ordinary speed.
        sizes: Of the networks whose time to a given loss is measured.
        many: Of the network with a liar, which is one in so many.
    """

    num_nodes: int
    rounds: int
    sizes: tuple[int, ...]
    many: int

    def with_size(self, num_nodes: int) -> Extent:
        """The same with a larger network besides."""
        return replace(self, sizes=tuple(sorted({*self.sizes, num_nodes})))


FULL = Extent(100, 160, (100, 1000, 10_000), 1000)
QUICK = Extent(10, 32, (10, 20), 12)


@dataclass(frozen=True)
class Setting:
    """A network of peers with one method under some conditions.

    Attributes:
        method: Its name.
        num_nodes: Peers of a random graph, each with 1 to `MAX_RECEIVERS` receivers.
        rounds: Samples of a peer of ordinary speed.
        rate: How many of them a second.
        told: What else the conditions are told, by name.
        samples: That a push carries the steps of.
    """

    method: str
    num_nodes: int
    rounds: int
    rate: float
    told: Told = ()
    samples: int = DEFAULT_SAMPLES

    def conditions(self) -> Conditions:
        """The world around the peers."""
        return Conditions(rate=self.rate, **dict(self.told))

    def learner(self) -> Method:
        """The method as a new task has it."""
        learning = Learning(method=self.method, samples_per_push=self.samples)
        return learning.build_method(NUM_FEATURES + 1)


@dataclass(frozen=True)
class Trial:
    """One setting with one seed.

    Attributes:
        loss: Average over samples, each suffered before it was learned from; infinite if diverged.
        sums: Of the losses, per bin of virtual time.
        counts: Of the samples, per bin.
        pushes: A second and peer.
    """

    loss: float
    sums: list[float]
    counts: list[int]
    pushes: float

    @property
    def end(self) -> float:
        """The loss in the last quarter of the time."""
        last = slice(-(-3 * len(self.sums) // 4), None)
        return float(np.sum(self.sums[last]) / np.sum(self.counts[last])) if self.sums else math.inf

    def bins_to(self, loss: float) -> float:
        """After how many bins the loss is down to this, by a falling curve (isotonic regression).

        Infinite if it never is.
        """
        counts = np.array(self.counts, float)
        has = counts > 0
        if not has.any():
            return math.inf
        means = np.array(self.sums)[has] / counts[has]
        falling = isotonic_regression(means, weights=counts[has], increasing=False).x
        reached = np.flatnonzero(falling <= loss)
        return float(np.flatnonzero(has)[reached[0]] + 1) if len(reached) else math.inf


Place: TypeAlias = tuple[Setting, int]
"""Which trial it is: setting and seed."""


def trial(setting: Setting, seed: int) -> Trial:
    """Run a network; rows, graph, moments, delays, faults and noise are the seed's."""
    num_samples = setting.num_nodes * setting.rounds
    stream = _table(seed).deal(setting.num_nodes, seed=seed, resample=num_samples)
    graph = TrustGraph.random(setting.num_nodes, MAX_RECEIVERS, seed)
    try:
        run = whole(
            simulate_async(
                setting.learner(),
                LogisticRegression(),
                stream.head(setting.rounds),
                graph,
                conditions=setting.conditions(),
                seed=seed,
                progress=False,
            )
        )
    except DivergenceError:
        return Trial(math.inf, [], [], 0.0)
    record = run.record
    pushes = record.config["traffic"]["pushes"] / record.config["virtual_seconds"]
    return Trial(
        run.average_loss,
        [float(it) for it in record.loss_sums],
        [int(it) for it in record.sample_counts],
        pushes / setting.num_nodes,
    )


@lru_cache(maxsize=2)
def _table(seed: int) -> Table:
    """The rows of a seed, drawn once a process."""
    return synthetic(NUM_ROWS, NUM_FEATURES, seed).table


@dataclass(frozen=True, eq=False)
class Answers:
    """All that was measured.

    Attributes:
        extent: How much was run.
        trials: By setting, one per seed.
    """

    extent: Extent
    trials: Mapping[Setting, Sequence[Trial]]

    def usual(self, method: str = DEFAULT_METHOD, rate: float = CALM) -> Setting:
        """The network of conditions and choices without any of them."""
        return Setting(method, self.extent.num_nodes, self.extent.rounds, rate)

    def losses(self, setting: Setting) -> Vector:
        """Average losses, per seed."""
        return np.array([it.loss for it in self.trials[setting]])

    def more(self, setting: Setting, usual: Setting) -> Vector:
        """How much larger the loss is than the usual one with the same seed, as a part of that."""
        with np.errstate(invalid="ignore"):  # both may have diverged
            more: Vector = self.losses(setting) / self.losses(usual) - 1
        return more

    def cost(self, title: str, method: str) -> Vector:
        """What a condition costs a method, per seed."""
        usual = self.usual(method, CONDITIONS[title][0])
        return self.more(conditioned(self.extent, title, method), usual)

    def lie_cost(self, clip: float) -> Vector:
        """What a liar costs the honest, as a part of their loss, per seed."""
        return self.more(*(lied_to(self.extent, clip, lying) for lying in (True, False)))

    def seconds(self, size: int) -> Vector:
        """Time to a loss 5 % above what the smallest network of the seed ends with, per seed."""
        smallest, own = (
            self.trials[sized(self.extent, it)] for it in (min(self.extent.sizes), size)
        )
        bins = [it.bins_to(NEAR_END * first.end) for it, first in zip(own, smallest, strict=False)]
        return np.array(bins) / STEADY

    def exponents(self) -> Vector:
        """The p of time ~ n^p per seed, by least squares over the sizes that the seed has."""
        times = {size: self.seconds(size) for size in self.extent.sizes}
        slopes = []
        for seed in range(len(times[min(times)])):
            points = np.array([(n, found[seed]) for n, found in times.items() if seed < len(found)])
            # A loss that is never reached takes for ever, whatever the size.
            if np.isfinite(points).all():
                sizes, seconds = np.log(points).T
                slopes.append(float(np.polyfit(sizes, seconds, 1)[0]))
            else:
                slopes.append(math.inf)
        return np.array(slopes)


def conditioned(extent: Extent, title: str, method: str) -> Setting:
    """A method under one of the `CONDITIONS`."""
    return Setting(method, extent.num_nodes, extent.rounds, *CONDITIONS[title])


def windowed(extent: Extent, window: int, links: Told) -> Setting:
    """The default method with so many unacknowledged pushes, on the busy network."""
    told = (*links, ("window", window))
    return Setting(DEFAULT_METHOD, extent.num_nodes, extent.rounds, BUSY, told)


def batched(extent: Extent, samples: int) -> Setting:
    """The default method with batches of so many samples."""
    return Setting(DEFAULT_METHOD, extent.num_nodes, extent.rounds, CALM, (), samples)


def presuming(extent: Extent, seconds: float) -> Setting:
    """The default method among sleepers, who are presumed dead after so long."""
    told = (SLEEPY, ("presume_dead_after", seconds))
    return Setting(DEFAULT_METHOD, extent.num_nodes, extent.rounds, CALM, told)


def sized(extent: Extent, num_nodes: int) -> Setting:
    """The default method in a network of so many peers."""
    return Setting(DEFAULT_METHOD, num_nodes, extent.rounds, STEADY)


def lied_to(extent: Extent, clip: float, lying: bool) -> Setting:
    """The default method in a large network with one liar, or without."""
    told = (("clip", clip), ("liars", 1 / extent.many if lying else 0.0))
    return Setting(DEFAULT_METHOD, extent.many, extent.rounds, STEADY, told)


def settings(extent: Extent) -> list[Setting]:
    """All that is run, the largest networks first."""
    usual = [
        Setting(it, extent.num_nodes, extent.rounds, rate)
        for it in METHODS
        for rate in (CALM, BUSY)
    ]
    found = [
        *usual,
        *(conditioned(extent, title, method) for title in CONDITIONS for method in METHODS),
        *(windowed(extent, window, links) for window in WINDOWS for links in ((), (SLOW_LINKS,))),
        *(batched(extent, samples) for samples in BATCHES),
        *(presuming(extent, seconds) for seconds in DEATHS),
        *(sized(extent, size) for size in extent.sizes),
        *(lied_to(extent, clip, lying) for clip in CLIPS for lying in (False, True)),
    ]
    return sorted(dict.fromkeys(found), key=lambda it: -it.num_nodes)


def measure(
    extent: Extent,
    num_seeds: int,
    folder: Path,
    on_done: Callable[[int, int], None],
    executor: Executor | None = None,
) -> Answers:
    """Run every setting; trials that the folder remembers are not repeated.

    Args:
        extent: How much.
        num_seeds: How many seeds; fewer for networks of more than `LARGE` peers.
        folder: Where trials are remembered, by a hash of everything that determines them.
        on_done: Called with the number of finished trials and of all.
        executor: Where trials run; in processes of this machine if None.
    """
    found = settings(extent)
    seeds = {it: range(max(1, round(num_seeds * min(1.0, LARGE / it.num_nodes)))) for it in found}
    # Seed after seed, so that what an interrupted run leaves is whole for some of them.
    wanted = [(it, seed) for seed in range(num_seeds) for it in found if seed in seeds[it]]
    trials: dict[Place, Trial] = {}
    for place, one in _trials(wanted, ResultFolder(folder, Trial), executor or Local()):
        trials[place] = one
        on_done(len(trials), len(wanted))
    return Answers(extent, {it: [trials[it, seed] for seed in seeds[it]] for it in found})


def _trials(
    wanted: Sequence[Place], memory: ResultFolder[Trial], executor: Executor
) -> Iterator[tuple[Place, Trial]]:
    """Every trial: from the folder if it was computed before."""
    keys = {it: _key(*it) for it in wanted}
    return memory.results(keys, lambda it: Job(_placed, (it,)), executor)


def _placed(place: Place) -> tuple[Place, Trial]:
    return place, trial(*place)


def _key(setting: Setting, seed: int) -> str:
    """A hash of all that determines a trial."""
    return key_of(
        {
            "panel": NAME,
            "setting": asdict(setting),
            "conditions": setting.conditions().describe(),
            "method": setting.learner().describe(),
            "model": LogisticRegression().describe(),
            "rows": (NUM_ROWS, NUM_FEATURES, MAX_RECEIVERS),
            "seed": seed,
        }
    )
