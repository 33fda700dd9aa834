"""A problem on which bias shows: nodes that carry much weight want the opposite of all others.

The paper's regret lets every node predict its own samples only. That is enough to see a method
whose nodes agree on a wrong model, and not enough to see one whose nodes do not agree at all:
learning alone, every node is at its own optimum, better there than the best common model, and its
regret falls below 0 (docs/errata.md, item 12). What reveals every bias is each node's estimate
on the samples of ALL nodes of the round, against the best common model x*:

    sum_t 1/n sum_i sum_j (f_j,t(x_i,t) - f_j,t(x*))

For push-sum the theorem covers it. A loss whose gradients are at most G differs between two
estimates by at most G times their distance, so this exceeds the paper's regret by at most
2 G sum_t sum_i ||x_i,t - zbar_t||. By Cauchy-Schwarz and Lemma 8 (noise 0, kappa as in the errata)
that is 4 kappa n G^2 T gamma. With the tight bound's n G^2 T gamma (2 kappa + 1/2) the growth is
n G^2 T gamma (6 kappa + 1/2), still below the printed n G^2 T gamma (8 kappa + 1).

Losses are hinges on unit vectors: G = 1. Three of four labels are +1, and -1 at the few nodes that
object, in random rounds (the even ones) and in adversarial ones (the odd ones). Most nodes do not
object, so x* is 1 in every coordinate; where objectors weigh more than the others it is -1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

import oneway as ow
from oneway.errors import DivergenceError
from oneway.methods import Method
from oneway.records import Batch, Matrix, Segment, Vector

Maker = Callable[[float], Method]


class Transposed(ow.OnlinePushSum):
    """Takes from those it trusts instead of giving to them: masses stay 1 and correct nothing."""

    def shares(self, graph):
        return graph.mixing().T.tocsr()


class MassForwarded(ow.OnlinePushSum):
    """Keeps a share of its numerator and none of its mass, so the two no longer belong together."""

    payload = (Segment("numerator", "split"), Segment("mass", "forwarded", is_vector=False))


RIGHT: dict[str, Maker] = {
    "ops": ow.OnlinePushSum,
    "relay": ow.Relay,
    "tracking": ow.Tracking,
}
"""Methods that settle at the best common model. One more that claims it belongs in here."""

BIASED: dict[str, Maker] = {
    "capped step": lambda rate: ow.OnlinePushSum(rate, step="capped"),
    "mass step": lambda rate: ow.OnlinePushSum(rate, step="mass"),
    "naive gossip": ow.NaiveGossip,
    "transposed mixing": Transposed,
    "mass forwarded": MassForwarded,
}
"""Methods that settle elsewhere wherever masses differ."""


@dataclass(frozen=True)
class Judged(ow.models.Hinge):
    """Hinge whose gradient is of a node's own sample, and whose loss is the mean over all nodes'.

    Attributes:
        num_nodes: Of one network; a stream may hold several copies of it, side by side.
    """

    num_nodes: int = 1

    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """[copy * node] The mean loss of each estimate on the samples of all nodes of its copy."""
        estimates = params.reshape(-1, self.num_nodes, params.shape[-1])
        features = batch.features.reshape(estimates.shape)
        scores = np.einsum("cid,cjd->cij", estimates, features)
        labels = batch.labels.reshape(-1, 1, self.num_nodes)
        means: Vector = np.maximum(0.0, 1.0 - labels * scores).mean(axis=2).ravel()
        return means


@dataclass(frozen=True, eq=False)
class Contest:
    """A network, and who objects to what.

    Attributes:
        mixing: `[sender, receiver]`.
        objects: `[axis, node]`, whether a node wants -1 on an axis.
        copies: So many independent copies are run side by side; regret is their mean, which is
            what the paper's expectation asks for.
    """

    mixing: Matrix
    objects: np.ndarray
    copies: int = 1

    @property
    def num_nodes(self) -> int:
        """Of one copy."""
        return len(self.mixing)

    @property
    def optimum(self) -> Vector:
        """The best common model."""
        return np.ones(len(self.objects))

    def network(self, _round: int = 0) -> ow.TrustGraph:
        """All copies as one graph; given to `simulate` as a function, for it is not connected."""
        return ow.TrustGraph.from_mixing(sparse.block_diag([self.mixing] * self.copies).tocsr())

    def stream(self, num_rounds: int, seed: int) -> ow.Stream:
        """A node's sample is an axis and a label; random in even rounds, in turn in odd ones."""
        rng = np.random.default_rng([seed, num_rounds])
        nodes = np.tile(np.arange(self.num_nodes), self.copies)
        num_axes = len(self.objects)
        axes = rng.integers(num_axes, size=(num_rounds, len(nodes)))
        usual = rng.random(axes.shape) < 0.75
        turns = np.arange(num_rounds // 2)[:, None] + np.arange(len(nodes))
        axes[1::2] = turns % num_axes
        usual[1::2] = turns // num_axes % 4 > 0
        positive = usual ^ self.objects[axes, nodes]
        return ow.Stream(
            features=np.repeat(np.eye(num_axes), 2, axis=0),
            labels=np.tile([-1.0, 1.0], num_axes),
            rows=(2 * axes + positive).astype(np.int32),
        )

    def regret(
        self, method: Method, num_rounds: int, seed: int = 0, own_losses: bool = False
    ) -> float:
        """Regret on all nodes' losses; on each node's own, as the paper has it, with `own_losses`.

        Infinite if the method diverges.
        """
        stream, graph = self.stream(num_rounds, seed), self.network()
        model = ow.models.Hinge(l2=0.0, intercept=False)
        judged = model if own_losses else Judged(0.0, intercept=False, num_nodes=self.num_nodes)
        try:
            run = ow.simulate(method, judged, stream, lambda _: graph, progress=False)
        except DivergenceError:
            return math.inf
        best = np.maximum(0.0, 1.0 - stream.labels * (stream.features @ self.optimum))
        return float(run.record.loss_sums.sum() - best[stream.rows].sum()) / self.copies


def hubs_and_speakers(copies: int) -> Contest:
    """Ten nodes: three hold nine tenths of the mass, three others are copied by most.

    Everybody sends to the hubs 0 to 2, which give a twentieth back, each to one of the speakers
    7 to 9. These alone send to all. On axis 0 the hubs object, on axis 1 the speakers: so methods
    that weigh nodes by mass fail on the first, those that weigh them by how many copy them on the
    second.
    """
    hubs, speakers = np.arange(3), np.arange(7, 10)
    mixing = np.zeros((10, 10))
    mixing[np.ix_(hubs, hubs)] = 0.95 / 3
    mixing[hubs, speakers] = 0.05
    mixing[speakers] = 0.1
    for node in range(3, 7):
        mixing[node, [*hubs, node]] = 0.25
    objects = np.zeros((2, 10), bool)
    objects[0, hubs] = objects[1, speakers] = True
    return Contest(mixing, objects, copies)


def one_heavy_node(heavy: float, stray: float, seed: int) -> Contest:
    """Five nodes that mix nearly at once, and of which the first has nearly all mass and objects.

    If everybody hands out the same shares, one round mixes all, however uneven the shares: q = 0,
    and C_1 = 1 is as small as it can be. So the bound is small enough for a bias to exceed it.

    Args:
        heavy: The share that everybody gives to the first node.
        stray: The part of what is handed out that follows a random graph instead.
        seed: Of that graph.
    """
    shares = np.full(5, (1 - heavy) / 4)
    shares[0] = heavy
    random = ow.TrustGraph.random(5, max_receivers=3, seed=seed).mixing().toarray()
    objects = np.zeros((1, 5), bool)
    objects[0, 0] = True
    return Contest((1 - stray) * np.tile(shares, (5, 1)) + stray * random, objects)
