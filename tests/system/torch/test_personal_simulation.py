"""Personal predictions of PyTorch modules: a head on shared outputs, and a network alone."""

from __future__ import annotations

import nets
import numpy as np
import pytest
from builders import replace
from engine_cases import any_graph, stream_for

import oneway as ow
from oneway.models.torch import Torch
from oneway.simulator import driver

pytest.importorskip("torch", reason="the extra torch is not installed")


@pytest.mark.parametrize("largest", [100_000, 10])
def test_a_network_has_three_experts_or_two_if_it_is_large(largest, monkeypatch):
    monkeypatch.setattr(driver, "MOST_ALONE", largest)
    plain = stream_for(60, 4, num_features=4)
    labels = np.where(plain.features.sum(axis=1) > 0, 1.0, -1.0)
    stream, model = replace(plain, labels=labels), Torch(nets.network(), "logistic")
    bare, run = (
        ow.simulate(ow.Relay("auto"), model, stream, any_graph(4, 1), personal=it)
        for it in (False, True)
    )
    assert np.array_equal(bare.estimates, run.estimates)
    assert 0.0 < run.personal_loss < run.personal.shared_loss < np.log(2)
    if largest == 10:
        assert (run.alone_loss, run.verdict) == (None, "")
        assert (run.personal.weights[:, 1] == 0.0).all()
    else:
        assert np.isfinite(run.alone_loss)


def test_the_number_of_classes_follows_from_the_outputs():
    """Of a module that is given without `num_classes`."""
    plain = stream_for(20, 4, num_features=4)
    stream = replace(plain, labels=np.arange(len(plain.labels)) % 3.0)
    model = Torch(lambda: nets.network(outputs=3))
    run = ow.simulate(ow.Relay("auto"), model, stream, any_graph(4, 1), personal=True)
    assert (run.model.objective, run.model.num_classes) == ("cross-entropy", 3)
    assert np.isfinite(run.personal_loss)
