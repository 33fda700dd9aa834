"""Neural networks over one-way graphs: a small network on digits, a convolutional one on MNIST.

Not in the paper. Push-sum with stochastic gradients of a network is Stochastic Gradient Push (SGP;
Assran, Loizou, Ballas and Rabbat, ICML 2019): gradients are taken at z / omega, steps are made on
z, and shares of z and omega travel, which is what published OPS does with every sample. They
train deep networks on large sets, dealt alike to all nodes, about as well as exact averaging does;
here are small ones, dealt alike and by class, beside a server and learning alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from oneway.datasets import info
from oneway.errors import DivergenceError
from oneway.models import Model, Torch
from oneway.paper.figures import Scale
from oneway.paper.methods import label, make
from oneway.paper.verdict import Claim, below, everywhere, paired
from oneway.paper.world import data_table
from oneway.records import Ints, Matrix, Vector, checksum
from oneway.simulator import simulate
from oneway.simulator.executors import Executor, Job, Local
from oneway.simulator.result_folder import ResultFolder, key_of, whole
from oneway.tables import Table
from oneway.topology import TrustGraph

if TYPE_CHECKING:
    from torch import nn

NAME = "networks"
SHOWS = "neural networks on images, alike and by class: a part of beyond; not in the paper"
NEEDS = "digits, mnist; the extra torch"
QUICK_RATES = (0.03, 0.1)
SERVER, ALONE = "col-published", "local-published"
TOGETHER = ("ops-published", "relay-plain", "tracking-plain")
METHODS = (SERVER, *TOGETHER, ALONE)
MOST_SEEDS = 24
FEW_CLASSES = 2
"""Of the ten digits, so many does a node see where nodes differ."""
MAX_RECEIVERS = 4
NEAR = 0.02
"""Accuracy is close to the server's if it is lower by less than this."""


@dataclass(frozen=True)
class Setting:
    """Images, how they are dealt, and the network that learns them.

    Attributes:
        title: What it is called.
        data: A data set's name.
        module: The function that makes the network, by name.
        shape: Of an image as the network sees it; None for a flat row.
        num_nodes: Nodes of the paper's random graph, each with 1 to `MAX_RECEIVERS` receivers.
        rounds: How many images every node learns from, drawn from its own.
        held: How many images nobody learns from: half to choose the rate, half to judge by.
        rates: The grid of learning rates, the same for all methods.
        classes_per_node: How many digits a node sees; None for all.
        most_images: Learn from at most so many; None for all.
    """

    title: str
    data: str
    module: str
    shape: tuple[int, ...] | None
    num_nodes: int
    rounds: int
    held: int
    rates: tuple[float, ...]
    classes_per_node: int | None = None
    most_images: int | None = None

    def model(self) -> Model:
        """The network with its loss."""
        return Torch(self.module, "cross-entropy", self.shape)

    def split(self, seed: int, table: Table | None = None) -> tuple[Table, Ints, Ints]:
        """The images to learn from, and the rows of those to choose by and to judge by."""
        table = data_table(self.data) if table is None else table
        # Not the numbers that the images are dealt by.
        order = np.random.default_rng([seed, self.held]).permutation(len(table))
        held, half = order[: self.held], self.held // 2
        end = None if self.most_images is None else self.held + self.most_images
        own = order[self.held : end]
        images = replace(table, features=table.features[own], labels=table.labels[own])
        return images, held[:half], held[half:]


DIGITS = Setting(
    "digits, alike",
    "digits",
    "oneway.models.examples:digits_network",
    None,
    16,
    240,
    600,
    (0.02, 0.1, 0.5),
)
MNIST = Setting(
    "MNIST, alike",
    "mnist",
    f"{__name__}:convolutional",
    (1, 28, 28),
    8,
    200,
    1000,
    (0.003, 0.01, 0.03, 0.1),
)


