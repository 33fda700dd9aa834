"""`oneway lab`: real peers on this machine, broken on purpose and audited to the last unit."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli import flags
from oneway.cli.flags import setting
from oneway.cli.output import AsJson, complain, note, print_json, print_table, require_writable
from oneway.cli.page import DEFAULT_PORT
from oneway.errors import ConfigError, OnewayError

if TYPE_CHECKING:
    from oneway.lab.lab import Lab
    from oneway.lab.problem import Problem
    from oneway.lab.result import Result
    from oneway.task.settings import Settings

DEFAULT_NODES = 8
DEFAULT_RECEIVERS = 3
DEFAULT_SAMPLES = 500
WATCHED_SAMPLES = 12_000
"""With a page there is somebody to watch, for four minutes at the usual rate."""
MOST_WATCHED = 240_000
"""Of all peers together: they are dealt and written before the first peer starts."""

_EXAMPLE = "Example: oneway lab --data synthetic --nodes 3 --samples 50 --loss 0.2"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("lab", epilog=_EXAMPLE)(lab)


def lab(
    nodes: Annotated[
        int | None, setting("Graph", "N", "8, or as the graph file says", "Number of peers.")
    ] = None,
    graph: flags.Graph = None,
    max_receivers: Annotated[
        int | None,
        setting("Graph", "N", "3", "Random graph: every peer sends to 1 up to this many."),
    ] = None,
    data: Annotated[
        str | None,
        setting("Data", "NAME", "flights", "flights, occupancy, susy, synthetic, or a file."),
    ] = None,
    label: flags.Label = None,
    owner: Annotated[
        str | None,
        setting("Data", "COLUMN", "", "The values of this column with the most rows are peers."),
    ] = None,
    samples: Annotated[
        int | None,
        setting(
            "Data",
            "N",
            "500; with a page 12000, or fewer if many peers",
            "At most so many samples for each peer.",
        ),
    ] = None,
    model: flags.Model = None,
    learning_rate: Annotated[
        float | None, setting("Method", "RATE", "0.1", "The length of a step, gamma.")
    ] = None,
    rate: Annotated[
        float,
        setting("Run", "N", "50", "Samples per second of each peer; 0: as many as it can."),
    ] = 50.0,
    loss: Annotated[
        float, setting("Faults", "SHARE", "0", "Share of the messages that are lost: 0..1.")
    ] = 0.0,
    kill_every: Annotated[
        str | None,
        setting("Faults", "TIME", "", "Kill a peer about this often, as 5s, and restart it."),
    ] = None,
    seed: flags.Seed = None,
    out: Annotated[
        Path | None,
        setting("Run", "FOLDER", "", "Leave the peers' folders, runs and result.json there."),
    ] = None,
    dashboard: Annotated[
        bool,
        flags.switch("Page", "--dashboard", "Watch and break it in a browser, until Ctrl-C."),
    ] = False,
    listen: Annotated[
        str | None,
        setting(
            "Page", "[HOST:]PORT", f"127.0.0.1:{DEFAULT_PORT}", "Where; port 0 is any free one."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        setting("Page", "FILE", "", "Who opens the page must show what this file holds."),
    ] = None,
    open_browser: Annotated[
        bool, flags.switch("Page", "--open", "Open the page in a browser.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run real peers on this machine: a process each, its own keys and samples, one-way trust.

    In the end the network is drained and every unit of mass is accounted for (exit code 1 if one
    is missing), and the loss is compared with the simulator's. Ctrl-C ends the learning early,
    a second one everything at once.
    """
    from oneway.cli.lab_page import lab_page, wait_for_interrupt
    from oneway.lab.faults import parse_seconds
    from oneway.lab.run import Conditions, run_lab
    from oneway.task.settings import read_settings

    given: dict[str, Any] = {
        "nodes": nodes,
        "graph": graph,
        "max_receivers": max_receivers,
        "data": data,
        "label": label,
        "owner": owner,
        "rounds": samples,
        "model": model,
        "learning_rate": learning_rate,
        "seed": seed,
    }
    if samples is not None and samples < 1:
        raise ConfigError(f"--samples is {samples}; every peer needs at least 1 to learn from")
    settings = read_settings(
        None, {name: value for name, value in given.items() if value is not None}
    )
    conditions = Conditions(
        rate=_at_least_zero("rate", rate),
        loss=_share("loss", loss),
        kill_every=0.0 if kill_every is None else parse_seconds(kill_every),
        seed=settings.seed,
    )
    if out is not None:
        require_writable(out)
    if not dashboard and (listen is not None or token_file is not None or open_browser):
        raise ConfigError("--listen, --token-file and --open are for the page; add --dashboard")
    problem = _problem(settings, watched=dashboard)
    watched = (
        lab_page(listen, token_file, open_browser, aside=as_json) if dashboard else nullcontext()
    )
    try:
        with _folder(out) as folder, watched as server:
            desk = None if server is None else server.desk
            try:
                with _screen() as show:
                    result = run_lab(folder, problem, conditions, show, desk=desk, stay=dashboard)
            except OnewayError as error:
                if desk is None or not desk.finished_by_command:
                    raise
                complain(str(error))
                wait_for_interrupt()
                raise typer.Exit(2) from error
            if out is not None:
                result.write(out)
            _tell(result, out, as_json=as_json)
            if desk is not None and desk.finished_by_command:
                wait_for_interrupt()
    except KeyboardInterrupt:
        note("Interrupted: all peers were stopped, nothing was audited.")
        raise typer.Exit(130) from None
    if not result.audit.is_exact:
        raise typer.Exit(1)
    # With a page there is no other end.
    if not result.complete and not dashboard:
        note("Interrupted: this is what was learned until then.")
        raise typer.Exit(130)


