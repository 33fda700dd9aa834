from __future__ import annotations

from pathlib import Path

import pytest

import oneway as ow
from oneway.errors import ConfigError, GraphError
from oneway.methods import BY_NAME
from oneway.task.assembly import assemble
from oneway.task.settings import Settings, read_settings


def test_without_a_file_and_flags_there_are_defaults():
    assert read_settings(None, {}) == Settings()


def test_a_file_is_read_and_overrides_win(tmp_path: Path):
    file = tmp_path / "run.toml"
    file.write_text('learning_rate = 1\nalgorithm = "dol-symm"\nnodes = 8\n')
    read = read_settings(file, {"nodes": 9})
    assert read == Settings(learning_rate=1.0, algorithm="dol-symm", nodes=9)
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
        ("algorithm", "dolsymm", "did you mean 'dol-symm'"),
        ("schedule", ["constant"], "choose from constant, inverse-sqrt"),
    ],
)
def test_a_wrong_value_is_named_with_its_rule(name, value, rule):
    with pytest.raises(ConfigError) as caught:
        read_settings(None, {name: value})
    assert str(caught.value).startswith(f"{name} is {value!r}; ")
    assert rule in str(caught.value)


def test_settings_know_exactly_the_five_methods():
    for name in BY_NAME:
        assert read_settings(None, {"algorithm": name}).algorithm == name
    with pytest.raises(ConfigError, match="choose from") as caught:
        read_settings(None, {"algorithm": ""})
    listed = str(caught.value).partition("choose from ")[2]
    assert set(listed.split(", ")) == set(BY_NAME)


def test_settings_become_the_parts_of_a_simulation():
    parts = assemble(
        Settings(data="synthetic", nodes=6, graph="complete", rounds=30, model="hinge", l2=0.5)
    )
    assert parts.algorithm == ow.OnlinePushSum(0.1)
    assert parts.model == ow.models.Hinge(l2=0.5)
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
