"""One simulation as plain settings: what the flags and TOML files of `oneway simulate` say."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import inspect

from oneway.errors import ConfigError

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that determines one simulation. A TOML file holds these names as keys."""

    data: str = "flights"
    """flights, occupancy, susy, synthetic, or a CSV, Parquet or LIBSVM file."""
    label: str | None = None
    """Label column of a file."""
    owner: str | None = None
    """Column whose values are the nodes; otherwise rows are dealt to `nodes` nodes."""
    nodes: Count | None = None
    """Number of nodes; by default what the graph file or the owners say, or 20."""
    adversarial: float = 0.0
    """Fraction of the rows that is clustered, one cluster per node, instead of dealt at random."""
    resample: Count | None = None
    """Draw this many rows with replacement."""
    rounds: Count | None = None
    """Run only the first rounds."""
    graph: str = "random"
    """random, ring, complete, erdos-renyi, scale-free, advogato, epinions, or an edge list."""
    max_receivers: Count | None = None
    """Of the random graph: every node sends to between 1 and this many others."""
    density: float = 0.1
    """Of the Erdos-Renyi graph: probability of an edge."""
    largest_component: bool = False
    """Keep only the largest strong component of the graph."""
    algorithm: Literal["ops", "dol-symm", "dol-asymm", "col", "local"] = "ops"
    learning_rate: float = 0.1
    schedule: Literal["constant", "inverse-sqrt"] = "constant"
    cap_step: bool = False
    """Of ops: shorten the steps of nodes with little mass."""
    model: Literal["logistic", "ridge", "hinge", "softmax"] = "logistic"
    l2: float = 1e-4
    intercept: bool = True
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Of the graph and of the dealing."""
    engine: Literal["auto", "reference", "fast"] = "auto"


def read_settings(path: Path | None, overrides: Mapping[str, Any]) -> Settings:
    """Settings from a TOML file (if any), with `overrides` on top.

    Raises:
        ConfigError: If the file cannot be read, or a setting is unknown or has a wrong value.
    """
    stated = {} if path is None else _read_toml(path)
    for name in stated:
        if name not in Settings.__struct_fields__:
            advice = nearest_of(name, Settings.__struct_fields__)
            raise ConfigError(f"{name!r} in {path} is not a setting; {advice}")
    values = stated | dict(overrides)
    described = inspect.type_info(Settings)
    assert isinstance(described, inspect.StructType)
    for field in described.fields:
        if field.name in values:
            place = "" if field.name in overrides else f" in {path}"
            _check_value(field, values[field.name], place)
    return msgspec.convert(values, Settings)


def nearest_of(name: object, choices: Iterable[str]) -> str:
    """What to choose instead of a name that is unknown, as the end of a sentence.

    >>> nearest_of("fats", ["auto", "reference", "fast"])
    "did you mean 'fast'? choose from auto, reference, fast"
    """
    known = list(choices)
    near = difflib.get_close_matches(str(name), known, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"choose from {', '.join(known)}"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} is not valid TOML: {error}; a line is `name = value`, with text in quotes"
        ) from error


def _check_value(field: inspect.Field, value: object, place: str) -> None:
    try:
        msgspec.convert({field.name: value}, Settings)
    except msgspec.ValidationError:
        raise ConfigError(f"{field.name}{place} is {value!r}; {_rule(field.type, value)}") from None


def _rule(kind: inspect.Type, value: object) -> str:
    """What a value must be, as the end of a sentence."""
    match kind:
        case inspect.UnionType(types=(first, *_)):
            return _rule(first, value)
        case inspect.LiteralType(values=choices):
            return nearest_of(value, map(str, choices))
        case inspect.IntType(ge=least):
            return f"it must be a whole number of at least {least}"
        case inspect.FloatType():
            return "it must be a number"
        case inspect.BoolType():
            return "it must be true or false"
        case _:
            return "it must be text in quotes"
