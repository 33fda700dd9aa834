"""Engine choice: which engine carries the rounds of a run out, and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from oneway.errors import ConfigError, GraphError
from oneway.files.memory import require_memory, spoken_bytes
from oneway.files.typed_values import checked, whole_number
from oneway.methods import Method
from oneway.models import Model
from oneway.records import Ints, NetworkState
from oneway.simulator import fast_engine
from oneway.simulator.delayed_engine import DelayedEngine
from oneway.simulator.exchange import Mixing
from oneway.simulator.measurements import Measurements, Seed
from oneway.simulator.network import Network
from oneway.simulator.reference_engine import ReferenceEngine
from oneway.simulator.snapshots import Reader, Snapshot
from oneway.streams import Stream
from oneway.task.settings import ENGINES
from oneway.topology.partition import checked_partition

EngineName: TypeAlias = str
"""auto, reference, fast, ray or ray://HOST:PORT."""
Precision: TypeAlias = Literal["float64", "float32"]
"""How nodes hold what they hold."""
Parts: TypeAlias = int | ArrayLike | Path
"""How many parts, the part of each node, or a file with those (.npy, or text with one a line)."""
_COPIES = 6
"""How often the parameters of all nodes are in memory at the same time, about."""


class Engine(Protocol):
    """What carries the rounds out.

    Attributes:
        pace: Seconds between two looks at the clock, the progress bar and Ctrl-C.
    """

    name: str
    pace: float

    @property
    def state(self) -> NetworkState:
        """What all nodes hold now."""

    def advance(self, first: int, last: int, mixing: Mixing | None) -> None:
        """Run some rounds with the same shares, filling the measurements."""

    def begin_again(self) -> None:
        """Make everything anew, as it is before the first round, after a part was lost."""

    def finish(self, num_rounds: int) -> None:
        """Measure what is known of the last of so many rounds only."""

    def snapshots(self) -> Iterator[tuple[str, Snapshot]]:
        """All that has to be known to go on, piece by piece."""

    def restore_from(self, read: Reader) -> None:
        """Go on from pieces, to be read by name."""


