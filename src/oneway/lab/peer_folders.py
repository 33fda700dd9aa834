"""The folders of a lab: one per peer, with keys, trust as the graph has it, and its own samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from oneway.errors import ConfigError, OnewayError
from oneway.files.output_folder import mark, part_of
from oneway.lab.problem import Problem
from oneway.peer.home.config import DEFAULT_KEEP, PeerConfig
from oneway.peer.home.home import Home
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import read_snapshot
from oneway.records import Ints, Matrix
from oneway.store import FILES as STORED
from oneway.store import RESULT, RUNS
from oneway.tables.arrays import labels_path, save_arrays
from oneway.tables.table import Table
from oneway.task.task import Task

COMMAND = "lab"
"""What the marker of a lab's folder says."""
SAMPLES_FILE = "samples.csv"
ARRAYS_FILE = "samples.npy"
TASK_FILE = "task.toml"
LOG_FILE = "peer.log"
_LAB_FILES = (TASK_FILE, RESULT, *(f"{RUNS}/*/{name}" for name in STORED))
_PEER_FILES = (
    TASK_FILE,
    LOG_FILE,
    "key.secret",
    "peer.toml",
    ".peer.toml.*",
    "peers.toml",
    ".peers.toml.*",
    "peers.toml.lock",
    "peer.lock",
    "peer.sqlite",
    "peer.sqlite-*",
    "status.json",
    "status.new",
    SAMPLES_FILE,
    ARRAYS_FILE,
    labels_path(Path(ARRAYS_FILE)).name,
)
"""What a lab and its peers write, see `oneway.files.output_folder`."""

Content = TypeVar("Content")


class CachedFile(Generic[Content]):
    """Read-through cache of a file: reads it again only when it was written anew."""

    def __init__(self, path: Path, read: Callable[[Path], Content]) -> None:
        self._path = path
        self._read = read
        self._version: object = None
        self._content: Content | None = None

    def get(self) -> Content | None:
        """What the file holds, or last held when it could be read; None if it never could."""
        try:
            facts = self._path.stat()
            version = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
            if version != self._version:
                self._content, self._version = self._read(self._path), version
        except (OSError, OnewayError):
            pass  # it is being written by hand: the peer goes on as before, and so does the lab
        return self._content


class PeerFolder:
    """One peer of a lab: what it is told, and what it says about itself.

    Attributes:
        home: Its folder.
        card: By which other peers know it.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self.card = home.config().card(home.keys().public)
        self._config = CachedFile(home.peers_path, lambda _: home.config())
        self._status = CachedFile(home.status_path, lambda _: home.status())
        self.status = self._status.get

    @property
    def name(self) -> str:
        """What it is called."""
        return self.card.name

    @property
    def key(self) -> bytes:
        """Its public key."""
        return self.card.key

    @property
    def samples_path(self) -> Path:
        """What it learns from."""
        arrays = self.home.folder / ARRAYS_FILE
        return arrays if arrays.exists() else self.home.folder / SAMPLES_FILE

    @property
    def log_path(self) -> Path:
        """What its process printed."""
        return self.home.folder / LOG_FILE

    @property
    def config(self) -> PeerConfig:
        """What it is told."""
        return self._config.get() or self.home.config()

    def change(self, how: Callable[[PeerConfig], PeerConfig]) -> None:
        """Change what the peer is told; if it runs, it follows."""
        self.home.change(how)

    def snapshot(self) -> Snapshot | None:
        """What its store holds; None if it never had one.

        Raises:
            StoreError: If the store is damaged.
        """
        path = self.home.store_path
        return read_snapshot(path) if path.exists() else None


def running_peers(folder: Path) -> list[str]:
    """The peers in a lab's folder whose process runs."""
    homes = [Home(path.parent) for path in folder.glob("*/peer.toml")]
    return [home.folder.name for home in homes if home.running_process() is not None]


def make_peers(
    folder: Path, problem: Problem, new_address: Callable[[], str], transport: str = "zeromq"
) -> list[PeerFolder]:
    """Make all peers of a problem, connected as its graph says.

    Raises:
        ConfigError: If the folder holds something already or cannot be written, or a share of the
            graph is nothing a peer can be told.
    """
    write_task(folder, problem.task)
    mark(folder, COMMAND, _LAB_FILES)
    mixing = problem.task.build_method().shares(problem.graph)
    shares = np.eye(len(problem.names)) if mixing is None else mixing.toarray()
    peers = [
        make_peer(
            folder / name,
            new_address(),
            problem.table,
            problem.rows_of(node),
            transport=transport,
            keep=float(shares[node, node]) if shares[node, node] < 1 else DEFAULT_KEEP,
            allow=problem.task.code_names,
        )
        for node, name in enumerate(problem.names)
    ]
    for node, peer in enumerate(peers):
        peer.change(partial(_connected, peers, shares, node))
    return peers


def make_peer(
    folder: Path,
    address: str,
    table: Table,
    rows: Ints,
    *,
    transport: str = "zeromq",
    keep: float = DEFAULT_KEEP,
    allow: Iterable[str] = (),
) -> PeerFolder:
    """Make one peer that trusts nobody yet, with these rows of a table as its samples.

    Transport, the share it keeps, and the code that its task may name are settings of the peer.
    """
    task = folder.parent / TASK_FILE
    home = Home.create(
        folder, folder.name, task, address, transport=transport, keep=keep, allow=allow
    )
    mark(folder, part_of(COMMAND), _PEER_FILES)
    peer = PeerFolder(home)
    write_samples(peer.samples_path, table, rows, peer.home.task())
    return peer


def write_task(folder: Path, task: Task, about: str = "") -> None:
    """Write the task that all peers share into a new or empty folder; `about` is a comment of it.

    Raises:
        ConfigError: If the folder holds something already, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(
                f"{folder} is not empty, and a lab starts from nothing; choose another folder"
            )
        (folder / TASK_FILE).write_text(task.to_toml(about), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot make a lab in {folder}: {error.strerror}") from error


def write_samples(path: Path, table: Table, rows: Ints, task: Task) -> Path:
    """Write rows of a table in its own units, so that a peer reads back the simulator's numbers.

    Arrays become a `.npy` file with the labels beside it, all else the CSV file that is named.
    """
    if table.is_arrays:
        path = path.with_suffix(".npy")
        labels = table.frame[table.encoder.label][rows].to_list()
        save_arrays(path, table.arrays(rows), np.array(labels))
        return path
    others = [name for name in task.columns if name not in (*task.encoder.names, task.label)]
    table.write_csv(path, rows, others)
    return path


def _connected(
    peers: Sequence[PeerFolder], mixing: Matrix, node: int, config: PeerConfig
) -> PeerConfig:
    """Let a peer trust and admit others so that its shares are a row of the mixing."""
    own_key = peers[node].key
    for other, peer in enumerate(peers):
        if other != node and mixing[node, other]:
            share = float(mixing[node, other])
            config = config.with_receiver(peer.card, share, own_key=own_key)
        if other != node and mixing[other, node]:
            config = config.with_sender(peer.card, own_key=own_key)
    return config
