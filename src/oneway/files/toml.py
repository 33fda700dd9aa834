"""TOML files that people write by hand: read with sentences, changed with comments kept."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import tomlkit

from oneway.errors import ConfigError, OnewayError
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
            near = nearest(str(key), names) or f"; there are {listed(names)}"
            raise error(f"{where} has no key {shown(key)}{near}")
    return table


def toml_value(value: object) -> str:
    """Return a string, truth value, number, list or table as it is written on one line of TOML.

    >>> toml_value({"scale": 2.0, "the name": ["a", 1e-5]})
    '{scale = 2.0, "the name" = ["a", 1e-05]}'
    """
    if isinstance(value, Mapping):
        inline = tomlkit.inline_table()
        inline.update(value)
        return inline.as_string()
    return tomlkit.item(value).as_string()


def toml_key(name: str) -> str:
    """Return a key, quoted if it has to be."""
    return tomlkit.key(name).as_string()


def toml_lines(table: Mapping[str, object], comments: Mapping[str, str]) -> list[str]:
    """Return a table line by line, each key with its comment, if it has one."""
    lines = [(f"{toml_key(name)} = {toml_value(value)}", name) for name, value in table.items()]
    return [f"{line:<32}  # {comments[name]}" if name in comments else line for line, name in lines]


def changed_toml(
    text: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    identify: Callable[[Mapping[str, Any]], object],
) -> str:
    """Return a TOML text with the changes between two tables; all else stays, comments too.

    Args:
        text: Describes `before`, perhaps in fewer words: defaults may be left out.
        before: Keys with values, tables, and lists of tables.
        after: The same, changed.
        identify: What an item of a list of tables is known by, whatever else of it changes.

    Raises:
        ValueError: The layout is so unusual that its sections cannot be told apart.
    """
    document, written = tomlkit.parse(text), {name for name, _ in _sections(text)}
    for name, value in before.items():
        is_plain = not isinstance(value, list | Mapping)
        if not (is_plain or name in written or value == after.get(name)):
            # Written on one line, if at all: it becomes sections like all others.
            document.pop(name, None)
            before = {**before, name: type(value)()}
    old, new = _tables(before, identify), _tables(after, identify)
    # Section by section: in a whole document, tomlkit would move the comments above headers.
    sections, unseen = [], list(old)
    for name, section in _sections(tomlkit.dumps(document)):
        known = next((each for each in unseen if each[0] == name), None)
        if known is None:
            raise ValueError(f"[{name}] is part of a text, not the header of a table")
        unseen.remove(known)
        if known in new:
            sections.append((name, _changed(name, section, old[known], new.pop(known))))
    for known, values in new.items():
        if values != old.get(known):
            name, is_many = known[0], isinstance(after[known[0]], list)
            others = [place for place, each in enumerate(sections, 1) if each[0] == name]
            place = max(others, default=len(sections))
            header = f"[[{name}]]" if is_many else f"[{name}]"
            gap = [] if sections[place - 1][1].endswith("\n\n") else [""]
            below = [""] if place < len(sections) else []
            lines = [*gap, header, *toml_lines(values, {}), *below, ""]
            sections.insert(place, (name, "\n".join(lines)))
    return "".join(section for _, section in sections)


def _tables(
    table: Mapping[str, Any], identify: Callable[[Mapping[str, Any]], object]
) -> dict[tuple[str, object], Mapping[str, Any]]:
    """The tables within a table, by name and identity; the one without a name has its values."""
    values: dict[str, Any] = {}
    tables: dict[tuple[str, object], Mapping[str, Any]] = {("", None): values}
    for name, value in table.items():
        if isinstance(value, list):
            tables |= {(name, identify(item)): item for item in value}
        elif isinstance(value, Mapping):
            tables[name, None] = value
        else:
            values[name] = value
    return tables


def _changed(name: str, section: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    document = tomlkit.parse(section)
    table: Any = document[name] if name else document
    changes = {key: value for key, value in new.items() if old.get(key) != value}
    (table[0] if isinstance(table, list) else table).update(changes)
    return tomlkit.dumps(document)


def _sections(text: str) -> list[tuple[str, str]]:
    """Split a text where tables begin; the comment right above a header belongs to its table."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    names, starts = [""], [0]
    for number, line in enumerate(lines):
        header = re.match(r"\s*\[\[?\s*([\w-]+)", line)
        if header:
            start = number
            while start > starts[-1] and lines[start - 1].lstrip().startswith("#"):
                start -= 1
            names.append(header[1])
            starts.append(start)
    ends = [*starts[1:], len(lines)]
    return [
        (name, "".join(lines[start:end]))
        for name, start, end in zip(names, starts, ends, strict=True)
    ]
