"""Command-line flags derived from the specification: one for every setting, none by hand."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
import typer

_LISTS = ("transforms", "columns", "exclude", "numeric")
"""Settings whose flag takes several names, with commas between them or given again."""
_SEVERAL = ("options", "category", *_LISTS)
"""Settings whose flag may be given several times."""
_SECOND = "second_"
"""Prefix of parameters of a second specification, which may have settings of the same name."""

Command = Callable[..., None]


def with_flags(
    *,
    only: tuple[str, ...] = (),
    leave_out: tuple[str, ...] = (),
    defaults: Mapping[str, str] | None = None,
    besides: type | None = None,
    but: tuple[str, ...] = (),
) -> Callable[[Command], Command]:
    """Decorate a command with a flag for every setting; it gets the flags in use as a mapping.

    Args:
        only: The settings to have flags for; all if empty.
        leave_out: Settings without a flag.
        defaults: Defaults to show in the help, where the command has its own.
        besides: Another specification, a dataclass: there is a flag for each of its fields, too,
            and the command gets those in use as its second argument.
        but: Fields of it that the command has flags of its own for.
    """

    def decorate(command: Command) -> Command:
        return _decorated(command, only, leave_out, defaults or {}, besides, but)

    return decorate


def _decorated(
    command: Command,
    only: tuple[str, ...],
    leave_out: tuple[str, ...],
    defaults: Mapping[str, str],
    besides: type | None,
    but: tuple[str, ...],
) -> Command:
    from oneway.task.learning import expand_model
    from oneway.task.settings import flag_names

    names = flag_names(leave_out)
    flags = [_flag(name, defaults.get(name, "")) for name in names if not only or name in only]
    of_second = () if besides is None else inspect.signature(besides).parameters
    fields = [name for name in of_second if name not in but]
    second = [_flag(name, "", besides) for name in fields]
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    parameters = [*flags, *second, *own[1 if besides is None else 2 :]]

    def run(**values: Any) -> None:
        given = {
            flag.name: _parsed(flag.name, value)
            for flag in flags
            if (value := values.pop(flag.name)) not in (None, [])
        }
        given_second = {
            flag.name.removeprefix(_SECOND): value
            for flag in second
            if (value := values.pop(flag.name)) is not None
        }
        command(expand_model(given), *([given_second] if besides else []), **values)

    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


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
    if "choices" in extra:
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
    return inspect.Parameter(
        name if besides is None else _SECOND + name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind, option],
    )


def _plain(hint: Any) -> Any:
    """The type that a flag is parsed as: a number, a truth value, or text for all others.

    A setting that may be a number or a word is text here, until `_parsed` looks at it.
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
    if name == "category":
        return tuple(value)
    if name in _LISTS:
        return tuple(part.strip() for text in value for part in text.split(",") if part.strip())
    return value


def read_given(given: Mapping[str, Any], *files: Any, allow: list[str] | None = None) -> Any:
    """Return the settings that files and flags describe together; flags win.

    Raises:
        ConfigError: A file cannot be read, or a setting is unknown or has a wrong value.
    """
    from oneway.task.settings import read_settings

    return read_settings(tuple(files), given, allow or ())
