"""Tasks: their TOML, their fingerprint, and how two of them differ."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import PLAIN

from oneway.errors import ConfigError, TaskError
from oneway.models import Hinge, LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.registry import Registry
from oneway.tables import Array, Boolean, Category, Feature, Number, Time
from oneway.tables.cells import is_missing
from oneway.task.differences import differences
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.task import Task

TEXT = """\
label = "Occupancy"
classes = ["0", "1"]
model = "logistic"
learning_rate = 0.3
l2 = 1e-4

[features]
Temperature = { center = 20.6, scale = 1.02 }
Light = { center = 119.5, scale = 194.8 }
CO2 = {}                     # as it is
"""
TASK = Task.parse(TEXT)


def test_a_task_reads_as_it_is_written(tmp_path):
    assert (TASK.model, TASK.classes) == ("logistic", ("0", "1"))
    assert (TASK.learning_rate, TASK.l2) == (0.3, 1e-4)
    assert TASK.features == (
        Number("Temperature", 20.6, 1.02),
        Number("Light", 119.5, 194.8),
        Number("CO2", 0.0, 1.0),
    )
    assert (TASK.step, TASK.schedule, TASK.intercept) == ("curvature", "constant", True)
    assert (TASK.privacy, TASK.samples_per_push) == (Privacy(), 16)
    (tmp_path / "task.toml").write_text(TEXT)
    assert Task.read(str(tmp_path / "task.toml")) == TASK


def test_features_may_be_a_list_of_columns_and_classes_may_be_numbers():
    task = Task.parse('model="hinge"\nlabel="y"\nclasses=[0, true]\nfeatures=["b", "a"]')
    assert task.features == (Number("b"), Number("a"))
    assert task.classes == ("0", "true")


def test_a_task_made_in_python_from_lists_is_hashable_and_checks_its_features_first():
    task = Task("hinge", "y", [Number("a")], ["0", "1"])
    assert hash(task.encoder) == hash(Task("hinge", "y", (Number("a"),), ("0", "1")).encoder)
    assert task.encoder.features == task.features == (Number("a"),)
    for features, culprit in (([], "features"), (["a"], "'a'"), ([Number("y")], "'y'")):
        with pytest.raises(TaskError, match=culprit):
            Task("hinge", "y", features, ["0", "1"])


finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=1e-300, allow_infinity=False)
columns = st.text(min_size=1, max_size=20)
classes = st.lists(
    st.text(min_size=1, max_size=10).filter(lambda text: text.strip() == text),
    min_size=2,
    max_size=5,
    unique_by=lambda text: text.casefold(),
).filter(lambda names: not any(character.isdecimal() for name in names for character in name))
promises = {
    "epsilon": st.sampled_from([0.5, 1.0, 8.0]),
    "delta": st.sampled_from([1e-6, 1e-5]),
    "clip": st.floats(1e-9, 1e6) | st.just("auto"),
    "band": st.sampled_from([1, 2, 32]),
}
privacies = (
    st.just(NO_PRIVACY)
    | st.builds(Privacy, **promises)
    | st.builds(
        Privacy,
        unit=st.just("group"),
        group=columns,
        records_per_group=st.integers(1, 100),
        **promises,
    )
)
_PARTS = [(), ("hour",), ("season",), ("weekday", "season"), ("hour", "weekday", "season")]


def features(name: str) -> st.SearchStrategy[Feature]:
    """A feature of any kind."""
    named, flag = st.just(name), st.booleans()
    values = classes.filter(lambda values: not any(map(is_missing, values)))
    return (
        st.builds(Number, named, finite, positive, missing_indicator=flag)
        | st.builds(Boolean, named, missing_indicator=flag)
        | st.builds(Time, named, st.sampled_from(_PARTS), missing_indicator=flag)
        | st.builds(Category, named, values, missing_indicator=flag)
        | st.builds(Array, named, st.just((1, 3, 2)), finite, positive)
    )


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    names = draw(st.lists(columns, min_size=2, max_size=6, unique=True))
    model = draw(st.sampled_from(["logistic", "ridge", "hinge", "softmax"]))
    labels = draw(classes.filter(lambda known: not {"true", "false"} & {*map(str.lower, known)}))
    return Task(
        model,
        names[0],
        tuple(draw(features(name)) for name in names[1:]),
        () if model == "ridge" else tuple(labels if model == "softmax" else labels[:2]),
        learning_rate=draw(positive.filter(lambda rate: rate <= 1e6)),
        schedule=draw(st.sampled_from(["constant", "inverse-sqrt"])),
        step=draw(st.sampled_from(["capped", "mass", "paper"])),
        l2=draw(st.floats(0.0, 1e6)),
        intercept=draw(st.booleans()),
        radius=draw(st.floats(1e-9, 1e4)),
        mass_cap=draw(st.floats(1.0, 100.0)),
        privacy=draw(privacies),
        samples_per_push=draw(st.integers(1, 10**6)),
    )


@given(tasks())
def test_a_written_task_reads_back_equal(task):
    text = task.to_toml()
    again = Task.parse(text)
    assert again == task
    assert again.fingerprint == task.fingerprint
    assert again.to_toml() == text
    assert Task.parse(text.replace("\n", "\r\n")) == task
    assert differences(task.fields(), json.loads(json.dumps(task.fields()))) == []


@given(tasks(), tasks())
def test_two_tasks_have_the_same_fingerprint_only_if_they_have_no_differences(one, other):
    same = differences(one.fields(), other.fields()) == []
    assert (one.fingerprint == other.fingerprint) == same == (one == other)


def test_every_setting_in_a_written_task_is_explained_and_privacy_is_always_there():
    settings, _, rest = TASK.to_toml().partition("\n[features]")
    for text in (settings, rest.partition("[privacy]")[2]):
        assert all("#" in line for line in text.splitlines() if line)
    assert tomllib.loads(TASK.to_toml())["privacy"]["epsilon"] == 8.0
    assert tomllib.loads(replace(TASK, **PLAIN).to_toml())["privacy"] == "none"


def test_kinds_of_features_are_written_without_defaults():
    text = f"""{TEXT}sex = {{ values = ["female", "male"] }}
