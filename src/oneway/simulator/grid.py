"""Grids of independent runs: in parallel on this machine or on a Ray cluster, and remembered."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import joblib
import msgspec

from oneway.display.progress import progress_bar
from oneway.errors import ClusterError, ConfigError, StoreError, needs_extra
from oneway.files.atomic import write_atomically
from oneway.sentences import cut, shown
from oneway.simulator.run import Run

Key = TypeVar("Key", bound=Hashable)
LOCAL = "local"
_PACKAGE = Path(__file__).parents[1]
_PORT = 6379
"""The default port of `ray start --head`."""
_JOIN_SECONDS = 60.0
_AT_ONCE = 8
"""Jobs per core that are given to Ray together; their results come back together."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray prints the log of every lost machine to stdout, where results go.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}


def run_grid(
    function: Callable[..., Any],
    jobs: Mapping[Key, tuple[Any, ...]],
    *,
    workers: Workers | None = None,
    num_workers: int | None = None,
    threads: bool = False,
    folder: Path | None = None,
    described: Callable[[Key], Any] = repr,
    kind: Any = Any,
    progress: bool | None = False,
    tick: Callable[[], None] = lambda: None,
) -> dict[Key, Any]:
    """Return the result of every job, remembered or computed in parallel.

    A finished job is stored at once, under a hash of its description, of this package's source code
    and of the module that the function is in: an interrupted grid continues, and changed code runs
    again. Files that cannot be read are ignored.

    Args:
        function: Computes a result; a function of a module, if results are to be stored.
        jobs: Its arguments, by key.
        workers: Where jobs run; on this machine by default.
        num_workers: At most this many at a time; one for each core by default.
        threads: Use threads, which suffice where all work is compiled.
        folder: Where results are stored, made if it does not exist; None to store none.
        described: All that determines the result of a key, for JSON. A job whose description names
            something by its address in memory, such as a lambda, is not stored.
        kind: The type of a result.
        progress: Whether there is a progress bar; None for one in a terminal.
        tick: Called after every job, for a progress bar of the caller's own.

    Raises:
        StoreError: The folder cannot be written.
        ClusterError: A worker was lost.
        OnewayError: An error that a job raised.
    """
    found: dict[Key, Any] = {}
    paths: dict[Key, Path | None] = dict.fromkeys(jobs)
    if folder is not None:
        paths = {key: _path(folder, function, described(key)) for key in jobs}
        found = {key: read[0] for key, path in paths.items() if (read := _stored(path, kind))}
    todo = {key: rest for key, rest in jobs.items() if key not in found}
    calls = ((_keyed, key, function, *rest) for key, rest in todo.items())
    with progress_bar("runs", len(jobs), progress) as bar:
        for _ in found:
            tick()
        for key, result in (workers or Workers()).results(
            calls, num_workers=num_workers, threads=threads
        ):
            _store(paths[key], result)
            found[key] = result
            bar.update(len(found))
            tick()
    return {key: found[key] for key in jobs}


def require_complete(run: Run) -> Run:
    """The run, if Ctrl-C did not end it early: an incomplete run must not be stored."""
    if not run.record.complete:
        raise KeyboardInterrupt
    return run


# Finished jobs.


def _path(folder: Path, function: Callable[..., Any], described: Any) -> Path | None:
    content = [function.__qualname__, described, source_hash(function.__module__)]
    text = json.dumps(content, sort_keys=True, default=repr)
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    return None if " at 0x" in text else folder / f"{name}.json"


@cache
def source_hash(module: str) -> str:
    """A hash of all Python files of this package, and of those beside the module."""
    found = hashlib.sha256()
    file = getattr(sys.modules[module], "__file__", None)
    beside = () if file is None else Path(file).parent.glob("*.py")
    for path in sorted({*_PACKAGE.rglob("*.py"), *beside}):
        name = path.relative_to(_PACKAGE) if path.is_relative_to(_PACKAGE) else path.name
        found.update(str(name).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def _stored(path: Path | None, kind: Any) -> tuple[Any] | None:
    """The stored result, alone in a tuple, as it may be None itself."""
    if path is None:
        return None
    try:
        return (msgspec.convert(json.loads(path.read_bytes()), kind),)
    except (OSError, ValueError):
        return None


def _store(path: Path | None, result: Any) -> None:
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(result, default=msgspec.to_builtins).encode())
    except OSError as error:
        raise StoreError(
            f"cannot store finished runs in {path.parent}: {error.strerror or error}; choose "
            "another folder"
        ) from error


def _keyed(key: Key, function: Callable[..., Any], *arguments: Any) -> tuple[Key, Any]:
    return key, function(*arguments)


# Where jobs run.


