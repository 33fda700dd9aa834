"""`oneway peer trust`, `distrust` and `admit`: whom it sends to, and who may send to it."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from oneway.cli.options import argument, option, switch
from oneway.cli.output import note
from oneway.cli.peer_home import (
    CARD_HELP,
    HomeFolder,
    handed_over,
    name_or_key,
    open_home,
    waiting,
)
from oneway.errors import ConfigError


def trust(
    card: Annotated[str, argument("CARD", CARD_HELP)],
    weight: Annotated[float, option("X", "How much it gets, compared with the others.")] = 1.0,
    home: HomeFolder = None,
) -> None:
    """Send to a peer from now on. Trust is one-way: it may send to you only if you admit it."""
    from oneway.peer.identity.card import Card
    from oneway.peer.trust import how_it_follows, send_to

    mine = open_home(home)
    receiver = Card.parse(handed_over(card))
    typer.echo(send_to(mine, receiver, weight))
    note(how_it_follows(mine))
    note(
        f"{receiver.name} takes it in once it has admitted you; if it has not yet, there, run:\n"
        f"oneway peer admit '{mine.config().card(mine.keys().public)}'"
    )


def admit(
    who: Annotated[
        str | None,
        argument("[CARD|KEY]", f"{CARD_HELP} Or its key alone; with --revoke also its name."),
    ] = None,
    anyone: Annotated[bool, switch("--anyone", "Admit everybody: for open networks only.")] = False,
    revoke: Annotated[bool, switch("--revoke", "Take the admission back.")] = False,
    home: HomeFolder = None,
) -> None:
    """Let a peer send to this one. Without this nobody may."""
    from oneway.peer import trust
    from oneway.peer.identity.card import parse_card_or_key

    if (who is None) != anyone:
        raise ConfigError("name either whom to admit, by a card or a key, or --anyone")
    mine = open_home(home)
    if who is None:
        said = trust.admit_anyone(mine, revoke=revoke)
    elif revoke:
        said = trust.admit_no_more(mine, name_or_key(who))
    else:
        said = trust.admit_one(mine, parse_card_or_key(handed_over(who)))
    typer.echo(said)
    note(trust.how_it_follows(mine))
    config = mine.config()
    if config.anyone:
        note(
            "Anyone who has the card can push models of any kind to it; each push is checked and "
            "clipped, but a crowd of liars is not stopped by that."
            if who is None
            else f"{config.name} admits anyone anyway; to end that: oneway peer admit --anyone "
            "--revoke"
        )


def distrust(
    who: Annotated[str, argument("NAME", "A receiver, by its name, its key or its card.")],
    wait: Annotated[
        float, option("SECONDS", "How long to wait until the edge is closed.", min=0)
    ] = 10.0,
    home: HomeFolder = None,
) -> None:
    """Send no more to a peer; what has not arrived there comes back."""
    from oneway.peer.departure import wait_for_closed_edge
    from oneway.peer.trust import send_no_more_to

    mine = open_home(home)
    gone, said = send_no_more_to(mine, name_or_key(who))
    since = time.time()
    typer.echo(said)
    with waiting():
        note(wait_for_closed_edge(mine, gone, since, wait))
