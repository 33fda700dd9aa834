"""A data set: heights of sand dunes, made up, owned by three beaches."""

from __future__ import annotations

import numpy as np

import oneway as ow
from oneway.datasets import DATASETS, DataSet


def load(seed: int = 0) -> ow.Table:
    """Wind and moisture say how high a dune is."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((900, 3)) * [3.0, 0.1, 40.0] + [10.0, 0.5, 100.0]
    heights = 0.8 * features[:, 0] - 5.0 * features[:, 1] + 0.1 * rng.standard_normal(900)
    return ow.Table.from_arrays(
        features,
        heights,
        feature_names=("wind", "moisture", "distance"),
        name="dunes",
        columns={"beach": rng.choice(["north", "south", "west"], 900)},
        task="number",
        label_name="height",
        origin={"kind": "dunes", "label": "height"},
    )


DATASETS.register(
    DataSet(
        "dunes",
        about="how high is a dune?",
        rows=900,
        licence="CC0",
        load=load,
        label_kind="number",
        comes_with="it is made up",
    )
)
