"""Functions of one's own: from a raw cell to numbers, by code that every site has installed.

A task names such a function as `package.module:function` and never carries its code. What it makes
of a few fixed texts is its digest, by which sites notice that they have another version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import TaskError
from oneway.registry import installed_function
from oneway.sentences import shown
from oneway.tables.names import spelled

PROBES = ("oneway", "Two words, and 3.5 more.", "\N{GREEK SMALL LETTER OMEGA} \N{SNOWMAN}")
"""What a function is tried with; whatever it makes of them must be the same everywhere."""
DIGITS = 4
"""So many significant digits count: machines differ in the last ones."""


@lru_cache
def find_function(path: str) -> Callable[[object], Any]:
    """Return the function that `package.module:function` names; a TaskError if there is none."""
    return installed_function(path, TaskError)


@lru_cache
def probed(path: str) -> tuple[tuple[int, ...] | None, str]:
    """Return the shape of what a function gives, and its digest; None if it refuses texts.

    Raises:
        TaskError: If there is no such function, it gives no finite numbers, arrays of several
            shapes, or something else for the same text.
    """
    results = [(_tried(path, text), _tried(path, text)) for text in PROBES]
    shapes = {one.shape for one, _ in results if isinstance(one, np.ndarray)}
    if len(shapes) > 1:
        raise TaskError(
            f"function {path} gives {' and '.join(map(spelled, sorted(shapes)))} for different "
            "texts; it must give as many numbers for every cell"
        )
    said = [_said(one) for one, _ in results]
    if said != [_said(again) for _, again in results]:
        raise TaskError(
            f"function {path} gives other numbers for the same text; it must not depend on chance "
            "or on what came before"
        )
    shape = shapes.pop() if shapes else None
    return shape, hashlib.sha256("\n".join([str(shape), *said]).encode()).hexdigest()[:16]


def refusal(path: str) -> str:
    """The kind of error with which a function refuses the first text it is tried with."""
    return str(_tried(path, PROBES[0]))


def _tried(path: str, text: str) -> NDArray[np.float64] | str:
    """What a function makes of a text; the kind of error if it refuses it."""
    try:
        result = find_function(path)(text)
    except TaskError:
        raise
    except Exception as error:
        return type(error).__name__
    try:
        numbers = np.atleast_1d(np.asarray(result, dtype=np.float64))
    except (TypeError, ValueError):
        raise TaskError(
            f"function {path} gives {shown(result)}; it must give an array or a list of numbers"
        ) from None
    if not np.isfinite(numbers).all():
        raise TaskError(
            f"function {path} gives {shown(result)} for the text {shown(text)}; it must give "
            "finite numbers"
        )
    return numbers


def _said(result: NDArray[np.float64] | str) -> str:
    if isinstance(result, str):
        return result
    return ",".join(f"{number + 0.0:.{DIGITS}g}" for number in result.ravel().tolist())