class Workers:
    """Threads or processes of this machine."""

    def shared(self, value: Any) -> Callable[[], Any]:
        """A function that returns the value in a worker, for an argument of many jobs.

        Joblib writes large arrays to a memory map once, which all processes open.
        """
        return partial(_same, value)

    def results(
        self,
        jobs: Iterable[tuple[Any, ...]],
        *,
        num_workers: int | None = None,
        threads: bool = False,
    ) -> Iterator[Any]:
        """The results of jobs `(function, *arguments)` as they finish, in any order.

        Args:
            jobs: Read as workers become free.
            num_workers: At most this many at a time; one for each core by default.
            threads: Use threads, which suffice where all work is compiled.

        Raises:
            ClusterError: A worker was lost.
            OnewayError: An error that a job raised.
        """
        parallel = joblib.Parallel(
            n_jobs=num_workers or os.cpu_count(),
            prefer="threads" if threads else "processes",
            return_as="generator_unordered",
        )
        with warnings.catch_warnings():
            # Joblib replaces idle workers in a thread, which warns first. Where warnings are
            # errors that thread would end, and its jobs never would.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
            try:
                yield from parallel(joblib.delayed(function)(*rest) for function, *rest in jobs)
            except BrokenExecutor as error:
                raise ClusterError(
                    "a worker process of this machine was killed, probably out of memory",
                    remedy="run fewer at a time with jobs=1",
                    flag_remedy="run fewer at a time with --jobs 1",
                ) from error


class RayWorkers(Workers):
    """Processes of a Ray cluster that this process is connected to, through joblib's backend."""

    def shared(self, value: Any) -> Callable[[], Any]:
        """A function that returns the value in a worker; the object store has it once."""
        import ray

        return partial(ray.get, ray.put(value))

    def results(
        self,
        jobs: Iterable[tuple[Any, ...]],
        *,
        num_workers: int | None = None,
        threads: bool = False,
    ) -> Iterator[Any]:
        """See `Workers.results`; results come in groups."""
        import ray
        from ray.util.joblib import register_ray

        register_ray()
        count = num_workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = iter(jobs)
        with joblib.parallel_config(backend="ray", n_jobs=count), joblib.Parallel() as parallel:
            while group := list(islice(waiting, _AT_ONCE * count)):
                try:
                    yield from parallel(joblib.delayed(_alone)(*job) for job in group)
                except ray.exceptions.RayError as error:
                    raise ClusterError(
                        f"a worker of the Ray cluster was lost ({cut(_one_line(error))}), probably "
                        "out of memory; look at its machines with ray status"
                    ) from error


def _same(value: Any) -> Any:
    return value


def _alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a Ray worker, which has one core."""
    import numba

    numba.set_num_threads(1)
    return function(*arguments)


@contextmanager
def open_workers(on: str = LOCAL) -> Iterator[Workers]:
    """The workers for a block.

    Args:
        on: "local"; "ray" for the cluster of the environment variable RAY_ADDRESS, or else one
            that is started on this machine for the block; or "ray://HOST:PORT".

    Raises:
        ConfigError: `on` has another form.
        ClusterError: The cluster does not answer.
        MissingExtraError: Ray is not installed.
    """
    if on == LOCAL:
        yield Workers()
        return
    found = re.fullmatch(r"ray(?:://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+)(?::(\d{1,5}))?)?", str(on))
    if found is None:
        raise ConfigError(
            f"on is {shown(on)}; it must be local, ray, or ray://HOST:PORT with the address that "
            f"ray start --head prints, such as ray://10.0.0.7:{_PORT}"
        )
    with needs_extra("a Ray cluster", "ray"):
        import ray
    if ray.is_initialized():  # the session of the caller, who also ends it
        if found[1]:
            raise ConfigError(
                f"on is {shown(on)}, and this process is connected to a Ray cluster already; call "
                "ray.shutdown() first, or use that cluster with on='ray'"
            )
        yield RayWorkers()
        return
    address = f"{found[1]}:{found[2] or _PORT}" if found[1] else os.environ.get("RAY_ADDRESS")
    before, usual = dict(os.environ), signal.getsignal(signal.SIGTERM)
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        _begin(ray, address)
        yield RayWorkers()
    finally:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, usual or signal.SIG_DFL)  # Ray takes it
        os.environ.clear()
        os.environ.update(before)


def _begin(ray: Any, address: str | None) -> None:
    """Start a cluster on this machine, or join the one at an address, in bounded time."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address in (None, "local"):
        try:
            ray.init(address="local", include_dashboard=False, **quiet)
        except Exception as error:  # Ray has no class for it
            raise ClusterError(
                f"Ray cannot start on this machine: {cut(_one_line(error))}"
            ) from error
        return
    assert address is not None
    failure: list[Exception] = []

    def join() -> None:
        try:
            ray.init(address=address.removeprefix("ray://"), **quiet)
        except Exception as error:  # raised below, in the thread that waits
            failure.append(error)

    thread = threading.Thread(target=join, name="join Ray", daemon=True)
    thread.start()
    thread.join(_JOIN_SECONDS)
    if thread.is_alive() or failure:
        why = cut(_one_line(failure[0])) if failure else f"no answer in {_JOIN_SECONDS:.0f} seconds"
        raise ClusterError(
            f"the Ray cluster at {address} cannot be joined ({why}); give the port of ray start "
            f"--head, and run ray start --address={address} on this machine first"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
