"""Every error that `oneway` raises on purpose, one tree under one base class.

A message names the culprit, the value, the rule and the remedy in one sentence; the command line
prints it and exits with code 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class OnewayError(Exception):
    """Base class of every error that oneway raises on purpose.

    Args:
        message: The sentence, with its remedy if that is the same for all users.
        remedy: The remedy for users of Python.
        flag_remedy: The remedy for users of the command line.

    Attributes:
        for_shell: The sentence for users of the command line; `str` is the one for Python.

    >>> error = OnewayError("it is not connected", remedy="call mend()", flag_remedy="add --mend")
    >>> str(error), error.for_shell
    ('it is not connected; call mend()', 'it is not connected; add --mend')
    """

    def __init__(self, message: str, *, remedy: str = "", flag_remedy: str = "") -> None:
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.for_shell = f"{message}; {flag_remedy}" if flag_remedy else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Not through __init__, which has other arguments: errors are pickled between processes.
        return _restored, (type(self), self.args, vars(self))


def _restored(kind: type[OnewayError], args: tuple[Any, ...], state: dict[str, Any]) -> OnewayError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


class GraphError(OnewayError):
    """A trust graph is malformed, or not what the caller needs (say, not strongly connected)."""


class MixingError(GraphError):
    """The shares a node hands out are not a split of what it has."""


class DataError(OnewayError):
    """A table, a label, a sample or a stream breaks a rule."""


class MissingDataError(DataError):
    """A data file is not where it was looked for."""


class GroupLimitError(DataError):
    """A group has more samples than the task allows."""


class ConfigError(OnewayError):
    """A parameter, a flag or a line of a configuration file is not valid."""


class CardError(ConfigError):
    """A card, the line by which peers introduce each other, is malformed."""


class TaskError(ConfigError):
    """A task file is malformed, or two peers do not have the same task."""


class KeyFileError(OnewayError):
    """A key file is missing, malformed, or readable by others."""


class WireError(OnewayError):
    """Bytes from the network are not a message."""


class TransportError(OnewayError):
    """An address cannot be listened on, or a peer cannot be dialled."""


class CopyError(OnewayError):
    """Another copy of a peer runs with the same key, so this one stopped."""


class DivergenceError(OnewayError):
    """A run left the finite numbers.

    Attributes:
        round_index: The first round in which it happened.
        node: The first node it happened at.
        smallest_mass: The smallest mass in the network at that moment.
    """

    def __init__(self, message: str, *, round_index: int, node: int, smallest_mass: float) -> None:
        super().__init__(message)
        self.round_index = round_index
        self.node = node
        self.smallest_mass = smallest_mass


class ComparatorError(OnewayError):
    """The best fixed model in hindsight does not exist, or was not found accurately enough."""


class StoreError(OnewayError):
    """A stored run is missing, damaged or of another version.

    Attributes:
        reason: The message without the place, for where that stands beside it already.
    """

    def __init__(
        self, message: str, *, reason: str = "", remedy: str = "", flag_remedy: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy, flag_remedy=flag_remedy)
        self.reason = reason or str(self)


class ClusterError(OnewayError):
    """A cluster does not answer, does not fit this machine or the work, or loses its workers."""


class LabOverError(OnewayError):
    """A command came to a lab that is over."""


class MissingExtraError(OnewayError):
    """A feature needs packages that are not installed."""


def install_hint(extra: str) -> str:
    """Return how to install an extra: oneway is not on PyPI, but in a clone of its repository.

    >>> install_hint("torch")
    "run in your clone of oneway: pip install -e '.[torch]'"
    """
    return f"run in your clone of oneway: pip install -e '.[{extra}]'"


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Import optional packages in the block.

    Args:
        what: The feature that needs them, for the message.
        extra: The extra of oneway that has them.

    Raises:
        MissingExtraError: If one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "oneway").startswith("oneway"):
            raise
        raise MissingExtraError(
            f"{what} needs {error.name}, which is not installed; {install_hint(extra)}"
        ) from None
