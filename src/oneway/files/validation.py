"""Validation of files, requests, flags and arguments: msgspec checks, the error is one sentence.

A frozen dataclass or msgspec struct declares its keys, types, bounds and meaning once:

    keep: Annotated[float, Meta(gt=0, lt=1, description="the share that is kept")] = 0.5

`convert` makes one of a table, `check_fields` checks one that was made in Python. What bounds
cannot express is in the `extra` of a `Meta`:

- `rule`: the rule in words;
- `check`: a function that returns the value, or raises a `ConfigError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from msgspec import inspect

from oneway.errors import ConfigError, OnewayError
from oneway.sentences import listed, nearest, shown

_Value = TypeVar("_Value")

_Table = inspect.StructType | inspect.DataclassType
_List = inspect.VarTupleType | inspect.ListType
_LARGEST_COUNT = 2**31 - 1
"""A whole number's upper bound that goes without saying."""


def convert(
    value: object, kind: type[_Value], where: str, error: type[OnewayError] = ConfigError
) -> _Value:
    """Return the value of a type that a parsed file or request describes.

    Args:
        value: What the parser returned; keys are the names of fields.
        kind: A dataclass or a msgspec struct.
        where: What errors call the file or request.
        error: The class of the error.

    Raises:
        OnewayError: Of the class `error`, if a key is unknown or missing, or a value breaks its
            rule.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Limits:
    ...     window: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    >>> convert({"window": 65}, Limits, "peer.toml")
    Traceback (most recent call last):
    ...
    oneway.errors.ConfigError: window in peer.toml is 65; it must be a whole number from 1 to 64
    """
    info = inspect.type_info(kind)
    for problem in _key_problems(value, info, where):
        raise error(problem)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as reason:
        raise error(_violation(str(reason), value, info, where)) from None
    except ConfigError as reason:
        raise error(f"{where}: {reason}") from None


def check_fields(value: object, error: type[OnewayError] = ConfigError) -> None:
    """Check the fields of a frozen dataclass against their types, and convert what may be.

    Called in `__post_init__`: 1 becomes 1.0 where a float is declared, a list a tuple.

    Raises:
        OnewayError: Of the class `error`, for the first that breaks its rule.
    """
    kind: Any = type(value)
    for name, hint in _hints(kind).items():
        object.__setattr__(value, name, checked(name, getattr(value, name), hint, error))


