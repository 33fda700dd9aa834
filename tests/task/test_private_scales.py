"""Centers and scales with noise tell what they promise, and from ranges alone tell nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import ConfigError, DataError
from oneway.privacy import Guarantee, delta_of, mu_for
from oneway.task import private_scales
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.private_scales import (
    BoundedSums,
    Range,
    noise_of,
    parse_ranges,
    private_scalings,
)
from oneway.task.task import Task
from oneway.task.task_from_file import derive_task

EPSILON, DELTA = 1.0, 1e-5
GUARANTEE = Guarantee(EPSILON, DELTA)
RANGES = {"age": Range(0.0, 120.0), "pulse": Range(30.0, 200.0)}
COLUMNS = 5
NUM_ROWS = 2_000
DRAWS = 20_000


class Replayed:
    """Numbers given beforehand instead of random ones."""

    def __init__(self, numbers: list[list[float]]) -> None:
        self.numbers = np.array(numbers)

    def standard_normal(self, size: Any) -> Any:
        assert size == self.numbers.shape
        return self.numbers


def write(path: Path, rows: list[tuple[object, ...]], header: str = "age,pulse,ill") -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows), ""]))
    return path


@pytest.fixture
def patients(tmp_path) -> Path:
    """With a value outside of its range at each end, and a missing one."""
    rng = np.random.default_rng(1)
    rows = [(int(rng.integers(1, 99)), f"{rng.normal(80, 9):.2f}", n % 2) for n in range(400)]
    rows += [(-5, 900, 0), (300, "", 1)]
    return write(tmp_path / "patients.csv", rows)


def literal(path: Path, column: int, known: Range, z: float, other_z: float, parts: int):
    """Center and scale of a column, by the letter of the module's docstring."""
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    middle, half = (known.low + known.high) / 2, (known.high - known.low) / 2
    sigma = math.sqrt(parts) / mu_for(EPSILON, DELTA)
    total = squares = 0.0
    for row in rows:
        if row[column]:
            x = min(max(float(row[column]), known.low), known.high)
            u = (x - middle) / half
            total += u
            squares += u**2
    a = (total + sigma * z) / len(rows)
    b = (squares + sigma * other_z) / len(rows)
    return middle + half * a, half * math.sqrt(max(b - a**2, sigma / len(rows)))


def test_private_centers_and_scales_are_what_a_plain_loop_computes(patients):
    noise = [[0.3, 0.4], [-0.2, -0.5]]
    derived = derive_task(
        patients, "ill", ranges=RANGES, normals=Replayed(noise), privacy=Privacy(epsilon=EPSILON)
    )
    for number, feature in enumerate(derived.task.features):
        known = RANGES[feature.name]
        center, scale = literal(patients, number, known, *noise[number], parts=4)
        assert feature.scale == pytest.approx(scale, rel=1e-3)
        assert feature.center == pytest.approx(center, abs=1e-3 * scale)
        # One column of each kind: spread further than the noise, and less.
        is_known = abs(scale / known.half - math.sqrt(noise_of(GUARANTEE, 2) / 402)) > 1e-6
        assert is_known == (feature.name == "age")
    assert derived.scales == (
        "Centers and scales are of one peer's data, with noise: epsilon 1, delta 1e-05 per sample."
    )
    assert derived.exact == ()


def test_ranges_alone_use_no_data_at_all(tmp_path):
    made = []
    for shift in (0, 50):
        rows = [(shift + n, 40 + shift + n, n % 2) for n in range(30)]
        path = write(tmp_path / f"{shift}.csv", rows)
        made.append(derive_task(path, "ill", ranges=RANGES))
    assert made[0].task == made[1].task
    age, pulse = made[0].task.features
    assert (age.center, age.scale) == (60.0, pytest.approx(60 / math.sqrt(3), rel=1e-4))
    assert (pulse.center, pulse.scale) == (115.0, pytest.approx(85 / math.sqrt(3), rel=1e-4))
    assert "no data was used" in made[0].scales
    assert made[0].exact == ()


def test_what_has_no_range_is_scaled_as_it_is_and_named(patients):
    derived = derive_task(patients, "ill", ranges={"age": RANGES["age"]})
    assert derived.exact == ("pulse",)
    assert "of 'pulse' are statistics of one peer's data" in derived.scales
    plain = derive_task(patients, "ill")
    assert derived.task.features[1] == plain.task.features[1]
    assert derived.task.features[0] != plain.task.features[0]


