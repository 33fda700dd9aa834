"""Ray cluster session: connect, check every machine before anything is sent, disconnect."""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import platform
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from oneway.errors import ClusterError, ConfigError, needs_extra
from oneway.files.memory import spoken_bytes
from oneway.sentences import cut, shown

PORT = 6379
"""What `ray start --head` listens on unless told otherwise."""
ADDRESS = "RAY_ADDRESS"
"""Ray's own environment variable: the cluster to use."""
_AUTHENTICATION = "RAY_AUTH_MODE"
"""Ray's own: `token` where a cluster asks for one."""
_GREETING_SECONDS = 5.0
_JOIN_SECONDS = 60.0
_PROBE_SECONDS = 60.0
_STORE = "object_store_memory"
_PACKAGES = ("oneway", "numpy", "numba")
"""What must be of one version everywhere, or bits may differ."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray prints every loss of a machine, with its log, to stdout: where results go.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_SETTINGS_FRAME = 4


@dataclass(frozen=True)
class Machine:
    """One machine of a cluster, as Ray says it is.

    Attributes:
        id: Ray's, for scheduling.
        host: Its name or address, for sentences.
        cores: How many tasks of one core it runs at a time.
        store_bytes: The size of its object store.
    """

    id: str
    host: str
    cores: float
    store_bytes: float


@dataclass(frozen=True)
class Cluster:
    """Machines that run tasks, all with this Python and this package.

    Attributes:
        machines: Those that have cores, when the connection was made.
    """

    machines: tuple[Machine, ...]

    @property
    def cores(self) -> int:
        """Tasks of one core that can run at the same time."""
        return int(sum(it.cores for it in self.machines))

    def require_store(self, needed: float, what: str) -> None:
        """Refuse what does not fit into the object store of every machine.

        Args:
            needed: How many bytes a machine must hold at the same time.
            what: What needs them: the beginning of a sentence.

        Raises:
            ClusterError: The smallest object store is smaller.
        """
        least = min(self.machines, key=lambda it: it.store_bytes)
        if needed > least.store_bytes:
            raise ClusterError(
                f"{what} needs {spoken_bytes(needed)} in the object store of every machine, and "
                f"{least.host} has {spoken_bytes(least.store_bytes)}; start Ray there with a "
                f"larger one: ray start --object-store-memory {int(1.25 * needed)} ..."
            )


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of a cluster's address; the port is Ray's default if there is none.

    Raises:
        ConfigError: It has another form.

    >>> host_and_port("head:6380"), host_and_port("10.0.0.7"), host_and_port("[::1]:6379")
    (('head', 6380), ('10.0.0.7', 6379), ('::1', 6379))
    """
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+)(?::(\d{1,5}))?", address)
    port = int(found[2] or PORT) if found else 0
    if found is None or not 0 < port < 2**16:
        raise ConfigError(
            f"the address of a cluster is {shown(address)}; it must be HOST:PORT as ray start "
            f"--head prints it, such as 10.0.0.7:{PORT}"
        )
    return found[1].strip("[]"), port


