"""Memo of a function of large read-only arrays, by identity, for as long as the array lives.

States share the arrays that do not change, and the same digest or extent of millions of numbers is
asked for again and again: to sign, to answer and to compare, and before everything that is said.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import ref

from oneway.protocol.fixed_point import Fixed, extent

LARGE_BYTES = 1 << 16
"""Results for smaller arrays are not cached: computing them takes no longer than a lookup."""

Result = TypeVar("Result")


def once_per_array(function: Callable[[Fixed], Result]) -> Callable[[Fixed], Result]:
    """The function, computed once per large array that cannot be written to.

    Arrays that can be written to are never cached, and never changed: a read has no side effects.
    """
    known: dict[int, tuple[ref[Fixed], Result]] = {}

    @wraps(function)
    def remembered(array: Fixed) -> Result:
        if array.nbytes < LARGE_BYTES or array.flags.writeable:
            return function(array)
        name = id(array)
        found = known.get(name)
        if found is not None and found[0]() is array:
            return found[1]
        result = function(array)
        known[name] = ref(array, lambda _: known.pop(name, None)), result
        return result

    return remembered


extent_of_all = once_per_array(extent)
"""The largest absolute number of an amount."""