def sums_of(more: float) -> dict[str, BoundedSums]:
    """Some columns of many rows, one of which is at the end of every range, or says nothing."""
    known = Range(-1.0, 1.0)
    return {
        f"c{n}": BoundedSums(known, 0.1 * NUM_ROWS + more, 0.3 * NUM_ROWS + more)
        for n in range(COLUMNS)
    }


def released(more: float, rng: np.random.Generator) -> list[float]:
    """What one draw tells: of every column the noised mean and mean square."""
    scalings = private_scalings(sums_of(more), NUM_ROWS, GUARANTEE, rng)
    return [
        number for center, scale in scalings.values() for number in (center, scale**2 + center**2)
    ]


def test_the_noise_has_the_size_that_the_promise_needs():
    rng = np.random.default_rng(7)
    draws = np.array([released(0.0, rng) for _ in range(DRAWS // 4)]) * NUM_ROWS
    sigma = math.sqrt(2 * COLUMNS) / mu_for(EPSILON, DELTA)
    np.testing.assert_allclose(draws.std(axis=0), sigma, rtol=0.05)
    np.testing.assert_allclose(draws.mean(axis=0), [200.0, 600.0] * COLUMNS, atol=0.1 * sigma)
    correlations = np.corrcoef(draws.T) - np.eye(2 * COLUMNS)
    assert np.abs(correlations).max() < 0.08


@given(st.floats(0.01, 20), st.floats(1e-9, 0.1), st.integers(1, 50), st.integers(1, 20))
def test_all_sums_together_keep_the_promise_also_for_a_group(epsilon, delta, columns, records):
    """Every row of a group moves every sum by 1: the distance in sigmas is at most mu."""
    guarantee = Guarantee(epsilon, delta, "group", records)
    distance = records * math.sqrt(2 * columns) / noise_of(guarantee, columns)
    assert distance <= mu_for(epsilon, delta) * (1 + 1e-12)
    assert distance >= mu_for(epsilon, delta) * (1 - 1e-9)


def measured_delta(mu: float) -> float:
    """By how much the best guess about one row is right more often than epsilon allows.

    `mu` is the distance between with and without the row, in standard deviations of the sum over
    all that is released, which is the best there is to look at.
    """
    rng = np.random.default_rng(11)
    middle = NUM_ROWS * COLUMNS * 0.4
    unit = 2 * COLUMNS / mu  # the sum moves by one in each of them
    guesses = [
        [(NUM_ROWS * sum(released(more, rng)) - middle) / unit for _ in range(DRAWS)]
        for more in (1.0, 0.0)
    ]
    line = EPSILON / mu + mu / 2
    with_row, without = (np.mean(np.array(side) > line) for side in guesses)
    return float(with_row - math.exp(EPSILON) * without)


def test_nobody_can_tell_a_row_from_centers_and_scales_better_than_promised():
    assert measured_delta(mu_for(EPSILON, DELTA)) < DELTA + 0.005


def test_budget_not_split_every_sum_with_the_whole_epsilon_breaks_the_promise(monkeypatch):
    monkeypatch.setattr(private_scales, "noise_of", lambda guarantee, _: 1 / guarantee.mu)
    mu = math.sqrt(2 * COLUMNS) * mu_for(EPSILON, DELTA)
    found = measured_delta(mu)
    assert found > 1000 * DELTA
    assert found == pytest.approx(delta_of(mu, EPSILON), abs=0.02)


def test_scale_not_private_a_center_with_noise_beside_an_exact_scale_tells_the_row():
    rng = np.random.default_rng(13)

    def scales(more: float) -> set[float]:
        sums = sums_of(more)["c0"]
        exact = math.sqrt(sums.squares / NUM_ROWS - (sums.total / NUM_ROWS) ** 2)
        center = private_scalings({"c0": sums}, NUM_ROWS, GUARANTEE, rng)["c0"][0]
        assert abs(center) < 1.0
        return {round(exact, 6)}

    assert not scales(1.0) & scales(0.0)  # always told apart: delta is 1


def test_a_spread_below_its_noise_is_not_believed():
    """A scale near 0 would make features of any size."""
    rng = np.random.default_rng(17)
    guarantee = Guarantee(0.01, DELTA)
    for rows in (1, 10, 1000):
        for _ in range(50):
            sums = {"c": BoundedSums(Range(0.0, 10.0))}
            [(center, scale)] = private_scalings(sums, rows, guarantee, rng).values()
            assert 0.0 <= center <= 10.0
            assert 5.0 * math.sqrt(min(1.0, noise_of(guarantee, 1) / rows)) <= scale <= 5.0


def test_of_a_group_no_more_rows_count_than_the_task_allows(tmp_path):
    """Or the sums of somebody with many rows would move further than the promise says."""
    rows = [(n % 90, 60 + n, n % 2, f"p{n}") for n in range(20)]
    many = [(100, 199, n % 2, "ada") for n in range(50)]
    header = "age,pulse,ill,patient"
    privacy = Privacy(unit="group", group="patient", records_per_group=2)
    tasks = [
        derive_task(
            write(tmp_path / f"{count}.csv", rows + many[:count], header), "ill", ranges=RANGES,
            normals=Replayed([[0.0, 0.0], [0.0, 0.0]]), privacy=privacy,
        )
        for count in (2, 50)
    ]  # fmt: skip
    assert tasks[0].task == tasks[1].task
    assert (tasks[0].num_over, tasks[1].num_over) == (0, 48)
    assert tasks[1].num_rows == 22
    assert [note.name for note in tasks[1].notes if not note.used] == ["patient"]


def test_a_number_to_predict_needs_a_range_too_since_the_radius_depends_on_it(tmp_path):
    path = write(tmp_path / "p.csv", [(n, n * 1e5) for n in range(30)], "age,cost")
    age = {"age": RANGES["age"]}
    normals = np.random.default_rng(0)
    with pytest.raises(ConfigError, match="'cost'"):
        derive_task(path, "cost", ranges=age, normals=normals)
    known = age | {"cost": Range(-9e3, 0.0)}
    task = derive_task(path, "cost", ranges=known, normals=normals).task
    assert task.options == {"ridge": {"center": -4500.0, "scale": 2598.0}}
    number = derive_task(path, "cost", ranges=known, normals=normals, learning_rate=0.1).task
    assert number.radius == 1e5


@pytest.mark.parametrize(
    ("ranges", "privacy", "culprit"),
    [
        ({"age": RANGES["age"]}, Privacy(), "'pulse'"),
        ({}, Privacy(), "'age', 'pulse'"),
        (RANGES, NO_PRIVACY, '"none"'),
        (RANGES, Privacy(delta=0.5), "delta is 0.5"),
        (RANGES | {"Age": Range(0, 1)}, Privacy(), "did you mean 'age'"),
        (RANGES | {"ill": Range(0, 1)}, Privacy(), "'ill'"),
    ],
)
def test_private_scales_that_cannot_be_made_get_a_sentence(patients, ranges, privacy, culprit):
    normals = np.random.default_rng(0)
    with pytest.raises(ConfigError) as caught:
        derive_task(patients, "ill", ranges=ranges, normals=normals, privacy=privacy)
    assert culprit in str(caught.value)


def test_a_group_column_that_the_file_lacks_is_named(patients):
    privacy = Privacy(unit="group", group="patient")
    with pytest.raises(DataError, match="'patient'"):
        derive_task(patients, "ill", privacy=privacy)


@pytest.mark.parametrize(
    "text",
    ["age", "age=", "=0..1", "age=0", "age=0..", "age=a..b", "age=1..1", "age=2..1", "age=0..inf",
     "age=nan..1", "age=-1e308..1e999"],
)  # fmt: skip
def test_a_range_that_is_none_gets_a_sentence(text):
    with pytest.raises(ConfigError, match="range"):
        parse_ranges([text])


def test_two_ranges_of_one_column_get_a_sentence():
    with pytest.raises(ConfigError, match="'age'"):
        parse_ranges(["age=0..1", "age=0..2"])


def test_a_range_may_be_as_wide_as_numbers_are():
    [known] = parse_ranges(["a=b=-1e308..1.5e308"]).values()
    assert known.middle == pytest.approx(2.5e307)
    assert known.placed(1.7e308) == 1.0
    assert known.placed(-1.7e308) == -1.0


def test_a_strange_column_name_does_not_break_the_task_file(tmp_path):
    path = write(tmp_path / "p.csv", [(1, 2, 0), (3, 4, 1)], '"a\x1b# \nx",age,ill')
    derived = derive_task(path, "ill", ranges={"age": RANGES["age"]})
    assert "\n" not in derived.scales
    assert Task.parse(f"# {derived.scales}\n{derived.task.to_toml()}") == derived.task