pain = {{ values = [1, 2] }}
chol = {{ center = 246.0, scale = 51.0, missing_indicator = true }}
smoker = {{ kind = "boolean" }}
born = {{ kind = "time", parts = ["weekday", "season"] }}
"""
    task = Task.parse(text)
    assert task.dim == 3 + 3 + 3 + 2 + 1 + 4 + 1
    assert task.columns == ("Occupancy", *task.encoder.names)
    written = tomllib.loads(task.to_toml())["features"]
    assert written == tomllib.loads(text)["features"] | {"pain": {"values": ["1", "2"]}}


BAD_TASKS = {
    "a syntax error": ("a = 1\nmodel =", "line 2"),
    "a misspelt key": (TEXT.replace("learning", "lerning"), "did you mean 'learning_rate'"),
    "no model": (TEXT.replace("model", "#"), "model"),
    "empty features": ("model='ridge'\nlabel='y'\n[features]", "features"),
    "features that are no table": ("model='ridge'\nlabel='y'\nfeatures=3", "features is 3"),
    "a setting below the features": (f"{TEXT}\nradius = 5", r"radius belongs above \[features\]"),
    "a misspelt scale": (TEXT.replace("scale", "scael"), "did you mean 'scale'"),
    "a function of a cell": (TEXT.replace("CO2 = {}", "CO2 = {function='a:b'}"), "'function'"),
    "a former name": (f"algorithm = 'ops'\n{TEXT}", "'algorithm'"),
    "an unknown model": (TEXT.replace('"logistic"', '"logistics"'), "did you mean 'logistic'"),
    "a negative scale": (TEXT.replace("1.02", "-1"), "'Temperature': scale is -1"),
    "a rate of zero": (TEXT.replace("0.3", "0"), "learning_rate is 0"),
    "a rate that is true": (TEXT.replace("0.3", "true"), "learning_rate in task.toml is True"),
    "a huge number": (
        TEXT.replace("1e-4", "9" * 400),
        "l2 in task.toml is a number of very many digits",
    ),
    "an absurd number": (TEXT.replace("1e-4", "9" * 9999), "too long"),
    "too large a radius": (f"radius = 1e6\n{TEXT}", "radius 1e.06 times mass_cap 16"),
    "one class": (TEXT.replace('"0", ', ""), "1 are given"),
    "the same class twice": (TEXT.replace('"0"', '"1.0"'), "the class '1'"),
    "a class that is a list": (TEXT.replace('"0"', "[]"), "classes"),
    "classes for ridge": (TEXT.replace("logistic", "ridge"), "2 classes"),
    "a label among the features": (f"{TEXT}\nOccupancy = {{}}", "'Occupancy'"),
    "a feature twice": ("model='ridge'\nlabel='y'\nfeatures=['x', 'x']", "'x'"),
    "a label that is a number": (
        "model='ridge'\nlabel=3\nfeatures=['x']",
        "label in task.toml is 3",
    ),
}


ABSURD = {
    "radius": ("1e-300", "inf", "nan"),
    "mass_cap": ("1e5", "0.5"),
    "l2": ("1e300",),
    "samples_per_push": ("1_000_000_000_000",),
    "mixes": ("1_000_000_000",),
    "privacy.delta": ("0.999", "0.1", "0.0"),
    "privacy.clip": ("1e300", "1e-300"),
    "privacy.epsilon": ("1e300", "1e-300"),
    "privacy.records_per_group": ("1_000_000_000",),
}
"""Values that would promise nothing, drown the model in noise, or never send anything."""


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in ABSURD.items() for value in values]
)
def test_an_absurd_value_is_refused_by_name_and_rule(key, value):
    text = TEXT.replace("l2 = 1e-4\n", "") if key == "l2" else TEXT
    above = f"{key} = {value}\n"
    if key == "privacy.records_per_group":
        above += 'privacy.unit = "group"\nprivacy.group = "person"\n'
    with pytest.raises(TaskError, match=rf"{key.split('.')[-1]}.* is .*must be .*number"):
        Task.parse(above + text)


@pytest.mark.parametrize(("text", "culprit"), BAD_TASKS.values(), ids=BAD_TASKS.keys())
def test_a_bad_task_is_refused_with_its_file_and_culprit(text, culprit):
    with pytest.raises(TaskError, match=culprit) as caught:
        Task.parse(text)
    assert "task.toml" in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_task_file_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b'label = "\xe9"')
    for name in ("none.toml", ".", "latin.toml"):
        with pytest.raises(TaskError, match=str(tmp_path)):
            Task.read(tmp_path / name)


@pytest.mark.parametrize("key", ["model", "method", "step", "schedule"])
@pytest.mark.parametrize("name", ["os:system", "./evil.py"])
def test_a_task_names_only_what_is_installed_here(key, name):
    """It comes from others: no name in it is imported."""
    lines = [line for line in TEXT.splitlines() if not line.startswith(f"{key} ")]
    with pytest.raises(TaskError, match=key):
        Task.parse("\n".join([f'{key} = "{name}"', *lines]))


OTHERS = {
    "learning_rate": {"learning_rate": 0.1},
    "model": {"model": "hinge"},
    "method": {"method": "ops"},
    "mixes": {"mixes": 2},
    "transforms": {"transforms": ("clip",)},
    "options": {"options": {"curvature": {"stable": 0.4}}},
    "samples_per_push": {"samples_per_push": 1},
    "privacy": {"privacy": NO_PRIVACY},
    "epsilon": {"privacy": Privacy(epsilon=1.0)},
    "group": {"privacy": Privacy(unit="group", group="patient")},
    "classes": {"classes": ("1", "0")},
    "'Light'": {"features": (TASK.features[0], TASK.features[2])},
    "'x'": {"features": (*TASK.features, Number("x"))},
    "order": {"features": TASK.features[::-1]},
    "'center'": {"features": (TASK.features[0], Number("Light", 1.0, 194.8), TASK.features[2])},
    "'missing_indicator'": {
        "features": (*TASK.features[:2], Number("CO2", missing_indicator=True))
    },
    "'kind'": {"features": (*TASK.features[:2], Boolean("CO2"))},
}


@pytest.mark.parametrize("culprit", OTHERS)
def test_a_difference_is_named_and_changes_the_fingerprint(culprit):
    other = replace(TASK, **OTHERS[culprit])
    assert culprit in " ".join(differences(TASK.fields(), other.fields()))
    assert other.fingerprint != TASK.fingerprint


def test_differences_show_both_values_and_unknown_keys():
    other = TASK.fields() | {"intercept": 1, "colour": "red"}
    del other["l2"]
    assert differences(TASK.fields(), other) == [
        "l2 is 0.0001 here and missing there",
        "intercept is True here and 1 there",
        "'colour' is not known here and 'red' there",
    ]
    (found,) = differences(TASK.fields(), replace(TASK, privacy=NO_PRIVACY).fields())
    assert found.startswith("privacy is (epsilon = 8.0, ")


def test_a_zero_has_no_sign():
    zeros = [replace(TASK, l2=zero, features=(Number("x", center=zero),)) for zero in (0.0, -0.0)]
    assert zeros[0].fingerprint == zeros[1].fingerprint


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)
named_tables = st.lists(
    st.fixed_dictionaries({}, optional={"name": json_like, "center": json_like, "x": json_like})
)
hostile_tasks = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(TASK.fields(), json_like | named_tables)
)


@given(json_like | hostile_tasks)
def test_differences_from_a_hostile_task_are_short_and_printable(theirs):
    found = differences(TASK.fields(), theirs)
    assert 0 < len(found) <= 10
    assert all(len(sentence) < 300 and sentence.isprintable() for sentence in found)


def test_huge_and_deep_values_from_the_network_are_harmless():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    hostile: list[object] = [deep, {"features": deep}, {"classes": deep}, {"l2": 10**10_000}]
    hostile += [{"model": "x" * 10**6}, {str(key): deep for key in range(10_000)}]
    hostile += [{"features": [{"name": f"\x1b{index}" * 1000} for index in range(1000)]}]
    hostile += [{"features": [{"name": "Light", **{str(key): deep for key in range(10_000)}}]}]
    hostile += [TASK.fields() | {"privacy": {"\x1b" * 500: [[[]]]}}]
    for theirs in hostile:
        found = differences(TASK.fields(), theirs)
        assert 0 < len(found) <= 10
        assert all(len(sentence) < 300 and sentence.isprintable() for sentence in found)


def test_a_task_encodes_samples_in_its_order_and_labels_by_its_classes():
    vector = TASK.encoder.vector({"CO2": 700, "Light": 119.5, "Temperature": 21.62, "other": None})
    np.testing.assert_allclose(vector, [1.0, 0.0, 700.0], rtol=1e-12, atol=0)
    assert [TASK.encoder.label_value(raw) for raw in ("0", 1.0, "true")] == [-1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("model", "names", "kind", "dim"),
    [
        ("logistic", ("0", "1"), LogisticRegression, 4),
        ("hinge", ("0", "1"), Hinge, 4),
        ("ridge", (), RidgeRegression, 4),
        ("softmax", ("a", "b", "c"), SoftmaxRegression, 12),
    ],
)
def test_the_model_is_the_one_that_the_task_names(model, names, kind, dim):
    task = replace(TASK, model=model, classes=names, l2=0.5)
    built = task.build_model()
    assert type(built) is kind
    assert (built.l2, built.intercept) == (0.5, True)
    assert (task.dim, replace(task, intercept=False).dim) == (dim, dim * 3 // 4)


def test_a_learning_rate_is_constant_or_falls():
    assert TASK.build_method().rate(0) == TASK.build_method().rate(99) == 0.3
    falling = replace(TASK, schedule="inverse-sqrt").build_method()
    assert falling.rate(99) == pytest.approx(0.03, rel=1e-15)


def test_a_class_that_is_defined_again_registers_again():
    """As when a cell of a notebook runs twice; another class under that name is refused."""
    registry: Registry[type] = Registry("model")

    def cell() -> type:
        @registry.register
        class Mine:
            name = "mine"

        return Mine

    assert cell() is not cell()
    again = cell()
    assert registry["mine"] is again
    with pytest.raises(ConfigError, match="'mine'"):
        registry.register(Number, "mine")