def convolutional() -> nn.Module:
    """A small convolutional network for MNIST: 5,994 parameters."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


Place: TypeAlias = tuple[Setting, str, int]
"""Which trial it is: setting, method and seed."""


@dataclass(frozen=True)
class Trial:
    """One method in one setting with one seed: a number for every learning rate of the grid.

    Attributes:
        losses: Average loss, each image's before it was learned from; infinite where it diverged.
        online: Share of these predictions that were right; accuracies are 0 where it diverged.
        chosen_by: Mean accuracy of the nodes' last models on the images to choose a rate by.
        accuracies: The same on the images to judge by.
        worst: Of these, the accuracy of the worst node.
    """

    losses: list[float]
    online: list[float]
    chosen_by: list[float]
    accuracies: list[float]
    worst: list[float]


def trial(setting: Setting, method: str, seed: int, table: Table | None = None) -> Trial:
    """Run a method at every learning rate, and judge every node's last model by held images.

    Args:
        setting: Where.
        method: Its name.
        seed: Of everything.
        table: The setting's data set, if it is in memory already.
    """
    table = data_table(setting.data) if table is None else table
    images, *held = setting.split(seed, table)
    stream = images.deal(
        setting.num_nodes,
        seed=seed,
        resample=setting.num_nodes * setting.rounds,
        classes_per_node=setting.classes_per_node,
    ).head(setting.rounds)
    graph = TrustGraph.random(setting.num_nodes, MAX_RECEIVERS, seed)
    model = setting.model()
    found = Trial([], [], [], [], [])
    for rate in setting.rates:
        try:
            run = whole(
                simulate(make(method, rate), model, stream, graph, progress=False, seed=seed)
            )
        except DivergenceError:
            numbers = [math.inf, 0.0, 0.0, 0.0, 0.0]
        else:
            choosing, judging = (_accuracies(model, run.estimates, table, rows) for rows in held)
            accuracies = (run.accuracy or 0.0, choosing.mean(), judging.mean(), judging.min())
            numbers = [run.average_loss, *map(float, accuracies)]
        for values, number in zip(vars(found).values(), numbers, strict=True):
            values.append(number)
    return found


def _accuracies(model: Model, estimates: Matrix, table: Table, rows: Ints) -> Vector:
    """The share of right answers of every node's model."""
    features, labels = table.features[rows], table.labels[rows]
    return np.array([np.mean(model.predict(params, features) == labels) for params in estimates])


@dataclass(frozen=True, eq=False)
class Measured:
    """What a setting says, each method at the rate that is best on the images to choose by.

    Attributes:
        setting: Where it was measured.
        trials: By method, one trial per seed.
    """

    setting: Setting
    trials: Mapping[str, Sequence[Trial]]

    def best(self, method: str) -> int:
        """The place of the rate with the highest mean accuracy over seeds."""
        return int(np.argmax(np.mean([it.chosen_by for it in self.trials[method]], axis=0)))

    def values(self, method: str, name: str) -> Vector:
        """A number of the trials by its name, per seed, at the best rate."""
        place = self.best(method)
        return np.array([getattr(it, name)[place] for it in self.trials[method]])

    def behind(self, method: str) -> Vector:
        """How much lower accuracy is than the server's with the same seed."""
        behind: Vector = self.values(SERVER, "accuracies") - self.values(method, "accuracies")
        return behind

    def closed(self, method: str) -> Vector:
        """Of the gap in accuracy between alone and the server, the share closed, per seed."""
        alone, server, own = (self.values(it, "accuracies") for it in (ALONE, SERVER, method))
        with np.errstate(divide="ignore", invalid="ignore"):  # there may be no gap
            share: Vector = (own - alone) / (server - alone)
        return share


@dataclass(frozen=True, eq=False)
class Learned:
    """All that was measured, and sentences on what could not be."""

    settings: Sequence[Measured]
    absent: Sequence[str]


