"""How a key of a task or of the settings is declared: description, choices and bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Meta

from oneway.errors import ConfigError
from oneway.files.validation import nearest_of
from oneway.registry import Registry


def one_of(
    registry: Registry[Any], description: str, metavar: str = "NAME", also: tuple[str, ...] = ()
) -> Meta:
    """Metadata of a key whose value is the name of a registered entry, or a word besides."""

    def check(name: str) -> str:
        if name not in registry and name not in also:
            raise ConfigError(nearest_of(name, (*registry, *also)))
        return name

    return Meta(
        description=description,
        extra={"check": check, "registry": registry, "metavar": metavar, "panel": "Learning"},
    )


def key(
    description: str,
    metavar: str = "",
    panel: str = "Learning",
    choices: Callable[[], Iterable[str]] | None = None,
    flag: str = "",
    check: Callable[[Any], Any] | None = None,
    **bounds: Any,
) -> Meta:
    """Metadata of any other key: what it means, names to choose from, and bounds.

    Its flag is called as the key, unless `flag` says otherwise. A `check` returns the value, or
    raises a `ConfigError` for what bounds cannot say.
    """
    extra: dict[str, Any] = {"metavar": metavar, "panel": panel, "flag": flag}
    if choices is not None:
        extra["choices"] = choices
    if check is not None:
        extra["check"] = check
    return Meta(description=description, extra=extra, **bounds)
