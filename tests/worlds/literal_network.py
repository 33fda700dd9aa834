"""Networks in plain Python: nodes with lists, messages in dictionaries, one after the other.

Written from the methods' descriptions alone and slow on purpose: what the engines compute with
matrices is compared with this.
"""

from __future__ import annotations

import math

import numpy as np

import oneway as ow
from oneway.records import Batch


def plus(one, other, factor=1.0):
    return [a + factor * b for a, b in zip(one, other, strict=True)]


def times(factor, values):
    return [factor * value for value in values]


class PushSumNode:
    """Online Push-Sum: descend on z, hand out shares of z and omega, keep the rest of both.

    With bounds, a node below the lowest mass mints what it lacks, and one above the highest burns
    what is too much, each unit of mass together with one model of its own.
    """

    def __init__(self, start, bounds=None):
        self.z, self.omega = list(start), 1.0
        self.bounds, self.minted, self.burned = bounds, 0.0, 0.0

    def estimate(self):
        return [value / self.omega for value in self.z]

    def mass(self):
        """What the step rule goes by."""
        return self.omega

    def descend(self, step):
        self.z = plus(self.z, step, -1.0)

    def send(self, kept, shares):
        sent = {j: {"z": times(s, self.z), "omega": s * self.omega} for j, s in shares.items()}
        self.z, self.omega = times(kept, self.z), kept * self.omega
        return sent

    def receive(self, sender, number, message):
        self.z, self.omega = plus(self.z, message["z"]), self.omega + message["omega"]

    def keep_mass(self):
        """At the end of a round."""
        if self.bounds is None or self.omega == 0.0:
            return
        lowest, highest = self.bounds
        x = self.estimate()
        if self.omega < lowest:
            lacking = lowest - self.omega
            self.z, self.omega = plus(self.z, x, lacking), self.omega + lacking
            self.minted += lacking
        if self.omega > highest:
            excess = self.omega - highest
            self.z, self.omega = plus(self.z, x, -excess), self.omega - excess
            self.burned += excess

    def settle(self):
        """Right before the next step."""


class RelayNode(PushSumNode):
    """Relay: steps go into a parcel; a fraction is deposited, the rest is sent on, all of it.

    If it lets go, it sends to nobody what it would send to one receiver.
    """

    def __init__(self, start, amount=0.3, bounds=None, lets_go=False):
        super().__init__(start, bounds)
        self.lets_go = lets_go
        self.b, self.c = [0.0] * len(self.z), 0.0
        self.amount = amount

    def mass(self):
        return 1.0

    def descend(self, step):
        self.b, self.c = plus(self.b, step), self.c + 1.0

    def send(self, kept, shares):
        if self.lets_go and not shares:
            self.send(0.5, {"nobody": 0.5})
            return {}
        phi = min(1.0, self.amount * self.omega / math.sqrt(self.c)) if self.c else 1.0
        self.z = plus(self.z, times(phi, self.b), -1.0)
        handed = math.fsum(shares.values())
        parcels = {
            j: {"b": times((1 - phi) * s / handed, self.b), "c": (1 - phi) * s / handed * self.c}
            for j, s in shares.items()
        }
        rest = 0.0 if shares else 1.0 - phi  # there is nobody to send it to
        self.b, self.c = times(rest, self.b), rest * self.c
        sent = super().send(kept, shares)
        return {j: {**sent[j], **parcels[j]} for j in sent}

    def receive(self, sender, number, message):
        super().receive(sender, number, message)
        self.b, self.c = plus(self.b, message["b"]), self.c + message["c"]


class PullNode:
    """Pull: the model goes to every receiver, which averages the newest of each sender."""

    def __init__(self, start):
        self.x, self.heard = list(start), {}

    def estimate(self):
        return self.x

    def mass(self):
        return 1.0

    def descend(self, step):
        self.x = plus(self.x, step, -1.0)

    def send(self, kept, shares):
        return {j: {"x": list(self.x)} for j in shares}

    def receive(self, sender, number, message):
        if sender not in self.heard or number > self.heard[sender][0]:
            self.heard[sender] = (number, message["x"])

    def keep_mass(self):
        """There is none."""

    def settle(self):
        models = [self.x, *(model for _, model in self.heard.values())]
        self.x = [math.fsum(values) / len(models) for values in zip(*models, strict=True)]


class TrackingNode(PullNode):
    """Push-pull on momenta: m by the gradient, y by what m changed, x by y; y split, x pulled."""

    def __init__(self, start, beta=0.9):
        super().__init__(start)
        self.beta, self.y, self.m = beta, [0.0] * len(self.x), [0.0] * len(self.x)

    def descend(self, step):
        momentum = plus(times(self.beta, self.m), step, 1 - self.beta)
        self.y = plus(self.y, plus(momentum, self.m, -1.0))
        self.m = momentum
        self.x = plus(self.x, self.y, -1.0)

    def send(self, kept, shares):
        sent = super().send(kept, shares)
        for j, share in shares.items():
            sent[j]["y"] = times(share, self.y)
        self.y = times(kept, self.y)
        return sent

    def receive(self, sender, number, message):
        super().receive(sender, number, message)
        self.y = plus(self.y, message["y"])


class LiteralMomentum:
    def __init__(self, beta):
        self.beta, self.mean = beta, None

    def apply(self, gradient):
        before = self.mean or [0.0] * len(gradient)
        self.mean = plus(times(self.beta, before), gradient, 1 - self.beta)
        return self.mean


class LiteralAdaGrad:
    def __init__(self, epsilon=1e-8):
        self.epsilon, self.squares = epsilon, None

    def apply(self, gradient):
        before = self.squares or [0.0] * len(gradient)
        self.squares = [s + g**2 for s, g in zip(before, gradient, strict=True)]
        pairs = zip(gradient, self.squares, strict=True)
        return [g / (math.sqrt(s) + self.epsilon) for g, s in pairs]


