"""TOML files: read with readable errors, written line by line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from oneway.errors import ConfigError


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
    """Return the table that a TOML text describes.

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


def toml_value(value: object) -> str:
    """Return a string, truth value, number, list or table as it is written on one line of TOML.

    >>> toml_value({"scale": 2.0, "the name": ["a", 1e-5]})
    '{scale = 2.0, "the name" = ["a", 1e-05]}'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # JSON escapes all that TOML wants escaped, but for one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        items = (f"{toml_key(name)} = {toml_value(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, Iterable):
        return f"[{', '.join(map(toml_value, value))}]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def toml_key(name: str) -> str:
    """Return a key, quoted if it has to be."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_lines(table: Mapping[str, object], comments: Mapping[str, str]) -> list[str]:
    """Return a table line by line, each key with its comment, if it has one."""
    lines = [(f"{toml_key(name)} = {toml_value(value)}", name) for name, value in table.items()]
    return [f"{line:<32}  # {comments[name]}" if name in comments else line for line, name in lines]


def toml_text(table: Mapping[str, Any], comments: Mapping[str, str], header: str = "") -> str:
    """Return a table as a file: a header, plain values, then tables and lists of tables."""
    names = [name for name, value in table.items() if _is_section(value)]
    plain = {name: value for name, value in table.items() if name not in names}
    lines = [*header.splitlines(), *toml_lines(plain, comments)]
    for name in names:
        value = table[name]
        for item in value if isinstance(value, list) else [value]:
            title = f"[[{toml_key(name)}]]" if isinstance(value, list) else f"[{toml_key(name)}]"
            lines += ["", title, *toml_lines(item, comments if item is value else {})]
    return "\n".join([*lines, ""])


def _is_section(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(item, Mapping) for item in value)
    )
