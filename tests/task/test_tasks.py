from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import PLAIN

from oneway.errors import DataError, TaskError
from oneway.models import Hinge, LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.tables.cells import is_gap
from oneway.task.differences import differences
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.task import Feature, Task

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
OTHER_PRIVACIES = [
    Privacy(epsilon=1.0),
    Privacy(delta=1e-6),
    Privacy(clip=2.0),
    Privacy(band=1),
    Privacy(unit="group", group="patient"),
    Privacy(unit="group", group="patient", records_per_group=2),
]
OTHER_FEATURES = [
    Feature("CO2", gaps=True),
    Feature("CO2", kind="boolean"),
    Feature("CO2", kind="time"),
    Feature("CO2", values=("1",)),
    Feature("CO2", values=("1", "2")),
    Feature("CO2", values=("2", "1")),
]
SAMPLE = {"Temperature": 21.62, "Light": 119.5, "CO2": 700}

# --- the file ---


def test_a_task_reads_as_it_is_written():
    assert TASK.model == "logistic"
    assert TASK.classes == ("0", "1")
    assert TASK.learning_rate == 0.3
    assert TASK.l2 == 1e-4
    assert TASK.features == (
        Feature("Temperature", 20.6, 1.02),
        Feature("Light", 119.5, 194.8),
        Feature("CO2", 0.0, 1.0),
    )
    assert (TASK.step, TASK.schedule, TASK.intercept) == ("curvature", "constant", True)
    assert (TASK.radius, TASK.mass_cap) == (1000.0, 16.0)
    assert (TASK.privacy, TASK.samples_per_push) == (Privacy(), 16)
    assert (TASK.privacy.epsilon, TASK.privacy.delta) == (8.0, 1e-5)


def test_features_may_be_a_list_of_columns_and_classes_may_be_numbers():
    task = Task.parse('model="hinge"\nlabel="y"\nclasses=[0, true]\nfeatures=["b", "a"]')
    assert task.features == (Feature("b"), Feature("a"))
    assert task.classes == ("0", "true")


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
    "clip": st.floats(1e-9, 1e9) | st.just("auto"),
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


def features(name: str) -> st.SearchStrategy[Feature]:
    """A feature of any kind."""
    named = st.just(name)
    flag = st.booleans()
    return (
        st.builds(Feature, named, finite, positive)
        | st.builds(Feature, named, finite, positive, gaps=flag)
        | st.builds(Feature, named, kind=st.sampled_from(["boolean", "time"]), gaps=flag)
        | st.builds(
            Feature,
            named,
            values=classes.filter(lambda values: not any(map(is_gap, values))),
            gaps=flag,
        )
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
        learning_rate=draw(positive),
        schedule=draw(st.sampled_from(["constant", "inverse-sqrt"])),
        step=draw(st.sampled_from(["capped", "mass", "paper"])),
        l2=draw(st.floats(0.0, allow_infinity=False)),
        intercept=draw(st.booleans()),
        radius=draw(st.floats(1e-9, 1e4)),
        mass_cap=draw(st.floats(1.0, 100.0)),
        privacy=draw(privacies),
        samples_per_push=draw(st.integers(1, 2**31)),
    )


@given(tasks())
def test_a_written_task_reads_back_equal(task):
    text = task.to_toml()
    again = Task.parse(text)
    assert again == task
    assert again.fingerprint == task.fingerprint
    assert again.to_toml() == text
    assert Task.parse(text.replace("\n", "\r\n")) == task


@given(tasks())
def test_the_fields_of_a_task_survive_json(task):
    assert differences(task.fields(), json.loads(json.dumps(task.fields()))) == []


@given(tasks(), tasks())
def test_two_tasks_have_the_same_fingerprint_only_if_they_have_no_differences(one, other):
    same = differences(one.fields(), other.fields()) == []
    assert (one.fingerprint == other.fingerprint) == same == (one == other)


