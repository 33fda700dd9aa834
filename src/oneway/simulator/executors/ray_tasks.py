"""Ray executor: a task for every job, on every core of a cluster; arrays are sent once."""

from __future__ import annotations

import io
import pickle
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numba
import numpy as np

from oneway.errors import ClusterError, OnewayError
from oneway.sentences import cut
from oneway.simulator.executors.base import ATTEMPTS, EXECUTORS, Executor, Job
from oneway.simulator.ray_cluster import Cluster, connected

_SENT_APART = 100_000
"""Arrays of so many bytes go into the object store, once; smaller ones with every job."""
_AHEAD = 2
"""Jobs that are sent for each core: one runs, another waits for it there."""


@contextmanager
def opened(address: str | None) -> Iterator[Executor]:
    """Tasks on the cluster at an address; see `connected` for what holds without one."""
    with connected(address) as cluster:
        tasks = RayTasks(cluster)
        try:
            yield tasks
        finally:
            tasks.close()


class RayTasks:
    """Tasks of one core each; Ray runs one again elsewhere when its worker or machine is lost."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._arrays = SentArrays(cluster)

    def results(
        self, jobs: Iterable[Job], *, num_workers: int | None = None, threads: bool = False
    ) -> Iterator[Any]:
        """See `Executor`; what is not finished when the caller ends is cancelled."""
        import ray

        run = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(_run)
        most = num_workers or _AHEAD * self._cluster.cores
        waiting, begun = iter(jobs), list[Any]()
        try:
            while True:
                for job in islice(waiting, most - len(begun)):
                    packed, arrays = self._arrays.packed(job)
                    begun.append(run.remote(packed, *arrays))
                if not begun:
                    return
                [finished], begun = ray.wait(begun)
                yield _result(finished)
        finally:
            for task in begun:
                ray.cancel(task, force=True)

    def close(self) -> None:
        """Let the object store forget the arrays."""
        self._arrays.clear()


class SentArrays:
    """Large arrays by where they are in memory, each in the object store once.

    They stay there as long as they live here.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._references: dict[tuple[Any, ...], Any] = {}

    def packed(self, job: Job) -> tuple[bytes, list[Any]]:
        """A job without its large arrays, and these as references in their order.

        Raises:
            ClusterError: They do not fit into the object store of every machine.
        """
        from ray import cloudpickle

        found: dict[tuple[Any, ...], np.ndarray] = {}

        class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
            def persistent_id(self, value: Any) -> int | None:
                if not isinstance(value, np.ndarray) or value.nbytes < _SENT_APART:
                    return None
                if value.dtype.hasobject:
                    return None
                key = _place(value)
                found.setdefault(key, value)
                return list(found).index(key)

        content = io.BytesIO()
        Pickler(content, protocol=5).dump((job.function, job.arguments))
        needed = sum(array.nbytes for array in found.values())
        self._cluster.require_store(needed, "the data of a run")
        return content.getvalue(), [self._sent(*item) for item in found.items()]

    def _sent(self, key: tuple[Any, ...], array: np.ndarray) -> Any:
        import ray

        if key not in self._references:
            self._references[key] = ray.put(np.asarray(array))
            # Another array may be at that place later.
            weakref.finalize(_owner(array), self._references.pop, key, None).atexit = False
        return self._references[key]

    def clear(self) -> None:
        """Forget all of them."""
        self._references.clear()


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, arrays: tuple[np.ndarray, ...]) -> None:
        super().__init__(io.BytesIO(content))
        self._arrays = arrays

    def persistent_load(self, number: int) -> np.ndarray:
        return self._arrays[number]


def _run(content: bytes, *arrays: np.ndarray) -> Any:
    """Make the call, in a worker, which has one core."""
    numba.set_num_threads(1)
    function, arguments = _Unpickler(content, arrays).load()
    return function(*arguments)


def _result(task: Any) -> Any:
    import ray

    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        # Ray wraps what a task raised in an error whose text is a page.
        raise error.cause from (None if isinstance(error.cause, OnewayError) else error)
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"a run was lost with its worker {ATTEMPTS} times, the last time by "
            f"{type(error).__name__} ({cut(' '.join(str(error).split()))}), for want of memory "
            "perhaps; look at the machines of the cluster with ray status"
        ) from error


def _place(array: np.ndarray) -> tuple[Any, ...]:
    """Which numbers in memory an array is: views of the same ones are at the same place."""
    about = array.__array_interface__
    return about["data"][0], array.shape, array.strides, array.dtype.str


def _owner(array: np.ndarray) -> np.ndarray:
    """The array that keeps the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


EXECUTORS.register(opened, name="ray")
