"""How fast the networks of many nodes learn: loop and vmap; and a whole round of it.

    python benchmarks/torch_nodes.py [--seconds 1]

Prints samples per second of losses and gradients by backend, each as a ratio to the loop measured
in the same run, and how long a simulated round takes compared with gradients and mixing alone. All
times are CPU times of one thread. What would not fit into half of the memory that is available is
skipped, and said so.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from torch import nn

import oneway as ow
from oneway.files.memory import available_memory
from oneway.methods import OnlinePushSum
from oneway.models import Torch
from oneway.models import torch as torch_models
from oneway.models.torch import LARGEST_BATCHED
from oneway.records import Batch
from oneway.simulator.exchange import Exchange
from oneway.simulator.measurements import Measurements
from oneway.simulator.reference_engine import ReferenceEngine

WIDTH, CLASSES = 64, 10
HIDDEN = {"2.4 k": (32,), "100 k": (256, 256, 64), "1 M": (1024, 896)}
NODES = (128, 1024)
COPIES = 7
"""Parameters, gradients, estimates and what is mixed, about."""
ROWS_OF_A_LOOP = 32
"""Samples that are timed one after the other: each takes as long as the others."""


def network(hidden: tuple[int, ...]) -> nn.Module:
    """A dense network for digits."""
    layers: list[nn.Module] = []
    before = WIDTH
    for width in hidden:
        layers += [nn.Linear(before, width), nn.ReLU()]
        before = width
    return nn.Sequential(*layers, nn.Linear(before, CLASSES))


def seconds_of(call: Callable[[], object], budget: float) -> float:
    """The median CPU time of a call after one to warm up; 3 calls, or about `budget` seconds.

    PyTorch has one thread, so that this is what a call takes where nobody else is at work.
    """
    call()
    times: list[float] = []
    while len(times) < 3 or (sum(times) < budget and len(times) < 200):
        began = time.thread_time()
        call()
        times.append(time.thread_time() - began)
    return median(times)


def model_of(size: str, backend: str) -> Torch:
    """The model of one size."""
    largest = {"loop": 0, "vmap": 10**12}.get(backend, LARGEST_BATCHED)
    torch_models.LARGEST_BATCHED = largest
    return Torch(lambda: network(HIDDEN[size]), "cross-entropy")


def samples(num_rows: int) -> Batch:
    """Random rows and classes."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((num_rows, WIDTH)).astype(np.float32)
    return Batch(rows, rng.integers(0, CLASSES, num_rows).astype(np.float32))


def rate(size: str, backend: str, num_nodes: int, budget: float) -> float:
    """Samples per second of losses and gradients."""
    model, rng = model_of(size, backend), np.random.default_rng(0)
    count = min(num_nodes, ROWS_OF_A_LOOP) if backend == "loop" else num_nodes
    batch = samples(count)
    stack = np.tile(model.init(WIDTH, rng), (count, 1))
    return count / seconds_of(lambda: model.learning_pass(stack, batch, rng), budget)


def round_ratio(size: str, num_nodes: int, budget: float) -> tuple[float, float, float]:
    """Seconds of gradients, of mixing, and of a whole round."""
    model, rng, method = model_of(size, "auto"), np.random.default_rng(0), OnlinePushSum(1e-3)
    rounds = 4
    batch = samples(num_nodes * rounds)
    stream = ow.Stream.from_arrays(
        batch.features.reshape(rounds, num_nodes, WIDTH), batch.labels.reshape(rounds, num_nodes)
    )
    mixing = ow.TrustGraph.random(num_nodes, max_receivers=10, seed=0).mixing()
    engine = ReferenceEngine(method, model, stream, Measurements.blank(rounds), 0)
    engine.advance(0, 1, mixing)
    stack, (_, first) = method.estimate(engine.held), stream.batch(0)
    of_gradients = seconds_of(lambda: model.learning_pass(stack, first, rng), budget)
    exchange, held = Exchange(method, mixing), engine.held
    of_mixing = seconds_of(lambda: exchange.apply(held), budget)
    turn = iter(range(10**9))
    whole = seconds_of(lambda: engine.advance(i := next(turn) % rounds, i + 1, mixing), budget)
    return of_gradients, of_mixing, whole


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="per measurement, about")
    given = parser.parse_args()
    torch.set_num_threads(1)
    backends = ["loop", "vmap"]
    print("parameters   nodes  backend   samples/s   times the loop")
    fitting = []
    for size in HIDDEN:
        dim = model_of(size, "auto").dim(WIDTH)
        for num_nodes in NODES:
            needed, there = COPIES * 4.0 * dim * num_nodes, available_memory()
            if needed > there / 2:
                print(f"{size:>10} {num_nodes:>7}  skipped: needs about {needed / 1e9:.0f} GB")
                continue
            fitting.append((size, num_nodes))
            slow = 0.0
            for backend in backends:
                found = rate(size, backend, num_nodes, given.seconds)
                slow = slow or found
                place = f"{size:>10} {num_nodes:>7}  {backend:<8}"
                print(f"{place} {found:>10,.0f}   {found / slow:>6.1f}", flush=True)
    print("\nparameters   nodes  gradients    mixing     round   times gradients + mixing")
    for size, num_nodes in fitting:
        gradients, mixing, whole = round_ratio(size, num_nodes, given.seconds)
        print(
            f"{size:>10} {num_nodes:>7}  {1e3 * gradients:>6.1f} ms {1e3 * mixing:>6.1f} ms "
            f"{1e3 * whole:>6.1f} ms   {whole / (gradients + mixing):>5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
