"""TOML files that people write by hand: every mistake gets a sentence, what is written is neat."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from oneway.errors import ConfigError
from oneway.sentences import listed, nearest, shown


def read_text(path: Path, error: type[ConfigError], remedy: str) -> str:
    """Return the text of a file, as it is.

    Raises:
        ConfigError: Of the class `error`: if the file is missing or unreadable, or not UTF-8.
    """
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise error(f"there is no {path}; {remedy}") from None
    except OSError as reason:
        raise error(f"cannot read {path}: {reason.strerror}; {remedy}") from reason
    except UnicodeDecodeError as reason:
        raise error(f"{path} is not UTF-8 text (byte {reason.start}); save it as UTF-8") from None


def parse_toml(text: str, where: str, error: type[ConfigError]) -> dict[str, Any]:
    """Return what a TOML text says.

    Raises:
        ConfigError: Of the class `error`: if it is not TOML; names the line.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        # Python's parser says "at end of document" for the last line, whatever its number.
        last = len(text.splitlines())
        place = str(reason).replace("at end of document", f"at the end, line {last}")
        raise error(f"{where} is not valid TOML: {place}; repair that line") from None
    except (RecursionError, ValueError):
        raise error(
            f"{where} is not valid TOML: a number is too long, or brackets are nested too deeply"
        ) from None


def refuse_unknown(
    table: object, known: Iterable[str], where: str, error: type[ConfigError]
) -> dict[str, Any]:
    """Return a table whose keys all exist.

    Raises:
        ConfigError: Of the class `error`: if it is no table, or for the first key that does not
            exist, with the nearest that does.
    """
    names = list(known)
    if not isinstance(table, dict):
        raise error(f"{where} is {shown(table)}; it must be a table with {listed(names)}")
    for key in table:
        if key not in names:
            near = nearest(key, names) or f"; there are {listed(names)}"
            raise error(f"{where} has no key {shown(key)}{near}")
    return table


def checked_number(
    name: str, value: object, rule: str, holds: Callable[[float], bool], error: type[ConfigError]
) -> float:
    """Return a finite number that keeps a rule as a plain float, never -0.0.

    Raises:
        ConfigError: Of the class `error`: if it is none; tells the rule.
    """
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number) and holds(number):
            return number + 0.0
    raise error(f"{name} is {shown(value)}; it must be {rule}")


def checked_bool(name: str, value: object, error: type[ConfigError]) -> bool:
    """Return a truth value.

    Raises:
        ConfigError: Of the class `error`: if it is none.
    """
    if not isinstance(value, bool):
        raise error(f"{name} is {shown(value)}; it must be true or false, without quotes")
    return value


def toml_value(value: object) -> str:
    """Return a string, truth value, number, list or table as it is written on one line of TOML.

    >>> toml_value({"scale": 2.0, "the name": ["a", 1e-5]})
    '{ scale = 2.0, "the name" = ["a", 1e-05] }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # JSON's escapes are TOML's; only DEL, which TOML wants escaped, is plain in JSON.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = [f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    assert isinstance(value, list | tuple), f"{type(value)} has no TOML form here"
    return f"[{', '.join(toml_value(item) for item in value)}]"


def toml_key(name: str) -> str:
    """Return a key, quoted if it has to be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)