def settings(
    scale: Scale, rates: tuple[float, ...] | None = None
) -> tuple[list[Setting], list[str]]:
    """The settings that can be measured here, and a sentence for everything that cannot."""
    if find_spec("torch") is None:
        missing = "PyTorch is not installed, so no network was learned; pip install 'oneway[torch]'"
        return [], [missing]
    found, absent = [], []
    for setting in (DIGITS, MNIST):
        if not info(setting.data).present:
            absent.append(
                f"The data set {setting.data} is not on this machine, so it is left out; oneway "
                f"data info {setting.data} says where it belongs."
            )
            continue
        rounds = min(setting.rounds, 2 * scale.trust_rounds)
        own = replace(setting, rounds=rounds, rates=rates or setting.rates)
        title = setting.title.replace("alike", f"{FEW_CLASSES} digits a node")
        found += [own, replace(own, title=title, classes_per_node=FEW_CLASSES)]
    return found, absent


def measure(
    scale: Scale,
    rates: tuple[float, ...] | None,
    num_seeds: int,
    folder: Path,
    on_done: Callable[[int, int], None],
    executor: Executor | None = None,
) -> Learned:
    """Run every method in every setting; trials that the folder remembers are not repeated.

    Args:
        scale: How long it may take.
        rates: The grid of learning rates; None for that of every setting.
        num_seeds: How many seeds, up to `MOST_SEEDS`.
        folder: Where trials are remembered, by a hash of everything that determines them.
        on_done: Called with the number of finished trials and of all.
        executor: Where trials run; in processes of this machine if None.
    """
    found, absent = settings(scale, rates)
    seeds = range(min(num_seeds, MOST_SEEDS))
    wanted = [(it, method, seed) for seed in seeds for it in found[::-1] for method in METHODS]
    trials: dict[Place, Trial] = {}
    for place, one in _trials(wanted, ResultFolder(folder, Trial), executor or Local()):
        trials[place] = one
        on_done(len(trials), len(wanted))
    measured = [
        Measured(it, {m: [trials[it, m, seed] for seed in seeds] for m in METHODS}) for it in found
    ]
    return Learned(measured, absent)


def _trials(
    wanted: Sequence[Place], memory: ResultFolder[Trial], executor: Executor
) -> Iterator[tuple[Place, Trial]]:
    """Every trial: from the folder if it was computed before."""
    keys = {it: _key(*it) for it in wanted}
    return memory.results(keys, lambda it: Job(_placed, (it, data_table(it[0].data))), executor)


def _placed(place: Place, table: Table) -> tuple[Place, Trial]:
    return place, trial(*place, table)


def _key(setting: Setting, method: str, seed: int) -> str:
    """A hash of all that determines a trial."""
    table = data_table(setting.data)
    return key_of(
        {
            "setting": asdict(setting) | {"title": None},
            "table": checksum(table.features, table.labels),
            "model": setting.model().describe(),
            "receivers": MAX_RECEIVERS,
            "method": make(method, 1.0).describe(),
            "seed": seed,
        }
    )


def judged(learned: Learned) -> list[Claim]:
    """Better than alone and close to the server: a claim each for every method."""
    note = (
        "Not a claim of the paper. Accuracy of the nodes' last models on images that nobody "
        "learned from, mean over nodes, paired by seed."
    )
    claims = []
    for method in TOGETHER if learned.settings else ():
        own = label(method).title
        better = tuple(
            paired(
                it.setting.title,
                it.values(method, "accuracies") - it.values(ALONE, "accuracies"),
                f"accuracy of {own} minus accuracy alone",
            )
            for it in learned.settings
        )
        near = tuple(
            below(
                it.setting.title,
                it.behind(method),
                NEAR,
                f"accuracy of the server minus accuracy of {own}",
            )
            for it in learned.settings
        )
        for text, findings in (
            (f"{own} learns a neural network better than nodes alone do.", better),
            (f"{own} learns a neural network as a server does, up to {NEAR:.0%} of images.", near),
        ):
            claims.append(Claim(text, NAME, findings, everywhere(findings), note))
    return claims
