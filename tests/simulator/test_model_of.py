"""The model of a node of a run, to take home."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError, DataError, StoreError

FEATURES = np.random.default_rng(1).normal([50.0, -2.0], [10.0, 0.5], (600, 2))
SCORES = (FEATURES - [50.0, -2.0]) @ [0.1, -2.0]
METHOD = ow.Isolated(0.5)


def simulate(model, stream):
    return ow.simulate(METHOD, model, stream, engine="reference")


def table_of(labels, **more):
    return ow.Table.from_arrays(FEATURES, labels, feature_names=["age", "dose"], **more)


def test_it_predicts_raw_rows_and_tells_its_coefficients():
    table = table_of(SCORES > 0.0)
    run = simulate(ow.models.LogisticRegression(), table.deal(num_nodes=3))
    for node in range(3):
        taken = run.model_of(node)
        assert np.array_equal(taken.params, run.estimates[node])
        rows = [dict(zip(("age", "dose"), row, strict=True)) for row in FEATURES.tolist()]
        right = np.equal(taken.predict_many(rows), SCORES > 0.0)
        assert right.mean() > 0.95
        assert isinstance(taken.predict_one(rows[0]), bool)
        found = taken.coefficients
        assert found["age"] > 0 > found["dose"]
        assert taken.origin["samples"] == 200
        assert taken.origin["node"] == node


def test_nodes_have_names_if_the_stream_gives_them_some():
    owners = np.where(np.arange(600) % 3, "clinic", "surgery")
    stream = table_of(SCORES > 0.0, columns={"owner": owners}).deal_by("owner")
    run = simulate(ow.models.LogisticRegression(), stream)
    assert np.array_equal(run.model_of("surgery").params, run.estimates[1])
    assert run.model_of("surgery").origin["node"] == "surgery"
    with pytest.raises(ConfigError, match=r"'surgry'.*did you mean 'surgery'"):
        run.model_of("surgry")
    for wrong in (2, -1, True, 0.5):
        with pytest.raises(ConfigError, match="from 0 to 1"):
            run.model_of(wrong)


KINDS = np.array(["low", "mid", "high"])[np.digitize(SCORES, [-0.5, 0.5])]


@pytest.mark.parametrize(
    ("labels", "task", "model"),
    [
        (SCORES > 0.0, "binary", ow.models.LogisticRegression(l2=0.5, start=0.25)),
        (SCORES, "number", ow.models.RidgeRegression(center=0.1, scale=2.0)),
        (KINDS, "classes", ow.models.SoftmaxRegression(3)),
    ],
)
def test_a_stored_run_knows_the_models_of_its_nodes(labels, task, model, tmp_path):
    owners = np.where(np.arange(600) % 3, "clinic", "surgery")
    stream = table_of(labels, task=task, columns={"owner": owners}).deal_by("owner")
    run = simulate(model, stream)
    run.save(tmp_path / "run")
    loaded = ow.simulator.Run.load(tmp_path / "run")
    loaded.save(tmp_path / "again")
    for stored in (loaded, ow.simulator.Run.load(tmp_path / "again")):
        for node in ("surgery", 0):
            taken, found = run.model_of(node), stored.model_of(node)
            assert found.encoder == replace(taken.encoder, model=model.name)
            assert found.model == model
            assert (found.coefficients, found.origin) == (taken.coefficients, taken.origin)
        with pytest.raises(ConfigError, match=r"'surgry'.*did you mean 'surgery'"):
            stored.model_of("surgry")


class Homemade(ow.models.LogisticRegression):
    """Registered nowhere, under the name that it inherits."""


def test_a_model_of_somebodys_own_is_not_stored_as_what_it_was_made_from(tmp_path):
    run = simulate(Homemade(), table_of(SCORES > 0.0).deal(num_nodes=2))
    folder = run.save(tmp_path / "run")
    with pytest.raises(StoreError, match=r"Run\.load\(path, model="):
        ow.simulator.Run.load(folder).model_of(0)


NETS = """
from torch import nn

def network() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
"""


def test_a_torch_model_of_probabilities_is_stored_and_runs_in_peers(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="the extra torch is not installed")
    (tmp_path / "kept_nets.py").write_text(NETS)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = ow.models.Torch("kept_nets:network", loss="logistic")
    stream = table_of(SCORES > 0.0).deal(num_nodes=3).head(20)
    graph = ow.TrustGraph.random(3, 1, seed=1)
    method = ow.OnlinePushSum(0.1)
    rounds = ow.simulate(method, model, stream, graph)
    peers = ow.virtual_lab(method, model, stream, graph)
    assert peers.record.config["exact_books"] is True
    rows = [dict(zip(("age", "dose"), row, strict=True)) for row in FEATURES[:9].tolist()]
    for name, run in {"rounds": rounds, "peers": peers}.items():
        taken = run.model_of(1)
        found = ow.simulator.Run.load(run.save(tmp_path / name)).model_of(
            1, allow=["kept_nets:network"]
        )
        assert found.model.objective == "logistic"
        assert np.array_equal(found.params, taken.params)
        assert found.predict_many(rows) == taken.predict_many(rows)


def test_a_node_that_left_has_no_model_and_says_so(tmp_path):
    stream = table_of(SCORES > 0.0).deal(num_nodes=6).head(20)
    graph = ow.TrustGraph.random(6, 2, seed=1)
    run = ow.virtual_lab(
        ow.OnlinePushSum(0.1), ow.models.LogisticRegression(), stream, graph,
        conditions=ow.Conditions(leaving=0.5),
    )  # fmt: skip
    held = run.masses > 0
    assert 0 < held.sum() < 6
    assert np.array_equal(np.isfinite(run.estimates).all(axis=1), held)
    frame = run.to_frame(of="nodes")
    assert np.array_equal(np.isfinite(frame["distance_from_mean"].to_numpy()), held)
    loaded = ow.simulator.Run.load(run.save(tmp_path / "run"))
    for each in (run, loaded):
        with pytest.raises(ConfigError, match=f"node {held.argmin()} holds no mass"):
            each.model_of(int(held.argmin()))
        assert np.isfinite(each.model_of(int(held.argmax())).params).all()


def test_a_stored_run_whose_description_was_changed_is_refused(tmp_path):
    stream = table_of(SCORES > 0.0).deal(num_nodes=2)
    folder = simulate(ow.models.LogisticRegression(), stream).save(tmp_path / "run")
    file = folder / "model.json"
    file.write_text(file.read_text().replace('"scale": ', '"scale": -'))
    with pytest.raises(DataError, match=r"age.*scale"):
        ow.simulator.Run.load(folder).model_of(0)
    file.write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        ow.simulator.Run.load(folder)
