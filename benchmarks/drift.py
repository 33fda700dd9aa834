"""What `forget` and `restart` are worth where the world changes, and what they cost where not.

Streams with a drift: labels whose meaning turns round in the middle (synthetic), Room Occupancy in
the order of its file, dealt row by row, and flights by destination in the order of the year; and
the same rows shuffled, without a drift. Relay with the chosen rate, in batches of 16, without noise
and with the default privacy. Means over three seeds, with standard errors.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table as Shown

import oneway as ow
from oneway.methods import Transform
from oneway.methods.transforms import Forget, Restart
from oneway.streams import load
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.settings import Settings

SEEDS = range(3)
NODES, ROUNDS = 20, 6000
CHAINS = {
    "auto": (),
    "forget": (Forget(),),
    "restart": (Restart(),),
    "both": (Forget(), Restart()),
}


def turned(seed: int, drift: bool) -> ow.Stream:
    """A linear rule whose labels turn round in the middle, if there is a drift."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(ROUNDS, NODES, 10)).astype(np.float32)
    scores = 2.0 * features @ rng.normal(size=10) / np.sqrt(10.0)
    labels = np.where(rng.random(scores.shape) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)
    if drift:
        labels[ROUNDS // 2 :] *= -1.0
    return ow.Stream.from_arrays(features, labels.astype(np.float32))


def in_order(table: ow.Table, seed: int, drift: bool) -> ow.Stream:
    """Rows dealt to nodes one after the other, in the order of the table or shuffled."""
    rounds = min(len(table) // NODES, ROUNDS)
    rows = np.arange(rounds * NODES)
    if not drift:
        np.random.default_rng(seed).shuffle(rows)
    return ow.Stream(table.features, table.labels, rows.reshape(rounds, NODES))


def streams() -> dict[str, object]:
    """By name: from (seed, drift) to a stream."""
    found: dict[str, object] = {"labels turn round": turned}
    for name in ("occupancy", "flights"):
        try:
            table = load(name)
        except ow.OnewayError as error:
            print(f"Left out: {error}")
            continue
        found[f"{name} in order"] = lambda seed, drift, table=table: in_order(table, seed, drift)
    return found


def loss(stream: ow.Stream, chain: tuple[Transform, ...], privacy: Privacy, seed: int) -> float:
    """The average loss of one run."""
    model = ow.models.LogisticRegression()
    method = replace(
        Settings(privacy=privacy).build_method(model.dim(stream.dim)), transforms=chain
    )
    graph = ow.TrustGraph.random(stream.num_nodes, 10, seed=seed)
    return ow.simulate(method, model, stream, graph, progress=False, seed=seed).average_loss


def main() -> None:
    """Print the table."""
    shown = Shown(title=f"average loss over {len(SEEDS)} seeds, relay, rate chosen")
    for name in ("stream", "drift", "noise"):
        shown.add_column(name)
    for name in CHAINS:
        shown.add_column(name, justify="right")
    for name, make in streams().items():
        for drift in (True, False):
            for said, privacy in (("none", NO_PRIVACY), ("epsilon 8", Privacy())):
                cells = []
                for chain in CHAINS.values():
                    found = [loss(make(seed, drift), chain, privacy, seed) for seed in SEEDS]
                    error = np.std(found, ddof=1) / np.sqrt(len(found))
                    cells.append(f"{np.mean(found):.4f} ± {error:.4f}")
                shown.add_row(name, "yes" if drift else "no", said, *cells)
    Console(width=120).print(shown)


if __name__ == "__main__":
    main()
