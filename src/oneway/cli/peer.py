"""`oneway peer`: a participant of one's own, whom it sends to, and who may send to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oneway.cli import (
    peer_dashboard,
    peer_leave,
    peer_predict,
    peer_run,
    peer_status,
    peer_task,
)
from oneway.cli.output import AsJson, note, print_facts, print_json
from oneway.cli.peer_home import (
    CARD_HELP,
    HomeFolder,
    folder_of,
    handed_over,
    how_it_follows,
    name_or_key,
    open_home,
)
from oneway.cli.peer_trust import admit_anyone, admit_no_more, admit_one, send_to
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.peer.home.config import PeerConfig
    from oneway.peer.home.home import Home

peer = typer.Typer(no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(
        peer,
        name="peer",
        help="Take part: one process, its own data and keys, one-way trust, no server.",
        epilog="Example: oneway peer card",
    )


peer_task.register(peer)


@peer.command("init", epilog="Example: oneway peer init carol --task task.toml --home carol")
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What others shall call it.")],
    task: Annotated[Path, typer.Option(metavar="FILE", help="The task.toml that all peers share.")],
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where it listens; 0.0.0.0 is every interface.",
            show_default="127.0.0.1 and the first free port from 7701 on",
        ),
    ] = None,
    advertise: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Where others reach it, if not there.", show_default=False
        ),
    ] = "",
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a peer: a secret key, a peer.toml and a copy of the task, all in one folder."""
    from oneway.peer.home.home import Home

    folder = folder_of(home)
    _check_reachable(name, listen, advertise)
    made = Home.create(folder, name, task, listen)
    if advertise:
        made.change(lambda config: replace(config, advertise=advertise))
    config, card = made.config(), _card(made)
    if as_json:
        print_json({"name": name, "folder": str(folder), "listen": config.listen, "card": card})
        return
    print_facts(
        f"{name} is made.",
        {
            "folder": str(folder),
            "listens on": config.listen,
            "settings": made.config_path.name,
            "task": made.task_path.name,
            "secret key": f"{made.key_path.name}; never share it, and keep a backup",
            "card": card,
        },
    )
    _say_what_is_next(config, there="" if home is None else f" --home {folder}")


@peer.command("card", epilog="Example: oneway peer card --home bob")
def card(home: HomeFolder = None) -> None:
    """Print the line to hand to others: who this peer is and where it listens; no secret."""
    typer.echo(_card(open_home(home)))


@peer.command("trust", epilog="Example: oneway peer trust bob.card --weight 2")
def trust(
    card: Annotated[str, typer.Argument(metavar="CARD", help=CARD_HELP)],
    weight: Annotated[
        float, typer.Option(metavar="X", help="How much it gets, compared with the others.")
    ] = 1.0,
    home: HomeFolder = None,
) -> None:
    """Send to a peer from now on. Trust is one-way: it may send to you only if you admit it."""
    from oneway.peer.identity.card import Card

    mine = open_home(home)
    receiver = Card.parse(handed_over(card))
    config, said = send_to(mine, receiver, weight)
    typer.echo(said)
    note(how_it_follows(mine, config.name))
    note(
        f"{receiver.name} takes it in once it has admitted you; if it has not yet, there, run:\n"
        f"oneway peer admit '{_card(mine)}'"
    )


@peer.command("admit", epilog="Example: oneway peer admit bob.card")
def admit(
    who: Annotated[
        str | None,
        typer.Argument(
            metavar="[CARD|KEY]",
            help=f"{CARD_HELP} Or its key alone; with --revoke also its name.",
            show_default=False,
        ),
    ] = None,
    anyone: Annotated[
        bool,
        typer.Option("--anyone", metavar="", help="Admit everybody: for open networks only."),
    ] = False,
    revoke: Annotated[
        bool, typer.Option("--revoke", metavar="", help="Take the admission back.")
    ] = False,
    home: HomeFolder = None,
) -> None:
    """Let a peer send to this one. Without this nobody may."""
    if (who is None) != anyone:
        raise ConfigError("name either whom to admit, by a card or a key, or --anyone")
    mine = open_home(home)
    config, said = _admission(mine, who, revoke=revoke)
    typer.echo(said)
    note(how_it_follows(mine, config.name))
    if config.anyone:
        note(
            "Anyone who has the card can push models of any kind to it; each push is checked and "
            "clipped, but a crowd of liars is not stopped by that."
            if who is None
            else f"{config.name} admits anyone anyway; to end that: oneway peer admit --anyone "
            "--revoke"
        )


peer_leave.register(peer)
peer_run.register(peer)
peer_status.register(peer)
peer_predict.register(peer)
peer_dashboard.register(peer)


def _admission(mine: Home, who: str | None, *, revoke: bool) -> tuple[PeerConfig, str]:
    """What holds now, and what has changed."""
    from oneway.peer.identity.card import parse_card_or_key

    if who is None:
        return admit_anyone(mine, revoke=revoke)
    if revoke:
        return admit_no_more(mine, name_or_key(who))
    return admit_one(mine, parse_card_or_key(handed_over(who)))


def _card(mine: Home) -> str:
    return str(mine.config().card(mine.keys().public))


def _check_reachable(name: str, listen: str | None, advertise: str) -> None:
    """Find out before anything is made whether the peer can have a card.

    Raises:
        ConfigError: If a part of it breaks its rule, or others could not reach it.
    """
    from oneway.peer.home.config import PeerConfig
    from oneway.peer.identity.address import parse_address
    from oneway.transport.address import is_wildcard

    if listen is None:
        PeerConfig(name, "127.0.0.1:7701", advertise)
        return
    PeerConfig(name, listen, advertise)
    host, port = parse_address(listen)
    if is_wildcard(host) and not advertise:
        raise ConfigError(
            f"--listen {listen} is every interface of this machine, which nobody can dial; say "
            f"under which address others reach it: --advertise HOST:{port}"
        )


def _say_what_is_next(config: PeerConfig, there: str) -> None:
    from oneway.peer.identity.address import parse_address
    from oneway.web.access import is_loopback

    host, port = parse_address(config.advertise or config.listen)
    if is_loopback(host):
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