def test_every_setting_in_a_written_task_is_explained():
    settings, _, rest = TASK.to_toml().partition("\n[features]")
    privacy = rest.partition("[privacy]")[2]
    for text, count in ((settings, 13), (privacy, 5)):
        lines = text.splitlines()
        assert len([line for line in lines if "=" in line and line[0] != "#"]) == count
        assert all("#" in line for line in lines if line)
    assert 'privacy = "none"' in rest.partition("[privacy]")[0], "how to have none is said"


def test_a_written_task_says_its_privacy_also_if_it_has_none():
    assert tomllib.loads(TASK.to_toml())["privacy"] == {
        "epsilon": 8.0, "delta": 1e-5, "clip": "auto", "unit": "sample", "band": 32,
    }  # fmt: skip
    assert tomllib.loads(TASK.to_toml())["samples_per_push"] == 16
    bare = tomllib.loads(replace(TASK, **PLAIN).to_toml())
    assert (bare["privacy"], bare["samples_per_push"]) == ("none", 1)
    group = Privacy(unit="group", group="patient", records_per_group=4)
    told = tomllib.loads(replace(TASK, privacy=group).to_toml())["privacy"]
    assert (told["group"], told["records_per_group"]) == ("patient", 4)


def test_nothing_in_a_file_is_read_as_something_else(tmp_path):
    path = tmp_path / "task.toml"
    path.write_text(TEXT)
    assert Task.read(path) == TASK
    assert tomllib.loads(TEXT)["l2"] == TASK.l2


BAD_TASKS = {
    "a syntax error": ("model = = 1", r"not valid TOML: .*line 1"),
    "an error at the end": ("a = 1\nmodel =", r"not valid TOML: .*line 2"),
    "a misspelt key": (
        TEXT.replace("learning", "lerning"),
        "task.toml has no key 'lerning_rate', did you mean 'learning_rate'",
    ),
    "a foreign key": (f"colour = 1\n{TEXT}", "has no key 'colour'"),
    "no model": (TEXT.replace("model", "#"), "task.toml has no model; add it"),
    "no label": (TEXT.replace("label", "#"), "task.toml has no label; add it"),
    "no features": ("model='ridge'\nlabel='y'", "has no features; add it"),
    "empty features": ("model='ridge'\nlabel='y'\n[features]", "list at least one"),
    "features that are no table": (
        "model='ridge'\nlabel='y'\nfeatures=3",
        r"features is 3; it must be a table",
    ),
    "a setting below the features": (
        f"{TEXT}\nradius = 5",
        r"feature 'radius' is 5; .*the setting radius belongs above \[features\]",
    ),
    "a misspelt scale": (
        TEXT.replace("scale", "scael"),
        "feature 'Temperature' has no key 'scael', did you mean 'scale'",
    ),
    "an unknown model": (
        TEXT.replace('"logistic"', '"logistics"'),
        "model is 'logistics'.*did you mean 'logistic'",
    ),
    "a model that is no text": (TEXT.replace('"logistic"', "3"), "model is 3"),
    "an unknown step": (f"step = 'big'\n{TEXT}", "step is 'big'.*capped, mass"),
    "a negative scale": (TEXT.replace("1.02", "-1"), "'Temperature': scale is -1; .* above 0"),
    "a scale of zero": (TEXT.replace("1.02", "0"), "scale is 0; it must be a finite number above"),
    "an infinite center": (TEXT.replace("20.6", "inf"), "center is inf; it must be a finite"),
    "a center as text": (TEXT.replace("20.6", "'x'"), "center is 'x'; it must be a finite"),
    "a rate of zero": (TEXT.replace("0.3", "0"), "learning_rate is 0; it must be a number above 0"),
    "a rate that is true": (TEXT.replace("0.3", "true"), "learning_rate is True; it must be"),
    "a negative l2": (TEXT.replace("1e-4", "-1"), "l2 is -1; it must be a number of at least 0"),
    "a huge number": (TEXT.replace("1e-4", "9" * 400), "l2 is a number of very many digits"),
    "an absurd number": (TEXT.replace("1e-4", "9" * 9999), "a number is too long"),
    "an intercept as text": (f"intercept = 'yes'\n{TEXT}", "intercept is 'yes'; it must be true"),
    "a small mass cap": (f"mass_cap = 0.5\n{TEXT}", "mass_cap is 0.5; .* at least 1"),
    "too large a radius": (f"radius = 1e6\n{TEXT}", "radius 1e.06 times mass_cap 16 is more than"),
    "one class": (TEXT.replace('"0", ', ""), "tells two classes apart, but 1 are given"),
    "three classes": (TEXT.replace('"0"', '"2", "0"'), "but 3 are given; .* softmax for more"),
    "the same class twice": (TEXT.replace('"0"', '"1.0"'), "the class '1' is listed twice"),
    "an empty class": (TEXT.replace('"0"', '""'), "a class is ''; it must be text"),
    "a class that is a list": (TEXT.replace('"0"', "[]"), "classes is a list of 2"),
    "classes that are no list": (TEXT.replace('["0", "1"]', '"01"'), "classes is '01'; .* a list"),
    "classes for ridge": (TEXT.replace("logistic", "ridge"), "ridge predicts a number, but 2 cl"),
    "no classes for softmax": (
        "model='softmax'\nlabel='y'\nfeatures=['x']",
        "softmax tells classes apart, but 0 are given",
    ),
    "a label among the features": (
        f"{TEXT}\nOccupancy = {{}}",
        "'Occupancy' is both the label and a feature",
    ),
    "a feature twice": ("model='ridge'\nlabel='y'\nfeatures=['x', 'x']", "'x' is listed twice"),
    "a feature without a name": (
        "model='ridge'\nlabel='y'\nfeatures=['']",
        "a feature is named ''",
    ),
    "a label that is a number": ("model='ridge'\nlabel=3\nfeatures=['x']", "label is 3"),
}


