"""Executor interface: jobs in, results as they come; a name, and maybe an address, says where.

A new one is a file with a class and one call:

    EXECUTORS.register(opened, name="elsewhere")

where `opened(address)` is a context manager that connects, checks, yields the executor and ends
what it started. Command line and Python then take `elsewhere` and `elsewhere://address`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from oneway.errors import ConfigError
from oneway.registry import Registry
from oneway.sentences import shown

DEFAULT = "local"
ATTEMPTS = 4
"""A job is given up after it, or its worker, was lost so many times."""


@dataclass(frozen=True, eq=False)
class Job:
    """A call to be made somewhere else.

    Attributes:
        function: Of a module, so that another process can import it.
        arguments: Values that can be pickled and are not changed afterwards; large arrays that
            several jobs have in common are sent once.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self) -> Any:
        """Make it here."""
        return self.function(*self.arguments)


class Executor(Protocol):
    """Workers, in this process or elsewhere."""

    def results(
        self, jobs: Iterable[Job], *, num_workers: int | None = None, threads: bool = False
    ) -> Iterator[Any]:
        """What the jobs return, as they finish, in any order.

        A job whose worker is lost is run again.

        Args:
            jobs: Read as workers become free.
            num_workers: So many at a time; None for one on each core.
            threads: Whether threads do, because all work is compiled.

        Raises:
            ClusterError: Workers of a job were lost again and again.
            OnewayError: Whatever a job raised, as it was raised.
        """


Opened: TypeAlias = Callable[[str | None], AbstractContextManager[Executor]]
EXECUTORS: Registry[Opened] = Registry("executor")
"""Where runs can run, by the name that `on` has before "://"; called with what comes after it."""


def opened(on: str = DEFAULT) -> AbstractContextManager[Executor]:
    """The executor for a block, by its name and maybe an address: "local", "ray://head:6379".

    Raises:
        ConfigError: There is no such executor, or the address has another form.
        OnewayError: It cannot be reached.
    """
    if not isinstance(on, str):
        raise ConfigError(f"on is {shown(on)}; it must be one of {', '.join(EXECUTORS)}")
    name, colon, address = on.partition("://")
    if colon and not address:
        raise ConfigError(f"on is {shown(on)}; give an address after ://, or leave both out")
    return EXECUTORS[name](address or None)
