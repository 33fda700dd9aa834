"""Registry: the implementations of one kind of thing by name, and plugins that add to it.

A kind of thing (model, method, transform, step rule, data set, transport) has one registry; command
line choices, TOML checks, labels and pages all read it. One call adds an entry, from anywhere:

    oneway.methods.METHODS.register(MyMethod)

A process that does not run the user's own script (the command line, a real peer of a lab) finds
such a call in a plugin: a module named by the environment variable ONEWAY_PLUGINS, or by an
installed package's entry point in the group `oneway.plugins`. Plugins are imported once, when a
registry is first read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from oneway.errors import ConfigError
from oneway.sentences import listed, nearest, shown

PLUGINS = "ONEWAY_PLUGINS"
"""Environment variable: modules to import, separated by commas."""
GROUP = "oneway.plugins"
"""Entry point group of installed packages that extend oneway."""

T = TypeVar("T")
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

    def register(self, entry: T, name: str | None = None) -> T:
        """Add an entry; usable as a decorator.

        Args:
            entry: A class or value with an attribute `name`, unless the name is given.
            name: How the command line and TOML files call it.

        Raises:
            ConfigError: Another entry has that name.
        """
        chosen: Any = name or getattr(entry, "name", None)
        if not isinstance(chosen, str) or not chosen:
            raise ConfigError(f"a {self.kind} needs a name to be registered; {entry!r} has none")
        if self._entries.setdefault(chosen, entry) is not entry:
            raise ConfigError(
                f"there is a {self.kind} {chosen!r} already; register yours under another name"
            )
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