@pytest.mark.parametrize(("text", "message"), BAD_TASKS.values(), ids=BAD_TASKS.keys())
def test_a_bad_task_gets_a_sentence_that_names_the_file(text, message):
    with pytest.raises(TaskError, match=message) as caught:
        Task.parse(text)
    assert str(caught.value).startswith("task.toml")
    assert str(caught.value).isprintable()


def test_a_task_file_that_cannot_be_read_gets_a_sentence(tmp_path):
    with pytest.raises(TaskError, match=r"there is no .*task.toml; get the task.toml that"):
        Task.read(tmp_path / "task.toml")
    with pytest.raises(TaskError, match=r"cannot read .*: Is a directory"):
        Task.read(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'label = "\xe9"')
    with pytest.raises(TaskError, match=r"is not UTF-8 text \(byte 9\)"):
        Task.read(tmp_path / "latin.toml")


def test_kinds_of_features_are_said_in_few_words():
    told = (
        TEXT
        + """sex = { values = ["female", "male"] }
pain = { values = [1, 2] }
chol = { center = 246.0, scale = 51.0, gaps = true }
smoker = { kind = "boolean" }
visit = { kind = "time", gaps = true }
"""
    )
    task = Task.parse(told)
    assert task.features[3:] == (
        Feature("sex", kind="category", values=("female", "male")),
        Feature("pain", kind="category", values=("1", "2")),
        Feature("chol", 246.0, 51.0, gaps=True),
        Feature("smoker", kind="boolean"),
        Feature("visit", kind="time", gaps=True),
    )
    assert task.dim == 3 + 3 + 3 + 2 + 1 + 7 + 1
    assert task.columns == ("Occupancy", *task.encoder.names)
    written = tomllib.loads(task.to_toml())["features"]
    assert written == tomllib.loads(told)["features"] | {"pain": {"values": ["1", "2"]}}


# --- the fingerprint, and how tasks differ ---


