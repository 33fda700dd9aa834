"""Snapshots: all that an engine has to know to go on, as arrays by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from oneway.errors import StoreError

Snapshot: TypeAlias = dict[str, np.ndarray]
"""Arrays by name. They may be those of the engine itself: to be written, or copied, at once."""
Reader: TypeAlias = Callable[[str], Snapshot]
"""Reads a piece of a checkpoint by its name."""


class LostPartError(Exception):
    """A part of the network is gone, with all that its nodes held."""


class InOneProcess:
    """An engine that holds all nodes in this process: its state is one snapshot.

    Attributes:
        pace: Seconds between two looks at the clock, the progress bar and Ctrl-C.
    """

    pace = 0.1

    def begin_again(self) -> None:
        """Nothing: no part of it can be lost."""

    def finish(self, num_rounds: int) -> None:
        """Nothing: all is measured in every round."""

    def snapshot(self) -> Snapshot:
        """All that has to be known to go on from here."""
        raise NotImplementedError

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot."""
        raise NotImplementedError

    def snapshots(self) -> Iterator[tuple[str, Snapshot]]:
        """The snapshot, by a name."""
        yield "nodes", self.snapshot()

    def restore_from(self, read: Reader) -> None:
        """Go on from what `read` gives by that name."""
        self.restore(read("nodes"))


def copy_into(arrays: Mapping[str, np.ndarray], snapshot: Snapshot) -> None:
    """Fill arrays from those of the same names.

    Raises:
        StoreError: One is missing, or has another shape or type.
    """
    for name, array in arrays.items():
        stored = snapshot.get(name)
        if stored is None or (stored.shape, stored.dtype) != (array.shape, array.dtype):
            found = "missing" if stored is None else f"{stored.dtype}{list(stored.shape)}"
            raise StoreError(
                f"{name} in the checkpoint is {found} and must be {array.dtype}"
                f"{list(array.shape)}; delete the checkpoint to start from the first round"
            )
        array[...] = stored


def rng_as_array(rng: np.random.Generator) -> np.ndarray:
    """The state of a random generator, as the bytes of a JSON text."""
    return np.frombuffer(json.dumps(_plain(rng.bit_generator.state)).encode(), np.uint8)


def set_rng(rng: np.random.Generator, stored: np.ndarray) -> None:
    """Give a random generator the state that `rng_as_array` has told."""
    rng.bit_generator.state = json.loads(stored.tobytes())


def with_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> Snapshot:
    """The same arrays under longer names."""
    return {prefix + name: array for name, array in arrays.items()}


def without_prefix(prefix: str, snapshot: Snapshot) -> Snapshot:
    """The arrays whose names begin so, under the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in snapshot.items()
        if name.startswith(prefix)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
