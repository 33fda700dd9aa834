"""A table becomes a typed value, or one sentence with culprit, value, rule and remedy."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
import pytest
from msgspec import Meta

from oneway.errors import ConfigError, TaskError
from oneway.files.typed_values import check_fields, comments_of, from_table


class Inner(msgspec.Struct, frozen=True):
    size: Annotated[int, Meta(ge=1)] = 1
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outer:
    name: Annotated[str, Meta(description="what others see")]
    rate: Annotated[float, Meta(gt=0)] = 0.5
    kind: Literal["fast", "slow"] = "slow"
    most: Annotated[int, Meta(ge=0)] | Literal["auto"] | None = None
    inner: Inner = field(default_factory=Inner)
    items: tuple[Inner, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rate > self.inner.size:
            raise ConfigError(f"rate {self.rate} is above size {self.inner.size}")


def test_a_table_becomes_a_value_with_its_nested_tables_and_lists():
    table = {
        "name": "a",
        "rate": 1,
        "most": "auto",
        "inner": {"size": 3},
        "items": [{"tags": ["x"]}, {}],
    }
    value = from_table(table, Outer)
    assert value == Outer(
        "a", rate=1.0, most="auto", inner=Inner(3), items=(Inner(tags=("x",)), Inner())
    )
    assert isinstance(value.rate, float)


@pytest.mark.parametrize(
    ("table", "culprits"),
    [
        ({}, ["f.toml has no name", "what others see"]),
        (3, ["f.toml is 3", "name"]),
        ({"name": "a", "rat": 1}, ["'rat'", "did you mean 'rate'"]),
        ({"name": "a", "zzz": 1}, ["'zzz'", "kind"]),
        ({"name": 1}, ["name in f.toml is 1", "quotes"]),
        ({"name": "a", "rate": 0}, ["rate in f.toml is 0", "above 0"]),
        ({"name": "a", "rate": math.inf}, ["rate in f.toml is inf"]),
        ({"name": "a", "rate": 10**400}, ["rate in f.toml is a number of very many digits"]),
        ({"name": "a", "rate": True}, ["rate in f.toml is True"]),
        ({"name": "a", "kind": "fats"}, ["kind in f.toml is 'fats'", "'fast'?", "slow"]),
        ({"name": "a", "most": -1}, ["most in f.toml is -1", "at least 0", '"auto"']),
        ({"name": "a", "inner": {"size": 0}}, ["size under [inner] in f.toml is 0"]),
        ({"name": "a", "inner": {"tags": [1]}}, ["tags under [inner] in f.toml", "list"]),
        ({"name": "a", "inner": 7}, ["[inner] in f.toml is 7", "table"]),
        ({"name": "a", "items": {}}, ["items in f.toml", "[[items]]"]),
        ({"name": "a", "items": [{}, {"size": "x"}]}, ["size under [[items]] no. 2", "'x'"]),
        ({"name": "a", "rate": 2}, ["f.toml: rate 2.0 is above size 1"]),
    ],
)
def test_every_violation_is_one_sentence_of_the_class_that_was_asked_for(table, culprits):
    with pytest.raises(TaskError) as caught:
        from_table(table, Outer, "f.toml", TaskError)
    assert [words for words in culprits if words not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


def test_without_a_file_no_place_is_named():
    with pytest.raises(ConfigError, match=r"^rate is -1; it must be a number above 0$"):
        from_table({"name": "a", "rate": -1}, Outer)


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), 0.5])
def test_numbers_of_numpy_are_numbers(number):
    assert type(Outer("a", rate=number).rate) is float


def test_a_value_made_in_python_keeps_the_same_rules():
    wrong: Any = "x"
    with pytest.raises(ConfigError, match="rate is 'x'"):
        Outer("a", rate=wrong)
    assert math.copysign(1.0, from_table({"x": -0.0}, Signed).x) == 1.0


@dataclass(frozen=True)
class Signed:
    unit: ClassVar[str] = "m"
    x: float
    _: KW_ONLY
    y: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)


def test_descriptions_are_the_comments_of_a_file():
    assert comments_of(Outer) == {"name": "what others see"}