def checked(name: str, value: object, hint: Any, error: type[OnewayError] = ConfigError) -> Any:
    """Return a value as its type has it; numbers are finite, and never -0.0.

    Raises:
        OnewayError: Of the class `error`, if it breaks the rule of the type.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        result = msgspec.convert(plain, hint)
        if isinstance(result, float) and not math.isfinite(result):
            raise msgspec.ValidationError
    except msgspec.ValidationError:
        rule = _rule(inspect.type_info(hint), value)
        raise error(f"{name} is {shown(value)}; {rule}") from None
    try:
        for check in _checks(hint):
            result = check(result)
    except ConfigError as reason:
        raise error(f"{name} is {shown(value)}: {reason}") from None
    return result + 0.0 if isinstance(result, float) else result


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


def refuse_unknown(
    table: object, known: Iterable[str], where: str, error: type[OnewayError]
) -> dict[str, Any]:
    """Return a table whose keys all exist.

    Raises:
        OnewayError: Of the class `error`: if it is no table, or for the first key that does not
            exist, with the nearest that does.
    """
    names = list(known)
    if not isinstance(table, dict):
        raise error(f"{where} is {shown(table)}; it must be a table with {listed(names)}")
    for key in table:
        if key not in names:
            raise error(f"{where} has no key {shown(key)}{_remedy(key, names)}")
    return table


def comments_of(kind: type) -> dict[str, str]:
    """Return the descriptions of the fields of a type, by name."""
    return {
        name: meta.description
        for name, hint in _hints(kind).items()
        for meta in _metas(hint)
        if meta.description
    }


def nearest_of(name: object, choices: Iterable[str]) -> str:
    """Return what to choose instead of a name that is unknown, as the end of a sentence.

    >>> nearest_of("fats", ["auto", "reference", "fast"])
    "did you mean 'fast'? choose from auto, reference, fast"
    """
    known = list(choices)
    near = nearest(str(name), known).removeprefix(", ")
    return f"{near} choose from {', '.join(known)}".lstrip()


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind, include_extras=True).items()
    return {
        name: hint
        for name, hint in hints
        if hint is not KW_ONLY and get_origin(hint) is not ClassVar
    }


def _metas(hint: Any) -> list[msgspec.Meta]:
    found = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return [meta for meta in found if isinstance(meta, msgspec.Meta)]


def _checks(hint: Any) -> list[Callable[[Any], Any]]:
    return [meta.extra["check"] for meta in _metas(hint) if meta.extra and "check" in meta.extra]


def _remedy(key: object, known: list[str]) -> str:
    return nearest(str(key), known) or f"; there are {listed(known)}"


def _key_problems(value: object, info: inspect.Type, where: str, path: str = "") -> Iterator[str]:
    """Yield a sentence for every key that is unknown or missing: msgspec ignores unknown ones."""
    info = _plain(info)
    if isinstance(info, _Table) and isinstance(value, dict):
        known = {field.name: field for field in info.fields}
        for key, item in value.items():
            if key not in known:
                yield f"{where} has no key {shown(path + key)}{_remedy(key, list(known))}"
            else:
                yield from _key_problems(item, known[key].type, where, f"{path}{key}.")
        for name, field in known.items():
            if field.required and name not in value:
                schema = getattr(field.type, "extra_json_schema", None) or {}
                meaning = f": {schema['description']}" if "description" in schema else ""
                yield f"{_subject(path[:-1], where)} has no {name}; add it{meaning}"
    elif isinstance(info, _List) and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _key_problems(item, info.item_type, where, f"{path[:-1]}[{number}].")


def _violation(reason: str, value: Any, info: inspect.Type, where: str) -> str:
    """Return the sentence for msgspec's reason, "rule - at `$.path`"."""
    # msgspec writes [...] for an entry of a table with any keys, and does not say which.
    path, mark, _ = reason.partition(" - at `$")[2].removesuffix("`").partition("[...]")
    for step in re.findall(r"[^.\[\]]+", path):
        plain = _plain(info)
        if isinstance(plain, _Table):
            value = value[step]
            info = next(field.type for field in plain.fields if field.name == step)
        elif isinstance(plain, _List):
            value, info = value[int(step)], plain.item_type
    subject, plain = _subject(path.lstrip("."), where), _plain(info)
    if mark and isinstance(plain, inspect.DictType):
        return f"{subject} is {shown(value)}; each entry of it must be {_noun(plain.value_type)}"
    return f"{subject} is {shown(value)}; {_rule(info, value)}"


def _subject(path: str, where: str) -> str:
    return f"{path} in {where}" if path else where


def _plain(info: inspect.Type) -> inspect.Type:
    return info.type if isinstance(info, inspect.Metadata) else info


def _rule(info: inspect.Type, value: object) -> str:
    """Return what a value must be, as the end of a sentence."""
    plain = _plain(info)
    if isinstance(plain, inspect.LiteralType):
        return nearest_of(value, map(str, plain.values))
    return f"it must be {_noun(info)}"


def _noun(info: inspect.Type) -> str:
    match info:
        case inspect.Metadata(extra={"rule": str(rule)}):
            return rule
        case inspect.Metadata(type=inner):
            return _noun(inner)
        case inspect.UnionType(types=types):
            return " or ".join(
                _noun(each) for each in types if not isinstance(each, inspect.NoneType)
            )
        case inspect.IntType():
            return f"a whole number{_bounds(info)}"
        case inspect.FloatType():
            return f"a number{_bounds(info)}"
        case inspect.BoolType():
            return "true or false, without quotes"
        case inspect.LiteralType(values=values):
            return " or ".join(f'"{each}"' for each in values)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return f"a list, of which each is {_noun(item)}"
        case inspect.DictType() | inspect.StructType() | inspect.DataclassType():
            return "a table"
        case _:
            return "text in quotes"


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    most = None if info.le == _LARGEST_COUNT else info.le
    if info.ge is not None and most is not None:
        return f" from {info.ge:g} to {most:g}"
    words = {" above": info.gt, " of at least": info.ge, " below": info.lt, " of at most": most}
    return " and".join(f"{word} {bound:g}" for word, bound in words.items() if bound is not None)
