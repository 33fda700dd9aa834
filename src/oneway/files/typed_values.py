"""Typed values from TOML tables: constraints are msgspec metadata, each violation is one sentence.

A frozen dataclass or msgspec struct declares its keys, types and bounds once:

    keep: Annotated[float, Meta(gt=0, lt=1, description="the share that is kept")] = 0.5

`from_table` makes one of a table, `check_fields` checks one that was made in Python. What bounds
cannot say is in the `extra` of a `Meta`:

- `rule`: what a value must be, in words;
- `check`: a function that returns the value, or raises a `ConfigError`;
- `parse`: a function that turns what stands in a file into the value; it raises a `ConfigError`, or
  a `ValueError` for what breaks the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, is_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from msgspec import inspect

from oneway.errors import ConfigError, OnewayError
from oneway.files.toml import refuse_unknown
from oneway.sentences import nearest, shown

_Value = TypeVar("_Value")

_TOML_TYPES = (bool, int, float, str)
_LARGEST_COUNT = 2**31 - 1
"""A whole number's upper bound that goes without saying."""


def from_table(
    table: object, kind: type[_Value], where: str = "", error: type[OnewayError] = ConfigError
) -> _Value:
    """Return the value of a struct type that a TOML table describes, nested tables included.

    Args:
        table: What the parser returned; keys are the names of fields.
        kind: A dataclass or a msgspec struct.
        where: The file, or whatever the table is called in a sentence; empty for the command line.
        error: The class of what is raised.

    Raises:
        OnewayError: Of the class `error`, if a key is unknown or missing, or a value breaks its
            rule.

    >>> @dataclass(frozen=True)
    ... class Limits:
    ...     window: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    >>> from_table({"window": 65}, Limits, "peer.toml")
    Traceback (most recent call last):
    ...
    oneway.errors.ConfigError: window in peer.toml is 65; it must be a whole number from 1 to 64
    """
    return _Reader(where, error).struct(table, kind)


def check_fields(value: object, error: type[OnewayError] = ConfigError) -> None:
    """Check the fields of a frozen dataclass against their types, and convert what may be.

    Called in `__post_init__`: 1 becomes 1.0 where a float is declared, a list a tuple.

    Raises:
        OnewayError: Of the class `error`, for the first that breaks its rule.
    """
    for name, hint in _hints(type(value)).items():
        if not _is_struct(_base(hint)) and not _is_struct(_item(hint)):
            object.__setattr__(value, name, checked(name, getattr(value, name), hint, error))


def checked(name: str, value: object, hint: Any, error: type[OnewayError] = ConfigError) -> Any:
    """Return a value as its type has it; numbers are finite, and never -0.0.

    Raises:
        OnewayError: Of the class `error`, if it breaks the rule of the type.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        result = msgspec.convert(plain, hint)
    except msgspec.ValidationError:
        raise error(violation(name, value, hint)) from None
    if isinstance(result, float):
        if not math.isfinite(result):
            raise error(violation(name, value, hint))
        result += 0.0
    check = _extra(hint, "check")
    if check is None:
        return result
    try:
        return check(result)
    except ConfigError as reason:
        raise error(f"{name} is {shown(value)}: {reason}") from None


def whole_number(name: str, value: object, least: int, error: type[OnewayError]) -> int:
    """Return an integer, or a float that is one, of at least so much as a plain integer.

    Raises:
        OnewayError: Of the class `error`, if it is anything else.

    >>> whole_number("num_nodes", 6.0, 1, ConfigError)
    6
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    return int(checked(name, plain, Annotated[int, msgspec.Meta(ge=least)], error))


def violation(name: str, value: object, hint: Any) -> str:
    """Return the sentence that a value breaks the rule of its type."""
    return f"{name} is {shown(value)}; {_rule(inspect.type_info(hint), value)}"


def comments_of(kind: type) -> dict[str, str]:
    """Return the descriptions of the fields of a struct type, by name."""
    hints = _hints(kind).items()
    return {
        name: meta.description for name, hint in hints for meta in _metas(hint) if meta.description
    }


def nearest_of(name: object, choices: Iterable[str]) -> str:
    """Return what to choose instead of a name that is unknown, as the end of a sentence.

    >>> nearest_of("fats", ["auto", "reference", "fast"])
    "did you mean 'fast'? choose from auto, reference, fast"
    """
    known = list(choices)
    near = nearest(str(name), known).removeprefix(", ")
    return f"{near} choose from {', '.join(known)}".lstrip()


