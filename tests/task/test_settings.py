from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError, GraphError
from oneway.methods import DEFAULT_STEP, METHODS, AutoRate
from oneway.task.assembly import assemble
from oneway.task.privacy import Privacy
from oneway.task.settings import Settings, read_settings
from oneway.task.task import Feature, Task


def test_without_a_file_and_flags_there_are_defaults():
    assert read_settings(None, {}) == Settings()


def test_a_file_is_read_and_overrides_win(tmp_path: Path):
    file = tmp_path / "run.toml"
    file.write_text('learning_rate = 1\nalgorithm = "dol-symm"\nnodes = 8\n')
    read = read_settings(file, {"nodes": 9})
    assert read == Settings(learning_rate=1.0, method="dol-symm", nodes=9)
    assert isinstance(read.learning_rate, float)


def test_an_override_may_correct_a_wrong_value_in_the_file(tmp_path: Path):
    file = tmp_path / "run.toml"
    file.write_text('engine = "warp"\n')
    assert read_settings(file, {"engine": "fast"}).engine == "fast"
    with pytest.raises(ConfigError, match=r"engine in .*run\.toml is 'warp'"):
        read_settings(file, {"nodes": 3})


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("data", 3, "text in quotes"),
        ("label", 3, "text in quotes"),
        ("nodes", 0, "a whole number of at least 1"),
        ("nodes", 2.5, "a whole number of at least 1"),
        ("resample", True, "a whole number of at least 1"),
        ("seed", -1, "a whole number of at least 0"),
        ("learning_rate", "fast", "a number"),
        ("cap_step", 1, "true or false"),
        ("cap_step", "yes", "true or false"),
        ("intercept", 1, "true or false"),
        ("method", "dolsymm", "did you mean 'dol-symm'"),
        ("step", "cap", "did you mean 'capped'"),
        ("schedule", ["constant"], "text in quotes"),
    ],
)
def test_a_wrong_value_is_named_with_its_rule(name, value, rule):
    with pytest.raises(ConfigError) as caught:
        read_settings(None, {name: value})
    assert str(caught.value).startswith(f"{name} is ")
    assert rule in str(caught.value)


def test_settings_know_exactly_the_registered_methods():
    for name in METHODS:
        assert read_settings(None, {"method": name}).method == name
    with pytest.raises(ConfigError, match="choose from") as caught:
        read_settings(None, {"method": ""})
    listed = str(caught.value).partition("choose from ")[2]
    assert set(listed.split(", ")) == set(METHODS)