def _tell(result: Result, out: Path | None, *, as_json: bool) -> None:
    from oneway.lab.display import result_table

    if as_json:
        print_json(result.as_dict())
        return
    print_table(result_table(result))
    for sentence in result.sentences:
        typer.echo(sentence)
    if out is not None:
        note(f"Peers, runs and result.json: {out}; see them with: oneway runs {out}")


def _problem(settings: Settings, *, watched: bool) -> Problem:
    """Load the data, make the graph, deal.

    Raises:
        OnewayError: If a setting does not fit the data or another setting.
    """
    from msgspec.structs import replace

    from oneway.lab.problem import Problem, read_table
    from oneway.task.assembly import chosen_graph

    nodes = settings.nodes or DEFAULT_NODES
    receivers = settings.max_receivers or max(1, min(DEFAULT_RECEIVERS, nodes - 1))
    graph = chosen_graph(replace(settings, max_receivers=receivers), nodes)
    most = min(WATCHED_SAMPLES, max(1, MOST_WATCHED // graph.num_nodes))
    samples = settings.rounds or (most if watched else DEFAULT_SAMPLES)
    table = read_table(
        settings.data,
        label=settings.label,
        model=settings.model,
        num_samples=graph.num_nodes * samples,
        seed=settings.seed,
    )
    return Problem.deal(
        table,
        graph,
        samples=samples,
        seed=settings.seed,
        owner=settings.owner,
        model=settings.model,
        learning_rate=settings.learning_rate,
    )


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """Where the peers live: the folder asked for, or one that goes away with them."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="oneway-lab-") as folder:
        yield Path(folder)


@contextmanager
def _screen() -> Iterator[Callable[[Lab, str], None]]:
    """Something to show a lab with, on stderr: live on a terminal, else a line per phase."""
    from rich.console import Console
    from rich.live import Live

    from oneway.lab.display import network_table
    from oneway.lab.meter import Meter

    console = Console(file=sys.stderr, highlight=False)
    if not console.is_terminal:
        told: list[str] = []

        def tell(_: Lab, phase: str) -> None:
            if phase not in told:
                told.append(phase)
                note(f"{phase.capitalize()} ...")

        yield tell
        return
    meter = Meter()
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def show(lab: Lab, phase: str) -> None:
            looks = lab.statuses()
            messages = meter.read(looks).messages
            live.update(network_table(looks, lab.events, phase, messages), refresh=True)

        yield show


def _at_least_zero(name: str, value: float) -> float:
    if not 0.0 <= value < float("inf"):
        raise ConfigError(f"--{name} is {value:g}; it must be a finite number, 0 or more")
    return value


def _share(name: str, value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"--{name} is {value:g}; it must be a share from 0 to 1, as 0.2")
    return value