@contextmanager
def connected(address: str | None = None) -> Iterator[Cluster]:
    """Connect this process to a Ray cluster for the block.

    A session of Ray that this process has already is used and left as it is. Otherwise one is
    begun, and ended with the block: on the cluster at the address, on the one that RAY_ADDRESS
    names, or on one of this machine alone that is started for the block.

    Args:
        address: HOST:PORT of the cluster's head; None as said above.

    Raises:
        ClusterError: Nothing answers there, or a machine has another Python, another Ray, another
            version of this package or none.
        ConfigError: The address has another form, or this process has a session elsewhere.
        MissingExtraError: Ray is not installed.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    with needs_extra("a Ray cluster", "ray"):
        import ray
    address = address or os.environ.get(ADDRESS, "").removeprefix("ray://") or None
    if ray.is_initialized():
        if address not in (None, "auto", "local"):
            _check_same(address, str(ray.get_runtime_context().gcs_address))
        yield _checked(ray)
        return
    with _authentication_kept():
        _begin(ray, None if address == "local" else address)
        try:
            yield _checked(ray)
        finally:
            ray.shutdown()


@contextmanager
def _authentication_kept() -> Iterator[None]:
    """Leave this process as it was: a cluster that Ray starts here makes it ask for tokens.

    It would ask the next cluster, too, and one that was started without them then loses every
    actor before it runs.
    """
    before = os.environ.get(_AUTHENTICATION)
    try:
        yield
    finally:
        if os.environ.get(_AUTHENTICATION) != before:
            del os.environ[_AUTHENTICATION]  # Ray sets it where it was not set
            raylet = importlib.import_module("ray._raylet")
            raylet.Config.initialize("")
            raylet.AuthenticationTokenLoader.instance().reset_cache()


def _begin(ray: Any, address: str | None) -> None:
    """Start a session, in bounded time."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address is None:
        _start_here(ray, options | {"address": "local", "include_dashboard": False})
    elif address == "auto":
        _join(ray, options | {"address": "auto"}, address)
    else:
        host, port = host_and_port(address)
        _greet(host, port)
        at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        _join(ray, options | {"address": at}, address)


def _start_here(ray: Any, options: Mapping[str, Any]) -> None:
    """Start Ray on this machine; in this thread, since its processes end with the one they have."""
    in_main = threading.current_thread() is threading.main_thread()
    usual = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options)
    except Exception as error:  # whatever it is, Ray has no class for it
        raise ClusterError(
            f"Ray cannot be started on this machine: {cut(' '.join(str(error).split()))}"
        ) from error
    finally:
        if in_main and usual is not None:
            signal.signal(signal.SIGTERM, usual)  # Ray takes it


def _join(ray: Any, options: Mapping[str, Any], address: str) -> None:
    """Join a cluster that answers.

    In a thread, because Ray goes on trying for a quarter of an hour where something else than a
    head is; it also leaves the signal handlers of this process alone there.
    """
    where = f"the Ray cluster at {address}"
    failure: list[BaseException] = []

    def start() -> None:
        try:
            if address != "auto":  # a head refuses at once whom Ray lets try for half a minute
                importlib.import_module("ray._raylet").GcsClient(address=options["address"])
            ray.init(**options)
        except BaseException as error:  # told in the thread that waits
            failure.append(error)

    thread = threading.Thread(target=start, name="join Ray", daemon=True)
    with _errors_unheard():
        thread.start()
        thread.join(_JOIN_SECONDS)
    if thread.is_alive():
        raise ClusterError(
            f"{where} did not let this machine join within {_JOIN_SECONDS:.0f} seconds; give the "
            f"port of ray start --head ({PORT} by default, not 10001 of Ray's client), and run "
            f"ray start --address={address} on this machine, too"
        )
    if failure:
        raise ClusterError(_why(failure[0], where, address)) from failure[0]


@contextmanager
def _errors_unheard() -> Iterator[None]:
    """Keep from stderr what Ray's native code writes there, every second."""
    sys.stderr.flush()
    usual, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(usual, 2)
        os.close(usual)
        os.close(nowhere)


def _greet(host: str, port: int) -> None:
    """See that a head listens: it speaks HTTP/2, whose server answers at once."""
    said = f"the Ray cluster at {host}:{port} does not answer"
    remedy = "start it with ray start --head on that machine, and give the address it prints"
    try:
        with socket.create_connection((host, port), _GREETING_SECONDS) as connection:
            connection.settimeout(_GREETING_SECONDS)
            connection.sendall(_HTTP2)
            answer = connection.recv(9)
    except OSError as error:
        raise ClusterError(f"{said} ({error.strerror or error}); {remedy}") from None
    if len(answer) < 4 or answer[3] != _SETTINGS_FRAME:
        raise ClusterError(f"{said} as Ray does: something else listens there; {remedy}")