@dataclass(frozen=True)
class _Reader:
    """Converts tables of one file; `where` and `error` are those of `from_table`."""

    where: str
    error: type[OnewayError]

    def struct(self, table: object, kind: type[_Value], under: str = "") -> _Value:
        hints = _hints(kind)
        place = f"{under}{self._in() if under else self.where}" or "the table"
        known = refuse_unknown(table, hints, place, self.error)
        for name in _required(kind) - known.keys():
            meaning = "".join(f": {meta.description}" for meta in _metas(hints[name]))
            raise self.error(f"{place} has no {name}; add it{meaning}")
        values = {
            name: self.value(name, value, hints[name], under) for name, value in known.items()
        }
        try:
            return kind(**values)
        except ConfigError as error:
            raise self.error(f"{place}: {error}") from None

    def value(self, name: str, value: object, hint: Any, under: str) -> Any:
        culprit = name + (f" under {under}" if under else "") + self._in()
        base, item, parse = _base(hint), _item(hint), _extra(hint, "parse")
        if parse is not None:
            return self._parsed(culprit, value, hint, parse)
        if _is_struct(base):
            return self.struct(value, base, f"[{name}]")
        if not _is_struct(item):
            return checked(culprit, value, hint, self.error)
        if not isinstance(value, list):
            raise self.error(
                f"{culprit} is {shown(value)}; each of them begins with a line [[{name}]]"
            )
        many = len(value) > 1
        return tuple(
            self.struct(each, item, f"[[{name}]]" + f" no. {number}" * many)
            for number, each in enumerate(value, start=1)
        )

    def _parsed(self, culprit: str, value: object, hint: Any, parse: Callable[..., Any]) -> Any:
        is_toml = _base(hint) in _TOML_TYPES
        raw = value if is_toml else checked(culprit, value, str, self.error)
        try:
            parsed = parse(raw)
        except ConfigError as error:
            raise self.error(f"{culprit}: {error}") from None
        except ValueError:
            raise self.error(violation(culprit, value, hint)) from None
        return checked(culprit, parsed, hint, self.error) if is_toml else parsed

    def _in(self) -> str:
        return f" in {self.where}" if self.where else ""


def _hints(kind: Any) -> Mapping[str, Any]:
    return _cached_hints(kind)


@cache
def _cached_hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: hint
        for name, hint in hints.items()
        if hint is not KW_ONLY and get_origin(hint) is not ClassVar
    }


def _required(kind: type) -> set[str]:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType | inspect.DataclassType)
    return {field.name for field in described.fields if field.required}


def _base(hint: Any) -> Any:
    """Return a type without its metadata."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _metas(hint: Any) -> list[msgspec.Meta]:
    found = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return [meta for meta in found if isinstance(meta, msgspec.Meta)]


def _extra(hint: Any, name: str) -> Any:
    found = (meta.extra.get(name) for meta in _metas(hint) if meta.extra)
    return next(filter(None, found), None)


def _item(hint: Any) -> Any:
    """Return the type of the items of a list or tuple; None for any other type."""
    base = _base(hint)
    return _base(get_args(base)[0]) if get_origin(base) in (list, tuple) else None


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, msgspec.Struct))


def _rule(kind: inspect.Type, value: object) -> str:
    """Return what a value must be, as the end of a sentence."""
    choices = _alternatives(kind)
    if len(choices) == 1 and isinstance(choices[0], inspect.LiteralType):
        return nearest_of(value, map(str, choices[0].values))
    return f"it must be {' or '.join(map(_noun, choices))}"


def _alternatives(kind: inspect.Type) -> list[inspect.Type]:
    if isinstance(kind, inspect.UnionType):
        return [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    return [kind]


def _noun(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(extra={"rule": str(rule)}):
            return rule
        case inspect.Metadata(type=inner):
            return " or ".join(map(_noun, _alternatives(inner)))
        case inspect.IntType():
            return f"a whole number{_bounds(kind)}"
        case inspect.FloatType():
            return f"a number{_bounds(kind)}"
        case inspect.BoolType():
            return "true or false, without quotes"
        case inspect.LiteralType(values=values):
            return " or ".join(f'"{each}"' for each in values)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return f"a list, of which each is {_noun(item)}"
        case inspect.DictType():
            return "a table"
        case _:
            return "text in quotes"


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    most = None if kind.le == _LARGEST_COUNT else kind.le
    if kind.ge is not None and most is not None:
        return f" from {kind.ge:g} to {most:g}"
    words = {
        " above": kind.gt,
        " of at least": kind.ge,
        " below": kind.lt,
        " of at most": most,
    }
    return " and".join(f"{word} {bound:g}" for word, bound in words.items() if bound is not None)
