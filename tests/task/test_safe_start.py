"""Defaults are never much worse than the base rate; `studies/safe_start.py` has all."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import datasets as ships

import oneway as ow
from oneway.metrics.baselines import base_rate_sums
from oneway.task.assembly import assemble
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.settings import Settings

KINDS = {
    "iris": "softmax",
    "wine": "softmax",
    "breast_cancer": "logistic",
    "diabetes": "ridge",
    "digits": "softmax",
}


def table_of(name: str) -> ow.Table:
    features, labels = getattr(ships, f"load_{name}")(return_X_y=True)
    kind = ow.models.MODELS[KINDS[name]].labels
    return ow.Table.from_arrays(features, labels, task=kind, name=name)


def losses(table: ow.Table, **settings: object) -> tuple[float, float]:
    """The average loss, and that of the base rate or mean of all samples before, pooled."""
    nodes = 4 if len(table) < 1000 else 10
    parts = assemble(Settings(nodes=nodes, rounds=120, **settings), table)
    run = ow.simulate(parts.method, parts.model, parts.stream, parts.graph, progress=False)
    model, labels = parts.model, table.labels
    if isinstance(model, ow.models.RidgeRegression):  # a baseline that knows the center, too
        labels, model = model.targets(labels), ow.models.RidgeRegression()
    rows = parts.stream.rows.reshape(-1, 1)
    sums = base_rate_sums(model, len(table.encoder.classes), labels, rows)
    return run.average_loss, float(sums.sum() / rows.size)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("privacy", [NO_PRIVACY, Privacy()], ids=["none", "epsilon 8"])
def test_defaults_are_at_most_five_per_cent_worse_than_the_base_rate(name, privacy):
    loss, baseline = losses(table_of(name), model=KINDS[name], privacy=privacy)
    assert loss <= 1.05 * baseline


def test_where_there_is_nothing_to_learn_nothing_is_lost():
    """Labels at random, nine in ten alike, a few samples each: the base rate is the truth."""
    rng = np.random.default_rng(5)
    table = ow.Table.from_arrays(rng.normal(size=(400, 10)), rng.random(400) < 0.9)
    for privacy, most in ((NO_PRIVACY, 1.05), (Privacy(), 1.2)):
        loss, baseline = losses(table, privacy=privacy)
        assert loss <= most * baseline


def test_a_fixed_rate_breaks_the_promise():
    """Guards against the tests above passing vacuously: with noise, a fixed rate is worse."""
    loss, baseline = losses(table_of("digits"), model="softmax", learning_rate=0.1)
    assert loss > 1.05 * baseline