def _why(error: BaseException, where: str, address: str) -> str:
    """One sentence of what Ray says in many."""
    text = " ".join(str(error).split())
    versions = re.search(
        r"started with: Ray: (\S+) Python: (\S+) .*started with: Ray: (\S+) Python: (\S+)", text
    )
    if versions:
        both = "Ray {} and Python {}, and this machine Ray {} and Python {}"
        return f"{where} runs {both.format(*versions.groups())}; install the same on both"
    if type(error).__name__ == "AuthenticationError":  # older versions of Ray have none
        return (
            f"{where} asks for a token; set {_AUTHENTICATION}=token here, and have the token of "
            "its head in ~/.ray/auth_token or in RAY_AUTH_TOKEN"
        )
    return (
        f"{where} cannot be joined ({cut(text)}); run ray start --address={address} on this "
        "machine first"
    )


def _check_same(wanted: str, current: str) -> None:
    host, port = host_and_port(wanted)
    here, known_port = host_and_port(current)
    if port != known_port or _resolved(host) != _resolved(here):
        raise ConfigError(
            f"the cluster at {wanted} is asked for, and this process is connected to {current}; "
            "call ray.shutdown() first, or leave the address out"
        )


def _resolved(host: str) -> str:
    try:
        found = socket.gethostbyname(host)
        # Ray knows a machine by its own address, also where it was called localhost.
        return socket.gethostbyname(socket.gethostname()) if found.startswith("127.") else found
    except OSError:
        return host


def _checked(ray: Any) -> Cluster:
    """The machines, after each has said what it runs."""
    machines = tuple(
        Machine(it["NodeID"], it["NodeManagerAddress"], cores, it["Resources"].get(_STORE, 0.0))
        for it in ray.nodes()
        if it["Alive"] and (cores := it["Resources"].get("CPU", 0.0)) >= 1
    )
    if not machines:
        raise ClusterError(
            "no machine of the Ray cluster has a core to run tasks on; start Ray on one with "
            "--num-cpus 1 or more"
        )
    own = installed()
    probe = ray.remote(num_cpus=0, max_retries=0)(_by_value(_PACKAGES))
    at = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    asked = {
        probe.options(scheduling_strategy=at(it.id, soft=False)).remote(): it for it in machines
    }
    done, late = ray.wait(list(asked), num_returns=len(asked), timeout=_PROBE_SECONDS)
    for reference in late:
        ray.cancel(reference, force=True)
    if late:
        raise ClusterError(
            f"machine {asked[late[0]].host} of the Ray cluster did not answer within "
            f"{_PROBE_SECONDS:.0f} seconds; run ray stop there, and ray start again"
        )
    for reference in done:
        try:
            _compare(asked[reference].host, own, ray.get(reference))
        except ray.exceptions.RayError as error:
            raise ClusterError(
                f"machine {asked[reference].host} of the Ray cluster cannot run a task "
                f"({cut(' '.join(str(error).split()))}); run ray stop there, and ray start again"
            ) from error
    return Cluster(machines)


def installed() -> dict[str, str]:
    """Versions of what must be the same on every machine, and a hash of this package's code."""
    return _by_value(_PACKAGES)()


def _by_value(packages: tuple[str, ...]) -> Callable[[], dict[str, str]]:
    """A function that travels as code, for a machine that has not this package to call it from."""

    def probe() -> dict[str, str]:
        found = {"Python": platform.python_version()}
        for name in packages:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = ""
        try:
            home = Path(str(importlib.import_module(packages[0]).__file__)).parent
        except ImportError:
            return {**found, packages[0]: ""}
        found[packages[0]] = str(importlib.import_module(packages[0]).__version__)
        code = hashlib.sha256()
        for path in sorted(home.rglob("*.py")):
            code.update(path.relative_to(home).as_posix().encode() + path.read_bytes())
        return {**found, "code": code.hexdigest()}

    return probe


def _compare(host: str, own: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    for name, wanted in own.items():
        found = theirs.get(name, "")
        if found == wanted:
            continue
        if name == "code":
            raise ClusterError(
                f"machine {host} of the Ray cluster has other code of oneway {own['oneway']} than "
                "this one; install the same commit there, and start Ray there anew"
            )
        what = f"{name} {found}" if found else f"no {name}"
        raise ClusterError(
            f"machine {host} of the Ray cluster has {what}, and this one {name} {wanted}; install "
            "the same version there, in the environment that Ray was started in"
        )
