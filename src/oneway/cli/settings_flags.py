"""Command-line flags derived from the specification: one for every setting, none by hand."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
import typer

from oneway.errors import ConfigError

_LISTS = ("transforms", "columns", "exclude", "numeric")
"""Settings whose flag takes several names, with commas between them or given again."""
_SEVERAL = ("options", "category", "function", *_LISTS)
"""Settings whose flag may be given several times."""
_BESIDES = "besides_"
"""How parameters of another specification are told from settings of the same name."""


def with_flags(
    command: Callable[..., None],
    *,
    only: tuple[str, ...] = (),
    leave_out: tuple[str, ...] = (),
    defaults: Mapping[str, str] | None = None,
    besides: type | None = None,
) -> Callable[..., None]:
    """A command with a flag for every setting, which gets those that were used as `given`.

    Args:
        command: Its first argument is `given: Mapping[str, Any]`.
        only: These settings; all if there are none.
        leave_out: All but these.
        defaults: What holds without a flag, in words, where the command has a default of its own.
        besides: Another specification, a dataclass: there is a flag for each of its fields, too,
            and the command gets those that were used as its second argument.
    """
    from oneway.task.learning import spelled_out
    from oneway.task.settings import flag_names

    names = [name for name in flag_names(leave_out) if not only or name in only]
    others = [] if besides is None else [_flag(name, "", besides) for name in fields_of(besides)]
    first = 1 if besides is None else 2
    own = list(inspect.signature(command, eval_str=True).parameters.values())[first:]
    flags = [_flag(name, (defaults or {}).get(name, "")) for name in names]
    if "method" in names:
        flags += [_former("algorithm", str), _former("cap_step", bool)]
    parameters = [*flags, *others, *own]

    def run(**values: Any) -> None:
        given = {
            flag.name: _parsed(flag.name, value)
            for flag in flags
            if (value := values.pop(flag.name)) not in (None, [])
        }
        used = {
            flag.name.removeprefix(_BESIDES): value
            for flag in others
            if (value := values.pop(flag.name)) is not None
        }
        command(spelled_out(given), *([used] if besides else []), **values)

    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def fields_of(kind: type) -> list[str]:
    """The fields of a specification, in order."""
    return list(inspect.signature(kind).parameters)


def _flag(name: str, in_words: str, besides: type | None = None) -> inspect.Parameter:
    """The flag of a setting: its help, choices and default are the specification's."""
    from oneway.task.privacy import PRIVACY_KEYS, Privacy
    from oneway.task.settings import Settings

    owner = besides or (Privacy if name in PRIVACY_KEYS else Settings)
    hint = get_type_hints(owner, include_extras=True)[name]
    [meta] = [each for each in get_args(hint)[1:] if isinstance(each, msgspec.Meta)]
    base, extra = _plain(get_args(hint)[0]), meta.extra or {}
    default = inspect.signature(owner).parameters[name].default
    description = meta.description or ""
    text = description[:1].upper() + description[1:]
    if "registry" in extra:
        text += f": {', '.join(extra['registry'])}"
    # What takes long to import is looked up only for those who read it.
    if "choices" in extra and {"--help", "-h"} & set(sys.argv):
        with suppress(ModuleNotFoundError):
            text += f": {', '.join(extra['choices']())}"
    shown: Any = in_words or (str(default) if isinstance(default, str | int | float) else False)
    declaration = f"--{(extra.get('flag') or name).replace('_', '-')}"
    option = typer.Option(
        *([f"{declaration}/--no-{declaration[2:]}"] if base is bool and default else [declaration]),
        metavar=extra.get("metavar") or None if base is not bool else "",
        help=f"{text}.",
        show_default=shown if base is not bool else False,
        rich_help_panel=extra.get("panel"),
    )
    kind: Any = (list[str] if name in _SEVERAL else base) | None
    return _parameter(name if besides is None else _BESIDES + name, kind, option)


def _former(name: str, kind: Any) -> inspect.Parameter:
    return _parameter(name, kind | None, typer.Option(f"--{name.replace('_', '-')}", hidden=True))


def _parameter(name: str, kind: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
    )


def _plain(hint: Any) -> Any:
    """The type a flag is parsed as: numbers and truth values are told apart, the rest is text.

    What may be a number or a word is text too, until `_parsed` looks at it.
    """
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    kinds = [_plain(each) for each in get_args(hint) if each is not type(None)]
    for kind in (bool, int, float):
        if hint is kind or (kind in kinds and str not in kinds):
            return kind
    return str


def _parsed(name: str, value: Any) -> Any:
    from oneway.task.learning import parse_options

    if name == "options":
        return parse_options(value)
    if name in ("clip", "learning_rate"):
        with suppress(ValueError):
            return float(value)
    if name in ("category", "function"):
        return tuple(value)
    if name in _LISTS:
        return tuple(part.strip() for text in value for part in text.split(",") if part.strip())
    return value


def read_given(
    given: Mapping[str, Any], *files: Any, note: Callable[[str], None] = lambda _: None
) -> Any:
    """The settings that files and flags describe together; flags win.

    Raises:
        ConfigError: A file cannot be read, or a setting is unknown or has a wrong value.
    """
    from oneway.task.settings import read_settings

    sentences: list[str] = []
    settings = read_settings(tuple(files), given, sentences.append)
    if given.get("cap_step") and not settings.build_method().has_mass:
        raise ConfigError(
            f"cap_step shortens steps by a node's mass, and {settings.method} has no mass; leave "
            "it out"
        )
    for sentence in sentences:  # not before an error: that is one sentence
        note(sentence)
    return settings