def test_the_fingerprint_is_fixed_for_ever():
    """Peers of different versions must agree on it; what is new tells only those who say it.

    Since there is privacy, a task without a word about it is another one: it has noise and batches;
    and one without a word about its method is learned by Relay.
    What it was before can still be said, and goes on being the same.
    """
    before = replace(TASK, step="capped", **PLAIN)
    assert before.fingerprint.hex() == "7a5f281cc4d1bb9bc932d33a60059a27"
    noised = replace(TASK, step="capped", method="ops")
    assert noised.fingerprint.hex() == "d1f0f8ca9ca3308e775a33328a8caea4"
    assert replace(TASK, step="capped").fingerprint.hex() == "5336db12033bc9c80c5a4db37a83e39f"
    said = [
        replace(TASK, privacy=NO_PRIVACY),
        replace(TASK, samples_per_push=1),
        replace(TASK, samples_per_push=17),
        *(replace(TASK, privacy=privacy) for privacy in OTHER_PRIVACIES),
        replace(TASK, method="local"),
        replace(TASK, method="ops"),
        replace(TASK, mixes=2),
        replace(TASK, transforms=("clip",)),
        replace(TASK, options={"curvature": {"stable": 0.4}}),
        *(replace(TASK, features=(*TASK.features[:2], feature)) for feature in OTHER_FEATURES),
    ]
    assert len({task.fingerprint for task in [TASK, *said]}) == 1 + len(said)


def test_a_zero_has_no_sign():
    negative = replace(TASK, l2=-0.0, features=(Feature("x", center=-0.0),))
    positive_zero = replace(TASK, l2=0.0, features=(Feature("x", center=0.0),))
    assert negative.fingerprint == positive_zero.fingerprint


@pytest.mark.parametrize(
    ("other", "sentences"),
    [
        ({"learning_rate": 0.1}, ["learning_rate is 0.3 here and 0.1 there"]),
        ({"model": "hinge"}, ["model is 'logistic' here and 'hinge' there"]),
        ({"intercept": False}, ["intercept is True here and False there"]),
        ({"samples_per_push": 1}, ["samples_per_push is 16 here and 1 there"]),
        ({"privacy": NO_PRIVACY}, ["there"]),
        ({"privacy": Privacy(epsilon=1.0)}, ["there"]),
        ({"classes": ("1", "0")}, ["classes are ['0', '1'] here and ['1', '0'] there"]),
        ({"features": TASK.features[:1]}, ["'Light' is missing there", "'CO2' is missing there"]),
        ({"features": (*TASK.features, Feature("x"))}, ["feature 'x' is missing here"]),
        ({"features": TASK.features[::-1]}, ["features are in another order"]),
        (
            {"features": (TASK.features[0], Feature("Light", 1.0, 194.8), TASK.features[2])},
            ["feature 'Light': 'center' is 119.5 here and 1.0 there"],
        ),
    ],
)
def test_a_difference_is_said_in_a_sentence_and_seen_in_the_fingerprint(other, sentences):
    theirs = replace(TASK, **other)
    found = differences(TASK.fields(), theirs.fields())
    assert len(found) == len(sentences)
    for sentence, ending in zip(found, sentences, strict=True):
        assert sentence.endswith(ending)
    assert theirs.fingerprint != TASK.fingerprint


def test_true_is_not_one():
    theirs = TASK.fields() | {"intercept": 1}
    assert differences(TASK.fields(), theirs) == ["intercept is True here and 1 there"]


def test_a_task_from_another_version_is_compared_as_far_as_it_goes():
    theirs = TASK.fields() | {"colour": "red"}
    del theirs["l2"]
    assert differences(TASK.fields(), theirs) == [
        "l2 is 0.0001 here and missing there",
        "'colour' is not known here and 'red' there",
    ]


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)
hostile_tasks = st.fixed_dictionaries(
    {},
    optional={
        name: json_like
        | st.lists(
            st.fixed_dictionaries(
                {}, optional={"name": json_like, "center": json_like, "x": json_like}
            )
        )
        for name in TASK.fields()
    },
)


@given(json_like | hostile_tasks)
def test_whatever_comes_from_the_network_the_answer_is_short_and_printable(theirs):
    found = differences(TASK.fields(), theirs)
    assert found
    assert len(found) <= 10
    assert all(len(sentence) < 300 and sentence.isprintable() for sentence in found)


