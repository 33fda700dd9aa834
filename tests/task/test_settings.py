"""Settings: files and flags, their privacy, and the parts of a run that they become."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plain import PLAIN_TOML

import oneway as ow
from oneway.errors import ConfigError, GraphError, TaskError
from oneway.methods import DEFAULT_STEP, METHODS, AutoRate
from oneway.tables import Number
from oneway.task.assembly import assemble
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.settings import Settings, read_settings
from oneway.task.task import Task

TASK_TEXT = 'label = "y"\nclasses = ["0", "1"]\nmodel = "logistic"\n[features]\nx = {}\n'


def test_a_file_is_read_over_the_defaults_and_overrides_win(tmp_path: Path):
    assert read_settings(None, {}) == Settings()
    file = tmp_path / "run.toml"
    file.write_text('learning_rate = 1\nmethod = "dol-symm"\nnodes = 8\nengine = "warp"\n')
    read = read_settings(file, {"nodes": 9, "engine": "fast"})
    assert read == Settings(learning_rate=1.0, method="dol-symm", nodes=9, engine="fast")
    with pytest.raises(ConfigError, match=r"engine in .*run\.toml is 'warp'"):
        read_settings(file, {"nodes": 3})


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("data", 3, "text"),
        ("nodes", 0, "at least 1"),
        ("nodes", 2.5, "whole number"),
        ("resample", True, "whole number"),
        ("seed", -1, "at least 0"),
        ("learning_rate", "fast", "a number"),
        ("intercept", 1, "true or false"),
        ("method", "dolsymm", "did you mean 'dol-symm'"),
        ("step", "cap", "did you mean 'capped'"),
        ("epsilon", 0.0, "from 0.001"),
        ("epsilon", float("nan"), "number"),
        ("delta", 1.0, "to 0.01"),
        ("clip", -1.0, ""),
        ("band", 0, "1"),
        ("records_per_group", 0, "1"),
        ("unit", "person", "group"),
    ],
)
def test_a_wrong_value_is_named_with_its_rule(name, value, rule):
    with pytest.raises(ConfigError) as caught:
        read_settings(None, {name: value})
    assert str(caught.value).startswith(f"{name} is ")
    assert rule in str(caught.value)


@pytest.mark.parametrize("name", ["algorithm", "cap_step", "function"])
def test_former_names_are_unknown(name):
    with pytest.raises(ConfigError, match=f"'{name}' is not a setting"):
        read_settings(None, {name: "ops"})


def test_settings_accept_exactly_the_registered_methods():
    for name in METHODS:
        assert read_settings(None, {"method": name}).method == name
    with pytest.raises(ConfigError, match="choose from"):
        read_settings(None, {"method": ""})


@pytest.mark.parametrize(
    ("learning", "culprit"),
    [
        ({"model": "softmax", "options": {"softmax": {"num_classes": 3}}}, "num_classes"),
        ({"model": "logistic", "options": {"logistic": {"l3": 1}}}, "'l3'"),
        ({"model": "logistic", "options": {"logistic": {"center": 1}}}, "'center'"),
        ({"options": {"curvature": {"stable": "x"}}}, "stable is 'x'"),
        ({"options": {"relay": {"learning_rate": 1.0}}}, "'learning_rate'"),
        ({"transforms": ("clip", "clp")}, "'clp'"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(learning, culprit):
    with pytest.raises(ConfigError, match=culprit):
        Settings(**{"model": "logistic"} | learning).model_for(2)


def test_options_of_a_model_that_the_label_does_not_choose_are_refused():
    """With the model `auto`: at once if no label chooses it, else when the labels are known."""
    with pytest.raises(ConfigError, match="'hinge'"):
        Settings(options={"hinge": {"l2": 1.0}})
    with pytest.raises(ConfigError, match="'ridge'"):
        assemble(Settings(data="synthetic", nodes=2, options={"ridge": {"l2": 1.0}}))


BAD_PRIVACY = {
    "epsilon": ("", "[privacy]\nepsilon = -1"),
    "delta": ("", "[privacy]\ndelta = 0"),
    "clip": ("", "[privacy]\nclip = 'much'"),
    "band": ("", "[privacy]\nband = 0"),
    "unit": ("", "[privacy]\nunit = 'person'"),
    'unit is "group" and group is': ("", "[privacy]\nunit = 'group'"),
    "group is 'who' and unit is": ("", "[privacy]\ngroup = 'who'"),
    "records_per_group": ("", "[privacy]\nrecords_per_group = 3"),
    "'epsilom'": ("", "[privacy]\nepsilom = 1"),
    "privacy .*is 'off'": ("privacy = 'off'\n", ""),
    "samples_per_push": ("samples_per_push = 0\n", ""),
    "Cannot overwrite": (PLAIN_TOML, "[privacy]\nepsilon = 1"),
}


@pytest.mark.parametrize(("culprit", "texts"), BAD_PRIVACY.items())
def test_bad_privacy_is_refused_in_tasks_and_settings(culprit, texts, tmp_path):
    text = texts[0] + TASK_TEXT + texts[1]
    with pytest.raises(TaskError, match=culprit):
        Task.parse(text)
    (tmp_path / "task.toml").write_text(text)
    with pytest.raises(ConfigError, match=culprit):
        read_settings(tmp_path / "task.toml", {})


def test_flags_change_the_privacy_of_a_file_key_by_key(tmp_path):
    path = tmp_path / "task.toml"
    path.write_text(TASK_TEXT + "[privacy]\nepsilon = 2\ndelta = 1e-6")
    assert read_settings(path, {}).privacy == Privacy(epsilon=2.0, delta=1e-6)
    assert read_settings(path, {"epsilon": 1.0}).privacy == Privacy(epsilon=1.0, delta=1e-6)
    assert read_settings(path, {"privacy": "none"}).privacy == NO_PRIVACY
    path.write_text(PLAIN_TOML + TASK_TEXT)
    assert read_settings(path, {}).privacy == NO_PRIVACY
    assert read_settings(path, {"epsilon": 1.0}).privacy == Privacy(epsilon=1.0)
    with pytest.raises(ConfigError, match='privacy is "none" and epsilon'):
        read_settings(None, {"privacy": "none", "epsilon": 1.0})


def test_no_privacy_means_no_batches_and_no_guarantee():
    task = Task.parse(PLAIN_TOML + TASK_TEXT)
    assert (task.privacy, task.samples_per_push) == (NO_PRIVACY, 1)
    assert task.build_method().batches is None
    assert task.privacy.guarantee is None


def test_delta_must_suit_the_number_of_samples():
    Privacy(delta=1e-5).check_samples(100_000)
    with pytest.raises(ConfigError, match=r"delta is 1e-05 and 100,001 samples .*: choose 1e-06"):
        Privacy(delta=1e-5).check_samples(100_001)
    NO_PRIVACY.check_samples(10**12)


def test_a_task_file_is_a_settings_file(tmp_path: Path):
    """Features, scaling, classes, model and method of the peers hold in the simulator too."""
    task = Task(
        "logistic", "y", (Number("b", 1.0, 2.0), Number("a")), ("yes", "no"),
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
    features = tuple(Number(name, 0.25, 2.0) for name in known.encoder.names)
    task = Task("logistic", "label", features, tuple(reversed(known.encoder.classes)))
    (tmp_path / "task.toml").write_text(task.to_toml())
    settings = read_settings(tmp_path / "task.toml", {"data": "synthetic", "nodes": 2})
    table = assemble(settings).table
    raw = known.features.astype(float) * known.encoder.scaling[1] + known.encoder.scaling[0]
    np.testing.assert_allclose(table.features, (raw - 0.25) / 2.0, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(table.labels, -known.labels)


def test_settings_become_the_parts_of_a_simulation():
    parts = assemble(
        Settings(data="synthetic", nodes=6, graph="complete", rounds=30, model="hinge", l2=0.5)
    )
    dim = parts.model.dim(parts.stream.dim)
    batches = Privacy().batches(16, dim)
    assert parts.method == ow.Relay(AutoRate(2.0, 2.0 / dim), step=DEFAULT_STEP, batches=batches)
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
    assert assemble(Settings(data="synthetic", nodes=3)).graph.num_nodes == 3
    with pytest.raises(GraphError, match="max_receivers is 10 for 3 nodes"):
        assemble(Settings(data="synthetic", nodes=3, max_receivers=10))
