"""The folders of a lab: one per peer, with keys, trust as the graph has it, and its own samples."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from oneway.errors import ConfigError
from oneway.lab.problem import Problem
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.home import Home
from oneway.peer.identity.card import Card
from oneway.records import Ints
from oneway.tables.table import Table
from oneway.task.task import Task
from oneway.topology import TrustGraph

SAMPLES_FILE = "samples.csv"
TASK_FILE = "task.toml"


@dataclass(frozen=True)
class Member:
    """One peer of a lab: its folder and the card by which others know it."""

    home: Home
    card: Card

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
        return self.home.folder / SAMPLES_FILE

    def change(self, how: Callable[[PeerConfig], PeerConfig]) -> None:
        """Change what the peer is told; if it runs, it follows.

        Raises:
            ConfigError: If the new configuration breaks a rule, or cannot be written.
        """
        self.home.change(how)


def make_members(folder: Path, problem: Problem, new_address: Callable[[], str]) -> list[Member]:
    """Make all peers of a problem, connected as its graph says.

    Raises:
        ConfigError: If the folder holds something already or cannot be written, or a share of the
            graph is nothing a peer can be told.
    """
    task_path = write_task(folder, problem.task)
    members = [
        make_member(folder / name, task_path, new_address(), problem.table, problem.rows_of(node))
        for node, name in enumerate(problem.names)
    ]
    connect(members, problem.graph)
    return members


def write_task(folder: Path, task: Task) -> Path:
    """Write the task that all peers share into a new or empty folder.

    Raises:
        ConfigError: If the folder holds something already, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(
                f"{folder} is not empty, and a lab starts from nothing; choose another folder"
            )
        path = folder / TASK_FILE
        path.write_text(task.to_toml(), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot make a lab in {folder}: {error.strerror}") from error
    return path


def make_member(folder: Path, task_path: Path, address: str, table: Table, rows: Ints) -> Member:
    """Make one peer that trusts nobody yet, with these rows of a table as its samples."""
    home = Home.create(folder, folder.name, task_path, address)
    write_samples(folder / SAMPLES_FILE, table, rows, home.task())
    return Member(home, home.config().card(home.keys().public))


def write_samples(path: Path, table: Table, rows: Ints, task: Task) -> None:
    """Write rows of a table as they were before they were scaled: what a peer would really get."""
    raw = table.features[rows].astype(float) * table.scales + table.means
    # The features are float32: what is beyond their digits is noise, and long to read.
    decimals = np.clip(6 - np.floor(np.log10(table.scales)), 0, 15).astype(int)
    columns = [column.round(places) + 0.0 for column, places in zip(raw.T, decimals, strict=True)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*table.feature_names, task.label])
        labels = [task.label_name(label) for label in table.labels[rows].tolist()]
        writer.writerows(zip(*(column.tolist() for column in columns), labels, strict=True))


def connect(members: Sequence[Member], graph: TrustGraph) -> None:
    """Let peers trust and admit each other so that their shares are the rows of the mixing."""
    mixing = graph.mixing().tocsr()
    for sender, member in enumerate(members):
        shares = mixing[[sender]].toarray()[0]
        receivers = [
            (members[receiver].card, float(shares[receiver]))
            for receiver in graph.receivers_of(sender)
        ]
        senders = [members[other].card for other in graph.senders_of(sender)]
        keep = float(shares[sender])
        member.change(partial(_connected, member.key, receivers, senders, keep))


def _connected(
    own_key: bytes,
    receivers: Sequence[tuple[Card, float]],
    senders: Sequence[Card],
    keep: float,
    config: PeerConfig,
) -> PeerConfig:
    for card, weight in receivers:
        config = config.with_receiver(card, weight, own_key=own_key)
    for card in senders:
        config = config.with_sender(card, own_key=own_key)
    return replace(config, keep=keep) if config.receivers else config
