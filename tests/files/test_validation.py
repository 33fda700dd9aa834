"""A table becomes a typed value, or one sentence with culprit, value, rule and remedy."""

from __future__ import annotations

import math
import tomllib
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from oneway.errors import ConfigError, TaskError
from oneway.files.toml import toml_text
from oneway.files.validation import check_fields, convert


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
    options: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rate > self.inner.size:
            raise ConfigError(f"rate {self.rate} is above size {self.inner.size}")


def test_a_table_becomes_a_value_with_its_nested_tables_and_lists():
    items = [{"tags": ["x"]}, {}]
    table = {"name": "a", "rate": 1, "most": "auto", "inner": {"size": 3}, "items": items}
    value = convert(table, Outer, "f.toml")
    assert value == Outer("a", 1.0, "slow", "auto", Inner(3), (Inner(tags=("x",)), Inner()))
    assert isinstance(value.rate, float)


@pytest.mark.parametrize(
    ("table", "culprits"),
    [
        ({}, ["f.toml has no name", "what others see"]),
        (3, ["f.toml is 3", "table"]),
        ({"name": "a", "rat": 1}, ["'rat'", "did you mean 'rate'"]),
        ({"name": "a", "zzz": 1}, ["'zzz'", "kind"]),
        ({"name": "a", "inner": {"siz": 1}}, ["'inner.siz'", "did you mean 'size'"]),
        ({"name": "a", "items": [{}, {"siz": 1}]}, ["'items[1].siz'", "did you mean 'size'"]),
        ({"name": 1}, ["name in f.toml is 1", "quotes"]),
        ({"name": "a", "rate": 0}, ["rate in f.toml is 0", "above 0"]),
        ({"name": "a", "rate": math.inf}, ["f.toml: rate is inf"]),
        ({"name": "a", "rate": 10**400}, ["rate in f.toml is a number of very many digits"]),
        ({"name": "a", "rate": True}, ["rate in f.toml is True"]),
        ({"name": "a", "kind": "fats"}, ["kind in f.toml is 'fats'", "'fast'?", "slow"]),
        ({"name": "a", "most": -1}, ["most in f.toml is -1", "at least 0", '"auto"']),
        ({"name": "a", "inner": {"size": 0}}, ["inner.size in f.toml is 0"]),
        ({"name": "a", "inner": {"tags": ["b", 1]}}, ["inner.tags[1] in f.toml is 1", "quotes"]),
        ({"name": "a", "inner": 7}, ["inner in f.toml is 7", "table"]),
        ({"name": "a", "items": {}}, ["items in f.toml", "a list, of which each is a table"]),
        ({"name": "a", "items": [{}, {"size": "x"}]}, ["items[1].size", "'x'"]),
        ({"name": "a", "options": {"b": 3}}, ["options in f.toml", "each entry", "a table"]),
        ({"name": "a", "rate": 2}, ["f.toml: rate 2.0 is above size 1"]),
    ],
)
def test_every_violation_is_one_sentence_of_the_class_that_was_asked_for(table, culprits):
    with pytest.raises(TaskError) as caught:
        convert(table, Outer, "f.toml", TaskError)
    assert [words for words in culprits if words not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


def test_a_value_made_in_python_keeps_the_same_rules():
    assert type(Outer("a", rate=np.float32(0.5)).rate) is float  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="rate is 'x'"):
        Outer("a", rate="x")  # type: ignore[arg-type]
    assert math.copysign(1.0, convert({"x": -0.0}, Signed, "f.toml").x) == 1.0


@dataclass(frozen=True)
class Signed:
    unit: ClassVar[str] = "m"
    x: float
    _: KW_ONLY
    y: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)


plain = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(allow_nan=False)
tables = st.dictionaries(st.text(), plain | st.lists(plain), max_size=4)


@given(st.dictionaries(st.text(), plain | tables | st.lists(tables, min_size=1), max_size=4))
def test_any_table_is_read_back_from_what_is_written_of_it(table):
    assert tomllib.loads(toml_text(table, {})) == table


keys = st.sampled_from(
    ["name", "rate", "kind", "most", "inner", "items", "options", "size", "tags"]
)
anything = st.recursive(
    st.none() | plain | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(keys | st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(keys, anything, max_size=4) | anything)
def test_any_table_is_a_value_or_one_sentence(table):
    problem = "f.toml"
    try:
        convert(table, Outer, "f.toml")
    except ConfigError as error:
        problem = str(error)
    assert "f.toml" in problem
    assert "\n" not in problem