@dataclass(frozen=True, eq=False)
class EngineChoice:
    """What a user asks for; see `simulate`.

    Raises:
        ConfigError: There is no such engine, or an argument is for another one.
        GraphError: The number of parts is not one.
    """

    engine: EngineName = "auto"
    delays: tuple[int, int] | None = None
    parts: Parts | None = None
    disagreement_every: int | None = None
    precision: Precision = "float64"

    def __post_init__(self) -> None:
        checked("precision", self.precision, Precision)
        if not isinstance(self.engine, str) or self._kind not in ENGINES:
            raise ConfigError(
                f"engine={self.engine!r} is unknown; it is 'auto', 'reference', 'fast' or 'ray', "
                "which may be ray://HOST:PORT"
            )
        if not self.on_ray:
            for name in ("parts", "disagreement_every"):
                if getattr(self, name) is not None:
                    raise ConfigError(
                        f"{name} is {getattr(self, name)!r} and engine={self.engine!r} runs in one "
                        "process; leave it out, or choose engine='ray'"
                    )
            return
        if self.precision != "float64":
            raise ConfigError(
                f"precision is {self.precision!r} and engine={self.engine!r}; parts hold float64 "
                "only: leave one of the two out, or choose engine='fast'"
            )
        if self.delays is not None:
            raise ConfigError(
                f"delays are {self.delays!r} and engine={self.engine!r}; pushes take time in the "
                "reference engine only: leave engine out"
            )
        if self.parts is not None and self._is_count:
            whole_number("parts", self.parts, 1, GraphError)
        if self.disagreement_every is not None:
            whole_number("disagreement_every", self.disagreement_every, 1, ConfigError)

    @property
    def _kind(self) -> str:
        return self.engine.partition("://")[0] if self.engine.startswith("ray:") else self.engine

    @property
    def _is_count(self) -> bool:
        given: Any = self.parts
        return not isinstance(given, str | Path) and np.ndim(given) == 0

    @property
    def on_ray(self) -> bool:
        """Whether the network is to be spread over a Ray cluster."""
        return self._kind == "ray"

    @property
    def elsewhere(self) -> dict[str, Any]:
        """What other runs of the same network have to be told, if it may not fit in here."""
        told = ("engine", "parts", "disagreement_every") if self.on_ray else ()
        return {name: getattr(self, name) for name in (*told, "precision")}

    def held_type(self, model: Model) -> np.dtype[Any]:
        """What the parameters of all nodes are held in."""
        return np.dtype(np.float32 if self.precision == "float32" else model.dtype)

    def needed_memory(self, model: Model, stream: Stream) -> float:
        """About how many bytes this process needs for what all nodes hold."""
        copies = 2 if self.on_ray else _COPIES
        size = float(self.held_type(model).itemsize) * model.dim(stream.dim)
        return copies * size * stream.num_nodes

    def begin(
        self,
        method: Method,
        model: Model,
        stream: Stream,
        network: Network,
        measurements: Measurements,
        seed: Seed,
        stack: ExitStack,
    ) -> tuple[Any, dict[str, Any]]:
        """The engine, and what is to be said about it; the stack ends what it needs.

        Raises:
            OnewayError: The engine cannot run this.
        """
        single = self.precision == "float32"
        about: dict[str, Any] = {"precision": self.precision} if single else {}
        given = (method, model, stream, measurements, seed)
        supported = fast_engine.supports(method, model)
        if self.on_ray:
            return self._begin_on_ray(given, network, supported, stack)
        if self.delays is not None:
            self._check_delays(network)
            about["delays"] = list(self.delays)
            return DelayedEngine(*given, delays=self.delays), about
        if self.engine == "fast" and not supported:
            raise ConfigError(
                f"engine='fast' has no kernel for {_both(method, model)}; it knows {_known()} with "
                "the built-in step rules, without transforms, with the linear models; "
                "engine='reference' runs everything"
            )
        kind: Any = ReferenceEngine
        if supported and self.engine != "reference":
            kind = fast_engine.FastEngine
        if self.engine == "auto":
            needed = spoken_bytes(self.needed_memory(model, stream))
            about["engine_reason"] = f"one process: what its nodes hold, {needed}, fits in memory"
        return kind(*given, single=single), about

    def _begin_on_ray(
        self, given: Any, network: Network, supported: bool, stack: ExitStack
    ) -> tuple[Any, dict[str, Any]]:
        method, model, stream, *_ = given
        if not supported or method.exchange == "average":
            raise ConfigError(
                f"engine='ray' has no kernel for {_both(method, model)}; it runs what engine='fast'"
                " does, but for methods with a server: choose engine='fast' or engine='reference'"
            )
        part_of, count = None, None
        if self.parts is not None and self._is_count:
            count = whole_number("parts", self.parts, 1, GraphError)
        elif self.parts is not None:
            given_parts = self.parts
            if isinstance(given_parts, str | Path):
                given_parts = read_partition(Path(given_parts))
            part_of = checked_partition(given_parts, stream.num_nodes)
        # Only who asks for it needs Ray.
        from oneway.simulator.ray_parts import begin_on_ray

        address = self.engine.removeprefix("ray").removeprefix("://") or None
        return begin_on_ray(given, network, address, part_of, count, self.disagreement_every, stack)

    def _check_delays(self, network: Network) -> None:
        pair: Any = self.delays if isinstance(self.delays, tuple | list) else ()
        if not ([type(it) for it in pair] == [int, int] and 1 <= pair[0] <= pair[1]):
            raise ConfigError(
                f"delays are {self.delays!r}; they must be two whole numbers of rounds, the "
                "shortest from 1 on and the longest not below it"
            )
        if self.engine == "fast" or not network.constant:
            raise ConfigError(
                f"delays are {self.delays!r} and engine={self.engine!r}, with "
                f"{'one graph' if network.constant else 'graphs that change'}; pushes take time in "
                "the reference engine only, over one graph: leave engine out, or give one graph"
            )
        if self.precision != "float64":
            raise ConfigError(
                f"delays are {self.delays!r} and precision is {self.precision!r}; pushes that take "
                "time are simulated in float64 only, leave one of the two out"
            )


def read_partition(path: Path) -> Ints:
    """The part of each node from a file: an array in .npy, or text with a number a line.

    Raises:
        GraphError: It cannot be read, or holds something else.
    """
    try:
        if path.suffix == ".npy":
            found: Ints = np.load(path, allow_pickle=False)
        else:
            found = np.loadtxt(path, np.int64, ndmin=1)
    except (OSError, ValueError, EOFError) as error:
        raise GraphError(
            f"the partition {path} cannot be read ({error}); give the number of parts, a .npy "
            "file, or text with the part of a node on each line"
        ) from None
    return found


def check_memory(model: Model, stream: Stream, choice: EngineChoice) -> None:
    """Refuse a network that does not fit into the memory of this machine.

    Raises:
        ConfigError: It does not; where parts hold it, its models at the end do not.
    """
    remedy = "use fewer nodes, or fewer features"
    if not choice.on_ray:
        remedy += ", or spread them over several machines with engine='ray'"
    require_memory(
        choice.needed_memory(model, stream),
        f"{stream.num_nodes:,} nodes with {model.dim(stream.dim):,} parameters each: a simulation "
        "of them",
        ConfigError,
        remedy=remedy,
        flag_remedy=remedy.replace("engine='ray'", "--engine ray"),
    )


def _both(method: Method, model: Model) -> str:
    return f"{type(method).__name__} with {type(model).__name__}"


def _known() -> str:
    return ", ".join(kind.name for kind in fast_engine.COMPILED)
