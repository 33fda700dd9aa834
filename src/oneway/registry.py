"""Registry: the implementations of one kind by name, and plugins that add to it.

Every kind (model, method, transform, step rule, data set, transport) has one registry; command line
choices, TOML checks, labels and pages all read it. One call adds an entry:

    oneway.methods.METHODS.register(MyMethod)

A process that does not run the user's own script (the command line, a real peer of a lab) finds the
call in a plugin: a module named by the environment variable ONEWAY_PLUGINS, or by an
installed package's entry point in the group `oneway.plugins`. Plugins are imported once, when a
registry is first read.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from oneway.errors import ConfigError, OnewayError
from oneway.sentences import cut, listed, nearest, shown

PLUGINS = "ONEWAY_PLUGINS"
"""Environment variable: modules to import, separated by commas."""
GROUP = "oneway.plugins"
"""Entry point group of installed packages that extend oneway."""

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")

T = TypeVar("T")
E = TypeVar("E")
_loaded = False


class Registry(Generic[T]):
    """Entries of one kind by name, in the order in which they were registered."""

    def __init__(self, kind: str) -> None:
        """Make an empty registry.

        Args:
            kind: What an entry is, in the singular, for sentences: "model".
        """
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, entry: E, name: str | None = None) -> E:
        """Add an entry; usable as a decorator.

        Args:
            entry: A class or value with an attribute `name`, unless the name is given.
            name: How the command line and TOML files call it.

        Raises:
            ConfigError: Another entry has that name. A class may be registered again after it
                was redefined, as when a cell of a notebook runs twice.
        """
        chosen: Any = name or getattr(entry, "name", None)
        added = cast("T", entry)
        if not isinstance(chosen, str) or not chosen:
            raise ConfigError(f"a {self.kind} needs a name to be registered; {entry!r} has none")
        present = self._entries.get(chosen, added)
        if present is not added and not _is_redefined(present, added):
            raise ConfigError(
                f"there is a {self.kind} {chosen!r} already; register yours under another name"
            )
        self._entries[chosen] = added
        return entry

    def __getitem__(self, name: str) -> T:
        """Return an entry by name.

        Raises:
            ConfigError: There is none; suggests the nearest name.
        """
        load_plugins()
        if not isinstance(name, str) or name not in self._entries:
            near = nearest(name, self._entries) if isinstance(name, str) else ""
            raise ConfigError(
                f"{self.kind} is {shown(name)}; it must be one of {listed(self._entries)}{near}"
            )
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        load_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        return iter(dict(self._entries))

    def __len__(self) -> int:
        load_plugins()
        return len(self._entries)

    def items(self) -> list[tuple[str, T]]:
        """Names and entries, in the order in which they were registered."""
        load_plugins()
        return list(self._entries.items())

    def values(self) -> list[T]:
        """Entries, in the order in which they were registered."""
        return [entry for _, entry in self.items()]


def _is_redefined(before: object, after: object) -> bool:
    """Whether two classes or functions come from the same definition, run twice."""
    places = [
        (getattr(it, "__module__", None), getattr(it, "__qualname__", None))
        for it in (before, after)
    ]
    return places[0] == places[1] and None not in places[0]


def load_plugins() -> None:
    """Import the plugins of this installation, once a process.

    Raises:
        ConfigError: A plugin cannot be imported; names it.
    """
    global _loaded
    if _loaded:
        return
    _loaded = True
    named = [name.strip() for name in os.environ.get(PLUGINS, "").split(",") if name.strip()]
    for module in [*named, *(point.module for point in entry_points(group=GROUP))]:
        try:
            import_module(module)
        except Exception as error:  # whatever is wrong in somebody else's code
            _loaded = False
            raise ConfigError(
                f"the plugin {module} cannot be imported ({type(error).__name__}: {error}); "
                f"repair it, or remove it from {PLUGINS} or uninstall its package"
            ) from error


def describe(entry: Any) -> dict[str, Any]:
    """Name and parameters of a registered dataclass value, in terms JSON can hold.

    Parameters that describe themselves are asked; functions become their `repr`; infinity, which
    JSON lacks, becomes "infinite".
    """
    return {"name": entry.name} | {
        field.name: _plain(getattr(entry, field.name)) for field in fields(entry)
    }


def _plain(value: Any) -> Any:
    if hasattr(value, "describe"):
        described = value.describe()
        return described["name"] if described.keys() == {"name"} else described
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "infinite" if value > 0 else repr(value)
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def build(registry: Registry[Any], name: str, options: Mapping[str, Any], **given: Any) -> Any:
    """Make an entry from plain options, as a TOML file or flags give them.

    Args:
        registry: Where the entry, a dataclass, is registered.
        name: Its name.
        options: Parameters by name, from a user.
        given: Parameters by name, from the program.

    Raises:
        ConfigError: There is no such entry, it has no such parameter, or a value breaks its rule.
    """
    entry = registry[name]
    known = [field.name for field in fields(entry) if field.init and field.name not in given]
    for option in options:
        if option not in known:
            there = nearest(option, known) or (
                f"; it has {listed(known)}" if known else "; it has none"
            )
            raise ConfigError(f"{registry.kind} {name} has no option {shown(option)}{there}")
    try:
        return entry(**given, **options)
    except TypeError as error:
        raise ConfigError(
            f"{registry.kind} {name} cannot be made from {shown(str(dict(options)))}: {error}"
        ) from None


def installed_function(path: str) -> Callable[..., Any]:
    """Return the function that `package.module:function` names, by importing its module.

    This runs code: names from files must pass `require_allowed` first.

    Raises:
        ConfigError: The name is malformed, its module cannot be imported, or has no such function.
    """
    if not _FUNCTION.fullmatch(path):
        raise ConfigError(
            f"function is {shown(path)}; it must be package.module:function, code that is "
            "installed at every site"
        )
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except Exception as reason:
        raise ConfigError(
            f"function {path} cannot be imported here ({cut(str(reason) or repr(reason))}); "
            f"install the {module.partition('.')[0]} that has it, or set PYTHONPATH"
        ) from None
    if not callable(found):
        raise ConfigError(f"{path} is {shown(found)}; it must be a function")
    called: Callable[..., Any] = found
    return called


def code_names(value: object) -> list[str]:
    """Return every `package.module:function` among the texts of a nested value, each once.

    >>> code_names({"module": "my.nets:small", "loss": "squared", "arguments": {"size": 3}})
    ['my.nets:small']
    """
    if isinstance(value, str):
        return [value] if _FUNCTION.fullmatch(value) else []
    parts = value.values() if isinstance(value, Mapping) else value
    if not isinstance(parts, Iterable):
        return []
    return list(dict.fromkeys(name for part in parts for name in code_names(part)))


def require_allowed(
    value: object, where: str, allow: Collection[str], error: type[OnewayError] = ConfigError
) -> None:
    """Check that the owner of this machine has listed all code that a file names.

    Args:
        value: What the file says, nested as it is there; nothing of it has been imported.
        where: The file, for the error.
        allow: The names that may be imported and called.
        error: The class of what is raised.

    Raises:
        OnewayError: Of the class `error`: the file names code that is not listed.
    """
    if unlisted := [name for name in code_names(value) if name not in allow]:
        names = ", ".join(f'"{name}"' for name in [*allow, *unlisted])
        flags = " ".join(f"--allow {name}" for name in unlisted)
        raise error(
            f"{where} names the code {listed(unlisted)}, which runs on this machine only if its "
            f"owner allows exactly that name; if you trust it, use {flags}, or in a "
            f"peer's folder the line allow = [{names}] of peer.toml"
        )