@pytest.mark.parametrize(
    ("learning", "culprit"),
    [
        ({"model": "softmax", "options": {"softmax": {"num_classes": 3}}}, "num_classes"),
        ({"model": "logistic", "options": {"logistic": {"l3": 1}}}, "'l3'"),
        ({"options": {"curvature": {"stable": "x"}}}, "stable is 'x'"),
        ({"options": {"relay": {"learning_rate": 1.0}}}, "'learning_rate'"),
        ({"transforms": ("clip", "clp")}, "'clp'"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(learning, culprit):
    with pytest.raises(ConfigError, match=culprit):
        Settings(**{"model": "logistic"} | learning).model_for(2)


def test_former_names_work_and_are_told(tmp_path: Path):
    file = tmp_path / "run.toml"
    file.write_text('algorithm = "local"\n')
    told: list[str] = []
    read = read_settings(file, {"cap_step": True}, told.append)
    assert (read.method, read.step) == ("local", "capped")
    assert ["algorithm" in told[0], "run.toml" in told[0], "cap_step" in told[1]] == [True] * 3


def test_a_task_file_is_a_settings_file(tmp_path: Path):
    """Features, scaling, classes, model and method of the peers hold in the simulator too."""
    task = Task(
        "logistic", "y", (Feature("b", 1.0, 2.0), Feature("a")), ("yes", "no"),
        method="local", step="mass", transforms=("clip",), options={"clip": {"norm": 0.5}},
    )  # fmt: skip
    (tmp_path / "task.toml").write_text(task.to_toml())
    data = tmp_path / "mine.csv"
    data.write_text(
        "a;c;b;y\n" + "".join(f"{i};9;{2 * i};{['yes', 'no'][i % 2]}\n" for i in range(8))
    )
    settings = read_settings(tmp_path / "task.toml", {"data": str(data), "nodes": 2})
    parts = assemble(settings)
    assert parts.method == task.build_method()
    assert parts.model == task.build_model()
    expected = [task.encoder.vector({"a": i, "b": 2 * i}) for i in range(8)]
    np.testing.assert_array_equal(parts.table.features, np.array(expected, np.float32))
    np.testing.assert_array_equal(parts.table.labels, [-1, 1] * 4)


def test_a_task_of_a_known_data_set_gives_the_simulator_the_peers_numbers(tmp_path: Path):
    known = assemble(Settings(data="synthetic", nodes=2)).table
    features = tuple(Feature(name, 0.25, 2.0) for name in known.feature_names)
    task = Task("logistic", "y", features, tuple(map(str, reversed(known.label_values))))
    (tmp_path / "task.toml").write_text(task.to_toml())
    settings = read_settings(tmp_path / "task.toml", {"data": "synthetic", "nodes": 2})
    table = assemble(settings).table
    raw = known.features.astype(float) * known.scales + known.means
    np.testing.assert_allclose(table.features, (raw - 0.25) / 2.0, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(table.labels, -known.labels)
    assert table.label_values == task.classes


def test_settings_become_the_parts_of_a_simulation():
    parts = assemble(
        Settings(data="synthetic", nodes=6, graph="complete", rounds=30, model="hinge", l2=0.5)
    )
    dim = parts.model.dim(parts.stream.dim)
    batches = Privacy().batches(16, dim)
    rate = AutoRate(2.0, 2.0 / dim)
    assert parts.method == ow.Relay(rate, step=DEFAULT_STEP, batches=batches)
    assert parts.model == ow.models.Hinge(l2=0.5, start=parts.model.start)
    assert abs(parts.model.start) == 1.0
    assert (parts.stream.num_nodes, parts.stream.num_rounds) == (6, 30)
    assert parts.graph == ow.TrustGraph.complete(6)


def test_the_seed_is_that_of_data_dealing_and_graph():
    first, again, other = (assemble(Settings(data="synthetic", seed=seed)) for seed in (1, 1, 2))
    assert (first.stream.rows == again.stream.rows).all()
    assert (first.stream.features == again.stream.features).all()
    assert first.graph == again.graph
    assert not (first.stream.rows == other.stream.rows).all()
    assert first.graph != other.graph


def test_the_random_graph_of_few_nodes_takes_as_many_receivers_as_there_are():
    parts = assemble(Settings(data="synthetic", nodes=3))
    assert parts.graph.num_nodes == 3
    with pytest.raises(GraphError, match="max_receivers is 10 for 3 nodes"):
        assemble(Settings(data="synthetic", nodes=3, max_receivers=10))


def test_ridge_gets_numbers_to_predict_from_synthetic_data():
    labels = assemble(Settings(data="synthetic", model="ridge")).stream.labels
    assert len(set(labels.tolist())) > 100
    binary = assemble(Settings(data="synthetic", model="hinge")).stream.labels
    assert set(binary.tolist()) == {-1.0, 1.0}


def test_occupancy_is_dealt_as_settings_say(tmp_path: Path, monkeypatch):
    rows = [f'"{i}","2015-02-02 14:19:00",{20 + i},27,{i % 5},700,0.004,{i % 2}' for i in range(8)]
    header = '"date","Temperature","Humidity","Light","CO2","HumidityRatio","Occupancy"'
    (tmp_path / "occupancy").mkdir()
    for name in ("datatest.txt", "datatraining.txt", "datatest2.txt"):
        (tmp_path / "occupancy" / name).write_text("\n".join([header, *rows]) + "\n")
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    parts = assemble(Settings(data="occupancy", nodes=4, resample=40))
    assert (parts.stream.num_rounds, parts.stream.num_nodes, parts.stream.dim) == (10, 4, 5)