def test_huge_and_deep_values_from_the_network_are_harmless():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    hostile: list[object] = [deep, {"features": deep}, {"classes": deep}, {"l2": 10**10_000}]
    hostile += [{"model": "x" * 10**6}, {str(key): deep for key in range(10_000)}]
    hostile += [{"features": [{"name": f"\x1b{index}" * 1000} for index in range(1000)]}]
    hostile += [{"features": [{"name": "Light", **{str(key): deep for key in range(10_000)}}]}]
    for theirs in hostile:
        found = differences(TASK.fields(), theirs)
        assert 0 < len(found) <= 10
        assert all(len(sentence) < 300 and sentence.isprintable() for sentence in found)


# --- samples ---


def test_features_are_scaled_and_in_the_order_of_the_task():
    vector = TASK.encoder.vector({"CO2": 700, "Light": 119.5, "Temperature": 21.62, "other": None})
    np.testing.assert_allclose(vector, [1.0, 0.0, 700.0], rtol=1e-12, atol=0)
    assert vector.dtype == np.float64


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("21.5", 21.5),
        (" 1e3 ", 1000.0),
        (7, 7.0),
        (True, 1.0),
        ("False", 0.0),
        (np.int64(3), 3.0),
        (np.float32(0.5), 0.5),
        (np.bool_(True), 1.0),
    ],
)
def test_numbers_come_in_many_forms(raw, value):
    assert TASK.encoder.vector(SAMPLE | {"CO2": raw})[2] == value


@pytest.mark.parametrize("raw", ["warm", "1_000", [], {}, b"1", math.inf, "-inf", 10**400, 1j])
def test_what_is_not_a_finite_number_is_named(raw):
    with pytest.raises(DataError, match=r"feature 'CO2' is .*; it must be a finite number"):
        TASK.encoder.vector(SAMPLE | {"CO2": raw})


@pytest.mark.parametrize("raw", ["", None, math.nan, "nan", " NA ", "?"])
def test_a_gap_is_the_centre(raw):
    assert TASK.encoder.vector(SAMPLE | {"Light": raw})[1] == 0.0


def test_all_missing_features_are_named_at_once():
    with pytest.raises(DataError, match=r"no features 'Temperature', 'CO2', which"):
        TASK.encoder.vector({"Light": 1})


def test_a_missing_feature_is_named_with_the_nearest_that_is_there():
    with pytest.raises(DataError, match=r"no feature 'Light', .* did you mean 'light'\?"):
        TASK.encoder.vector({"Temperature": 1, "light": 2, "CO2": 3})


def test_a_number_that_overflows_in_scaling_is_refused():
    task = replace(TASK, features=(Feature("x", scale=1e-10),))
    with pytest.raises(DataError, match=r"feature 'x' is 1e\+308, which is not finite after"):
        task.encoder.vector({"x": 1e308})


@pytest.mark.parametrize("raw", ["1", 1, 1.0, "1.0", True, " 1 ", np.int64(1), "true"])
def test_the_same_label_in_many_forms_is_the_same(raw):
    assert TASK.encoder.label_value(raw) == 1.0


def test_two_classes_are_minus_and_plus_one():
    task = replace(TASK, classes=("yes", "no"))
    assert (task.encoder.label_value("yes"), task.encoder.label_value(" no ")) == (-1.0, 1.0)
    assert (task.encoder.label_name(-1.0), task.encoder.label_name(1.0)) == ("yes", "no")


def test_several_classes_are_numbered():
    task = replace(TASK, model="softmax", classes=("c", "a", "7"))
    assert [task.encoder.label_value(raw) for raw in ("c", "a", 7.0)] == [0.0, 1.0, 2.0]
    assert [task.encoder.label_name(value) for value in (0.0, 1.0, 2.0)] == ["c", "a", "7"]


@pytest.mark.parametrize("raw", ["2", "", None, math.nan, [], "x" * 1000])
def test_a_label_that_is_no_class_is_named(raw):
    with pytest.raises(DataError, match=r"label 'Occupancy' is .*; it must be one of '0', '1'"):
        TASK.encoder.label_value(raw)


@pytest.mark.parametrize("value", [0.0, 2.0, math.nan])
def test_a_prediction_that_no_model_makes_has_no_name(value):
    with pytest.raises(DataError, match="not a label that the model knows; there are -1, 1"):
        TASK.encoder.label_name(value)


