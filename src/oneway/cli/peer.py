"""`oneway peer`: a participant of one's own; here `init` and `card`, which make it known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oneway.cli.lazy_group import LazyGroup, make_group
from oneway.cli.options import Allow, argument, option
from oneway.cli.output import AsJson, note, print_facts, print_json
from oneway.cli.peer_home import HomeFolder, folder_of, open_home
from oneway.errors import OnewayError

if TYPE_CHECKING:
    from oneway.peer.home.config import PeerConfig


_COMMANDS = {
    "task": ("oneway.cli.peer_task:task", "stream.csv --label Occupancy"),
    "init": ("oneway.cli.peer:init", "carol --task task.toml --home carol"),
    "card": ("oneway.cli.peer:card", "--home bob"),
    "trust": ("oneway.cli.peer_trust:trust", "bob.card --weight 2"),
    "admit": ("oneway.cli.peer_trust:admit", "bob.card"),
    "distrust": ("oneway.cli.peer_trust:distrust", "bob"),
    "leave": ("oneway.cli.peer_run:leave", "--home bob"),
    "run": ("oneway.cli.peer_run:run", "--data stream.csv --until-done"),
    "status": ("oneway.cli.peer_status:status", "--json"),
    "doctor": ("oneway.cli.peer_status:doctor", ""),
    "predict": ("oneway.cli.peer_predict:predict", "Temperature=21 Light=430 CO2=750"),
    "export": ("oneway.cli.peer_export:export", "--format onnx"),
    "dashboard": ("oneway.cli.peer_dashboard:dashboard", "--listen 0"),
}


def command_line() -> LazyGroup:
    """The commands of `oneway peer`."""
    return make_group("oneway peer", _COMMANDS, _peer, example="card")


def _peer() -> None:
    """Take part: one process, its own data and keys, one-way trust, no server."""


def init(
    name: Annotated[str, argument("NAME", "What others shall call it.")],
    task: Annotated[Path, option("FILE", "The task.toml that all peers share.")],
    listen: Annotated[
        str | None,
        option(
            "HOST:PORT",
            "Where it listens; 0.0.0.0 is every interface.",
            "127.0.0.1 and a port of its own",
        ),
    ] = None,
    advertise: Annotated[str, option("HOST:PORT", "Where others reach it, if not there.")] = "",
    transport: Annotated[str, option("NAME", "How messages travel; all peers alike.")] = "zeromq",
    allow: Allow = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a peer: a secret key, a peer.toml and a copy of the task, all in one folder."""
    from oneway.peer.home.home import Home

    folder = folder_of(home)
    made = Home.create(
        folder,
        name,
        task,
        listen,
        advertise=advertise,
        transport=transport,
        allow=allow or (),
    )
    config = made.config()
    card = str(config.card(made.keys().public))
    learned = made.task()
    if as_json:
        print_json(
            {
                "name": name,
                "folder": str(folder),
                "listen": config.listen,
                "card": card,
                "privacy": learned.privacy.as_json(),
            }
        )
        return
    print_facts(
        f"{name} is made.",
        {
            "folder": str(folder),
            "listens on": config.listen,
            "settings": made.config_path.name,
            "task": made.task_path.name,
            "privacy": learned.privacy_in_words,
            "secret key": f"{made.key_path.name}; never share it, and keep a backup",
            "card": card,
        },
    )
    _say_what_is_next(config, there="" if home is None else f" --home {folder}")


def card(home: HomeFolder = None) -> None:
    """Print the line to hand to others: who this peer is and where it listens; no secret."""
    mine = open_home(home)
    config = mine.config()
    typer.echo(config.card(mine.keys().public))
    # Beside the card, not in it: releases before this one take all of its end for a name.
    try:
        note(f"privacy: {config.privacy.applied(mine.task()).privacy_in_words}")
    except OnewayError as error:
        note(f"It cannot take part: {error}.")


def _say_what_is_next(config: PeerConfig, there: str) -> None:
    from oneway.web.access_control import is_loopback

    host, _, port = (config.advertise or config.listen).rpartition(":")
    if is_loopback(host.strip("[]")):
        note(
            "Only peers on this machine can reach it. For others, change peer.toml before you hand "
            f'out the card: listen = "0.0.0.0:{port}", advertise = "THIS-MACHINE:{port}".'
        )
    note(
        "Next: give the card to others, and with theirs:\n"
        f"  oneway peer trust 'CARD'{there}    to send to them\n"
        f"  oneway peer admit 'CARD'{there}    to let them send to you\n"
        f"  oneway peer run --data FILE{there}"
    )
