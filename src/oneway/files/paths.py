"""Path arguments: a name of a file or folder, told from a value that was meant to be in it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from oneway.errors import OnewayError
from oneway.sentences import shown


def as_path(value: object, what: str, error: type[OnewayError], remedy: str) -> Path:
    """Return a path that is one.

    Args:
        value: What a caller gave.
        what: What it is called in a sentence.
        error: The class of what is raised.
        remedy: What takes a table or an array instead, or where to find the path.

    Raises:
        OnewayError: Of the class `error`, if it is anything else, say a DataFrame, or empty.

    >>> as_path([1, 2], "the edge list", OnewayError, "use from_edges")
    Traceback (most recent call last):
    ...
    oneway.errors.OnewayError: the edge list is a list of 2, not the path of a file; use from_edges
    """
    # Nothing, say of an unset variable, would be the current folder.
    if isinstance(value, str | PathLike) and value != "":
        return Path(value)
    raise error(f"{what} is {shown(value)}, not the path of a file; {remedy}")
