"""Every error that `oneway` raises on purpose, one tree under one base class.

A message names the culprit, the value, the rule and the remedy in one sentence; the command line
prints it and exits with code 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class OnewayError(Exception):
    """Base class of everything raised on purpose.

    A remedy that is one call in Python and another flag at the command line is given apart, once
    for each reader; all others stand in the message.

    Attributes:
        for_shell: The sentence for somebody at the command line; `str` is the one for Python.

    >>> error = OnewayError("it is not connected", remedy="call mend()", flag_remedy="add --mend")
    >>> str(error), error.for_shell
    ('it is not connected; call mend()', 'it is not connected; add --mend')
    """

    def __init__(self, message: str, *, remedy: str = "", flag_remedy: str = "") -> None:
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.for_shell = f"{message}; {flag_remedy}" if flag_remedy else str(self)


class GraphError(OnewayError):
    """A trust graph is malformed, or not what the caller needs (say, not strongly connected)."""


class MixingError(GraphError):
    """The shares a node hands out are not a split of what it has."""


class DataError(OnewayError):
    """A table, a label, a sample or a stream breaks a rule."""


class MissingDataError(DataError):
    """A data file is not where it was looked for."""


class TicketError(DataError):
    """A prediction that waits for its label is not there, or cannot be kept."""


class GroupLimitError(DataError):
    """A sample is of a group of which the task allows no more to be learned from."""


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

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class ClusterError(OnewayError):
    """A cluster does not answer, or its machines do not fit this one or the work."""


class LabOverError(OnewayError):
    """A command came to a lab that takes none any more."""


class MissingExtraError(OnewayError):
    """A feature needs packages that are not installed."""


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Import optional packages in the block.

    Args:
        what: What needs them, for the message.
        extra: The extra that brings them.

    Raises:
        MissingExtraError: If one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "oneway").startswith("oneway"):
            raise
        raise MissingExtraError(
            f"{what} needs {error.name}, which is not installed; run: pip install 'oneway[{extra}]'"
        ) from None