class LiteralBatches:
    """Clipped gradients are added up; noise is drawn once the batch is full."""

    def __init__(self, batches):
        self.batches, self.total, self.count = batches, None, 0

    def add(self, gradient, rng):
        length = math.sqrt(math.fsum(value**2 for value in gradient))
        gradient = times(min(1.0, self.batches.clip / length) if length else 1.0, gradient)
        self.total = gradient if self.total is None else plus(self.total, gradient)
        self.count += 1
        if self.count < self.batches.samples:
            return None
        full, self.total, self.count = self.total, None, 0
        if self.batches.noise:
            draws = [float(rng.standard_normal()) for _ in full]
            full = plus(full, draws, self.batches.noise * self.batches.clip)
        return full


class LiteralNetwork:
    """Nodes, their samples, and messages under way.

    Args:
        make_node: From the start to a node.
        make_chain: To the transforms of one node.
        options: `rate` (a function of the round), `rule`, `batches` and `mixes`.
    """

    def __init__(self, make_node, model, stream, graph, make_chain=tuple, seed=0, **options):
        self.model, self.stream = model, stream
        self.rate = options.get("rate", lambda _: 0.1)
        self.rule, self.mixes = options.get("rule", "paper"), options.get("mixes", 1)
        batches = options.get("batches")
        self.rng = np.random.default_rng(seed)
        start = [float(value) for value in model.init(stream.dim, self.rng)]
        self.nodes = [make_node(start) for _ in range(graph.num_nodes)]
        self.chains = [make_chain() for _ in self.nodes]
        self.batches = [LiteralBatches(batches) if batches else None for _ in self.nodes]
        mixing = graph.mixing().toarray()
        self.kept = [mixing[i, i] for i in range(len(mixing))]
        self.shares = [
            {j: mixing[i, j] for j in range(len(mixing)) if j != i and mixing[i, j] > 0}
            for i in range(len(mixing))
        ]
        self.sent, self.losses = 0, []
        self.steps_taken = [0.0] * len(start)

    def run(self):
        for round_index in range(self.stream.num_rounds):
            self.round(round_index)
        return self

    def round(self, round_index):
        self.losses.append(0.0)
        for i, node in enumerate(self.nodes):
            if self.stream.rows[round_index, i] >= 0:
                self.learn(i, node, round_index)
        for _ in range(self.mixes):
            self.exchange()
        for node in self.nodes:
            node.keep_mass()

    def learn(self, i, node, round_index):
        row = self.stream.rows[round_index, i]
        sample = Batch(self.stream.features[row : row + 1], self.stream.labels[row : row + 1])
        params = np.array(node.estimate())
        self.losses[-1] += self.model.loss(params, sample)
        gradient = [float(value) for value in self.model.gradient(params, sample)]
        rate, mass = self.rate(round_index), node.mass()
        bend = None
        if self.rule == "curvature":
            bend = float(self.model.curvature_bounds(sample.features)[0])
        if self.batches[i]:
            if bend is not None:
                gradient = times(min(rate, 0.5 * mass / bend) / (rate * min(1, mass)), gradient)
                bend = None
            gradient = self.batches[i].add(gradient, self.rng)
            if gradient is None:
                return
        for transform in self.chains[i]:
            gradient = transform.apply(gradient)
        length = {"paper": rate, "mass": rate * mass, "curvature": rate * min(1.0, mass)}[self.rule]
        if bend is not None:
            length = min(rate, 0.5 * mass / bend)
        step = times(length, gradient)
        self.steps_taken = plus(self.steps_taken, step)
        node.descend(step)

    def exchange(self):
        """Every node sends, then all is received."""
        messages = []
        for i, node in enumerate(self.nodes):
            self.sent += 1
            sent = node.send(self.kept[i], self.shares[i])
            messages += [(i, j, self.sent, message) for j, message in sent.items()]
        for i, j, number, message in messages:
            self.nodes[j].receive(i, number, message)
        for node in self.nodes:
            node.settle()

    @property
    def estimates(self):
        return np.array([node.estimate() for node in self.nodes])


class Shifted(ow.models.LogisticRegression):
    """Starts away from zero, so that what happens to the start is seen."""

    def init(self, num_features, rng):
        return np.linspace(-1.0, 1.5, self.dim(num_features))


def some_graph(num_nodes, seed):
    """A ring, a random graph, or one with weights and kept shares; chosen by the seed."""
    plain = ow.TrustGraph.random(num_nodes, max_receivers=min(3, num_nodes - 1), seed=seed)
    if seed % 3 == 0:
        return ow.TrustGraph.ring(num_nodes)
    if seed % 3 == 1:
        return plain
    rng = np.random.default_rng(seed)
    weighted = ow.TrustGraph.from_edges(
        [(int(a), int(b), float(rng.uniform(0.2, 3))) for a, b in zip(*plain.edges(), strict=True)],
        num_nodes,
    )
    return ow.TrustGraph.from_mixing(weighted.mixing(kept_share=rng.uniform(0, 0.8, num_nodes)))


def some_stream(num_nodes, num_rounds, seed, holes=0.0, num_features=3):
    """Samples whose size differs from node to node; some rounds of some nodes have none."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_rounds, num_nodes, num_features))
    features *= rng.uniform(0.3, 2.0, (1, num_nodes, 1))
    labels = rng.choice([-1.0, 1.0], (num_rounds, num_nodes))
    stream = ow.Stream.from_arrays(features, labels)
    rows = stream.rows.copy()
    rows[rng.random(rows.shape) < holes] = -1
    return ow.Stream(stream.features, stream.labels, rows)