def test_ridge_predicts_numbers():
    task = replace(TASK, model="ridge", classes=())
    assert task.encoder.label_value("2.5") == 2.5
    assert task.encoder.label_name(2.5) == "2.5"
    for raw in ("much", math.inf, None):
        with pytest.raises(DataError, match=r"label 'Occupancy' is .*; it must be a finite number"):
            task.encoder.label_value(raw)


@given(st.dictionaries(st.sampled_from([*SAMPLE, "y"]), json_like), json_like)
def test_any_sample_gives_finite_numbers_or_a_data_error(features, label):
    for read in (lambda: TASK.encoder.vector(features), lambda: TASK.encoder.label_value(label)):
        try:
            numbers = np.asarray(read())
        except DataError:
            continue
        assert np.isfinite(numbers).all()


@pytest.mark.parametrize(
    ("model", "names", "kind", "dim"),
    [
        ("logistic", ("0", "1"), LogisticRegression, 4),
        ("hinge", ("0", "1"), Hinge, 4),
        ("ridge", (), RidgeRegression, 4),
        ("softmax", ("a", "b", "c"), SoftmaxRegression, 12),
    ],
)
def test_the_model_is_the_one_the_task_names(model, names, kind, dim):
    task = replace(TASK, model=model, classes=names, l2=0.5)
    built = task.build_model()
    assert type(built) is kind
    assert (built.l2, built.intercept) == (0.5, True)
    assert task.dim == dim
    assert replace(task, intercept=False).dim == dim * 3 // 4


def test_the_learning_rate_stays_or_falls():
    assert TASK.build_method().rate(0) == TASK.build_method().rate(99) == 0.3
    falling = replace(TASK, schedule="inverse-sqrt").build_method()
    assert falling.rate(0) == 0.3
    assert falling.rate(99) == pytest.approx(0.03, rel=1e-15)


@pytest.mark.parametrize("key", ["model", "method", "step", "schedule"])
@pytest.mark.parametrize("name", ["os:system", "os.system", "./evil.py", "extras.evil"])
def test_a_task_names_only_what_is_installed_here(key, name):
    """It comes from others: whatever it says here, nothing is imported for it."""
    lines = [line for line in TEXT.splitlines() if not line.startswith(f"{key} ")]
    with pytest.raises(TaskError, match=key):
        Task.parse("\n".join([f'{key} = "{name}"', *lines]))


def test_a_difference_in_a_table_names_the_key_and_both_values():
    one = replace(TASK, privacy=Privacy(epsilon=8.0))
    other = replace(TASK, privacy=Privacy(epsilon=1.0, delta=1e-6))
    assert differences(one.fields(), json.loads(json.dumps(other.fields()))) == [
        "privacy: epsilon is 8.0 here and 1.0 there",
        "privacy: delta is 1e-05 here and 1e-06 there",
    ]
    grouped = replace(TASK, privacy=Privacy(unit="group", group="person", records_per_group=3))
    assert "privacy: 'group' is not known here and 'person' there" in differences(
        one.fields(), grouped.fields()
    )
    assert "privacy: group is 'person' here and missing there" in differences(
        grouped.fields(), one.fields()
    )


def test_no_privacy_differs_from_some_readably():
    none = replace(TASK, privacy=NO_PRIVACY)
    (found,) = differences(none.fields(), TASK.fields())
    assert found.startswith("privacy is 'none' here and (epsilon = 8.0, delta = 1e-05, ")
    (found,) = differences(TASK.fields(), none.fields())
    assert found.startswith("privacy is (epsilon = 8.0, ")
    assert found.endswith(" here and 'none' there")


@pytest.mark.parametrize("strange", [None, [], {}, {"epsilon": {}}, {"\x1b" * 500: [[[]]]}, 7])
def test_a_privacy_of_any_shape_is_told_short_and_escaped(strange):
    found = differences(TASK.fields(), TASK.fields() | {"privacy": strange})
    assert found
    for sentence in found:
        assert "privacy" in sentence
        assert len(sentence) < 250
        assert "\x1b" not in sentence
