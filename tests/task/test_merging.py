"""One task of the tasks of several sites, without their data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oneway.errors import TaskError
from oneway.tables import Category, Number, Time
from oneway.tables.features import PARTS
from oneway.task.derive import derive_task
from oneway.task.merging import merge_tasks
from oneway.task.task import Task

RNG = np.random.default_rng(5)


def site(folder: Path, name: str, count: int, doses: list[str], labels: list[str]) -> Path:
    rows = zip(
        RNG.normal(len(name), 2.0, count),
        RNG.choice(doses, count),
        RNG.choice(["yes", "no"], count),
        RNG.choice(labels, count),
        strict=True,
    )
    path = folder / f"{name}.csv"
    path.write_text("age,dose,smoker,y\n" + "".join(f"{a},{d},{s},{y}\n" for a, d, s, y in rows))
    return path


def test_the_merged_task_is_that_of_all_rows_together(tmp_path):
    sites = [
        site(tmp_path, "a", 400, ["low", "mid"], ["no", "yes"]),
        site(tmp_path, "longer", 100, ["mid", "high"], ["no", "yes"]),
    ]
    together = tmp_path / "all.csv"
    texts = [path.read_text().splitlines() for path in sites]
    together.write_text("\n".join([texts[0][0], *texts[0][1:], *texts[1][1:]]))
    merged = merge_tasks({path.name: derive_task(path, "y").task for path in sites})
    expected = derive_task(together, "y").task
    assert merged.task.rows == expected.rows == 500
    assert merged.is_weighted
    assert merged.left_out == {}
    for ours, theirs in zip(merged.task.features, expected.features, strict=True):
        assert (ours.name, ours.outputs) == (theirs.name, theirs.outputs)
        assert ours.scaling == pytest.approx(theirs.scaling, rel=1e-3)
    starts = [task.options["logistic"]["start"] for task in (merged.task, expected)]
    assert starts[0] == pytest.approx(starts[1], abs=0.03)
    assert Task.parse(merged.task.to_toml()) == merged.task


def test_a_third_class_at_another_site_makes_it_a_matter_of_classes(tmp_path):
    paths = [
        site(tmp_path, "a", 60, ["low"], ["no", "yes"]),
        site(tmp_path, "b", 60, ["low"], ["no", "perhaps", "yes"]),
    ]
    merged = merge_tasks({path.name: derive_task(path, "y").task for path in paths}).task
    assert (merged.model, merged.classes) == ("softmax", ("no", "perhaps", "yes"))
    assert len(merged.options["softmax"]["start"]) == 3


TASK = Task("ridge", "y", (Number("x", 2.0, 3.0), Category("c", values=("a",))), rows=10)


def merged(*others: Task):
    return merge_tasks({f"{n}.toml": task for n, task in enumerate((TASK, *others))})


def test_pooled_moments_are_a_literal_sum_over_sites():
    other = replace(TASK, features=(Number("x", 8.0, 1.5), TASK.features[1]), rows=30)
    feature = merged(other).task.features[0]
    center = (10 * 2.0 + 30 * 8.0) / 40
    variance = (10 * (9.0 + (2.0 - center) ** 2) + 30 * (2.25 + (8.0 - center) ** 2)) / 40
    assert feature.center == pytest.approx(center)
    assert feature.scale == pytest.approx(variance**0.5, rel=1e-4)


def test_a_column_that_is_constant_at_a_site_says_nothing_about_the_spread():
    other = replace(TASK, features=(Number("x", 2.0, 1.0), TASK.features[1]))
    assert merged(other).task.features[0] == Number("x", 2.0, 2.121)


def test_without_rows_all_sites_count_alike_and_flags_and_values_are_those_of_any():
    other = replace(
        TASK,
        features=(Number("x", 4.0, 3.0, missing_indicator=True), Category("c", values=("b", "a"))),
        rows=0,
    )
    found = merged(other)
    assert not found.is_weighted
    assert found.task.features[0].center == 3.0
    assert found.task.features[0].missing_indicator
    assert found.task.features[1].values == ("a", "b")


def test_what_not_all_sites_have_is_left_out_and_named():
    other = replace(TASK, features=(*TASK.features[:1], Number("z")))
    found = merged(other)
    assert found.task.encoder.names == ("x",)
    assert found.left_out == {"c": ("0.toml",), "z": ("1.toml",)}


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"label": "z"}, "label"),
        ({"l2": 0.5}, "l2"),
        ({"features": (Time("x"), TASK.features[1])}, "'x' is a number in 0.toml"),
        ({"features": (Number("q"),)}, "no feature in common"),
        ({"model": "logistic", "classes": ("0", "1")}, "predicts"),
    ],
)
def test_tasks_that_cannot_be_merged_are_refused(change, culprit):
    with pytest.raises(TaskError, match=culprit):
        merged(replace(TASK, **change))
    with pytest.raises(TaskError, match="at least two"):
        merge_tasks({"a.toml": TASK})


def test_a_time_has_the_parts_that_it_has_at_any_site():
    def having(*parts):
        visit = Time("visit", parts=parts)
        return replace(TASK, features=(*TASK.features, visit))

    for first, second, merged in (
        (("weekday", "season"), ("weekday", "season"), ("weekday", "season")),
        (("weekday", "season"), ("hour",), PARTS),
        (("hour",), (), PARTS),
    ):
        task = merge_tasks({"a.toml": having(*first), "b.toml": having(*second)}).task
        assert task.features[-1].parts == merged
