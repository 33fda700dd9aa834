"""`oneway lab`: real peers on this machine, broken on purpose and audited to the last unit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli.column_notes import show_columns
from oneway.cli.options import Allow, option, switch
from oneway.cli.out_path import Force, check_out_folder
from oneway.cli.output import (
    AsJson,
    complain,
    note,
    on_interrupt,
    print_facts,
    print_json,
)
from oneway.cli.page import Listen, Open, TokenFile, dashboard_extra, page_place
from oneway.cli.settings_flags import read_given, with_flags
from oneway.display.terminal_table import print_table
from oneway.errors import ConfigError, OnewayError
from oneway.files.output_folder import clear, mark
from oneway.task.conditions import Conditions

if TYPE_CHECKING:
    from oneway.lab.result import Result
    from oneway.lab.run import CommandQueue
    from oneway.task.settings import Settings

_FASTEST = 1e3
"""Samples a second of a virtual peer that learns from as many as it can."""
LEFT_OUT = (
    "rounds",
    "resample",
    "adversarial",
    "engine",
    "largest_component",
    "density",
)


@with_flags(leave_out=LEFT_OUT, besides=Conditions, but=("rate", "loss"))
def lab(
    given: Mapping[str, Any],
    around: Mapping[str, Any],
    config: Annotated[Path | None, option("FILE", "TOML file with settings. Flags win.")] = None,
    task: Annotated[
        Path | None, option("FILE", "The task.toml of peers: features, label, model, method.")
    ] = None,
    samples: Annotated[
        int | None,
        option("N", "At most this many samples per peer.", "500; with a page 12000", panel="Data"),
    ] = None,
    rate: Annotated[
        float, option("N", "Samples per second of each peer; 0: as many as it can.", panel="Run")
    ] = 50.0,
    loss: Annotated[
        float, option("SHARE", "Share of the messages that are lost: 0..1.", panel="Faults")
    ] = 0.0,
    virtual: Annotated[
        bool,
        switch(
            "--virtual",
            "The same code of peers in one process, in virtual time: thousands of them, nothing "
            "waits, and the same seed gives the same bits.",
            panel="Run",
        ),
    ] = False,
    kill_every: Annotated[
        str | None,
        option("TIME", "Kill a peer about this often, as 5s, and restart it.", panel="Faults"),
    ] = None,
    transport: Annotated[
        str, option("NAME", "How the peers' messages travel.", panel="Run")
    ] = "zeromq",
    out: Annotated[
        Path | None,
        option("FOLDER", "Leave the peers' folders, runs and result.json there.", panel="Run"),
    ] = None,
    allow: Allow = None,
    force: Force = False,
    dashboard: Annotated[
        bool, switch("--dashboard", "Watch and break it in a browser, until Ctrl-C.", panel="Page")
    ] = False,
    listen: Listen = None,
    token_file: TokenFile = None,
    open_browser: Open = False,
    as_json: AsJson = False,
) -> None:
    """Run real peers on this machine: a process each, its own keys and samples, one-way trust.

    In the end the network is drained and every unit of mass is accounted for (exit code 1 if one
    is missing), and the loss is compared with the simulator's. Ctrl-C ends the learning early,
    a second one everything at once.
    """
    from oneway.lab.fault_schedule import parse_seconds
    from oneway.lab.peer_folders import COMMAND, running_peers
    from oneway.lab.problem import problem_of
    from oneway.lab.run import Conditions as Terms
    from oneway.lab.run import run_lab
    from oneway.lab.terminal import progress

    if samples is not None and samples < 1:
        raise ConfigError(f"--samples is {samples}; every peer needs at least 1 to learn from")
    chosen = dict(given) if samples is None else {**given, "rounds": samples}
    settings = read_given(chosen, task, config, allow=allow)
    if virtual:
        if dashboard or kill_every is not None or transport != "zeromq":
            raise ConfigError(
                "--dashboard, --kill-every and --transport are for real processes; leave them, or "
                "--virtual, out (--crashes is what ends peers in virtual time)"
            )
        told = Conditions(**around, rate=rate or _FASTEST, loss=loss)
        _virtual(settings, told, out, force=force, as_json=as_json)
        return
    if around:
        raise ConfigError(
            f"{next(iter(around))} is for peers in virtual time; add --virtual, or leave it out"
        )
    conditions = Terms(
        rate=_checked("rate", rate, sys.float_info.max, "a finite number, 0 or more"),
        loss=_checked("loss", loss, 1.0, "a share from 0 to 1, as 0.2"),
        kill_every=0.0 if kill_every is None else parse_seconds(kill_every),
        seed=settings.seed,
        transport=transport,
    )
    if out is not None:
        check_out_folder(out, COMMAND, force=force)
        if running := running_peers(out):
            raise ConfigError(f"--out {out} holds {running[0]}, a peer that runs; stop it first")
    if not dashboard and (listen is not None or token_file is not None or open_browser):
        raise ConfigError("--listen, --token-file and --open are for the page; add --dashboard")
    problem = problem_of(settings, watched=dashboard)
    show_columns(problem.table.notes, len(problem.table))
    if problem.graph.one_way_note:
        note(problem.graph.one_way_note)
    if out is not None:
        clear(out, COMMAND)
    page = _page(listen, token_file, open_browser, aside=as_json) if dashboard else nullcontext()
    # Where the peers live: the folder asked for, or one that goes away with them.
    place = nullcontext(out) if out is not None else TemporaryDirectory(prefix="oneway-lab-")
    interrupted = "Interrupted: all peers were stopped, nothing was audited."
    with on_interrupt(interrupted), place as folder, page as queue, _page_stays(queue):
        with progress() as show:
            result = run_lab(Path(folder), problem, conditions, show, queue=queue, stay=dashboard)
        if out is not None:
            result.write(out)
        _print(result, out, as_json=as_json)
    if not result.audit.is_exact:
        raise typer.Exit(1)
    # With a page there is no other end.
    if not result.complete and not dashboard:
        note("Interrupted: this is what was learned until then.")
        raise typer.Exit(130)


def _virtual(
    settings: Settings, conditions: Conditions, out: Path | None, *, force: bool, as_json: bool
) -> None:
    """Run peers in virtual time; exit with 1 if a unit of mass is missing."""
    from oneway import store
    from oneway.lab.problem import problem_of
    from oneway.lab.virtual.run import virtual_lab
    from oneway.simulator.views import run_facts

    if out is not None:
        check_out_folder(out, "simulate", force=force)
    problem = problem_of(settings, watched=False)
    show_columns(problem.table.notes, len(problem.table))
    if problem.graph.one_way_note:
        note(problem.graph.one_way_note)
    task = problem.task
    about = task.build_method(), task.build_model(), problem.stream, problem.graph
    run = virtual_lab(*about, conditions=conditions, seed=settings.seed)
    if run.complete:
        _ = run.alone_sums
    if out is not None:
        run.save(out)
        mark(out, "simulate", store.FILES)
    config = run.record.config
    if as_json:
        known = {"average_loss": run.average_loss, "base_loss": run.base_loss}
        print_json({**known, "complete": run.complete, "config": config})
    else:
        lasted = f"{config['virtual_seconds']:,.3g} seconds of virtual time"
        facts = run_facts(run) | _traffic(config)
        facts["privacy"] = task.privacy_in_words
        print_facts(f"{run.record.method}, {lasted}", facts)
    if config["exact_books"] is False:
        raise typer.Exit(1)
    if not run.complete:
        note("Interrupted: this is what was learned until then.")
        raise typer.Exit(130)


def _traffic(config: Mapping[str, Any]) -> dict[str, str]:
    """What virtual peers did and sent."""
    from oneway.files.memory import spoken_bytes

    known = config["traffic"]
    facts = {
        "samples": f"{known['samples']:,}",
        "messages": f"{known['messages']:,}, {known['messages_lost']:,} of them lost, "
        f"{spoken_bytes(known['bytes_sent'])}",
        "events": f"{known['events']:,}",
        "mass in flight": f"{config['mass_in_flight']:.3g} at the end",
    }
    happened = ("clipped", "crashes", "sleeps", "joined", "left")
    facts |= {name: f"{known[name]:,}" for name in happened if known[name]}
    if config["exact_books"] is not None:
        facts["books"] = "exact, to the last unit" if config["exact_books"] else "NOT exact"
    return facts


def _checked(flag: str, value: float, highest: float, rule: str) -> float:
    if not 0.0 <= value <= highest:
        raise ConfigError(f"--{flag} is {value:g}; it must be {rule}")
    return value


def _print(result: Result, out: Path | None, *, as_json: bool) -> None:
    from oneway.lab.terminal import result_table

    if as_json:
        print_json(result.as_dict())
        return
    print_table(result_table(result))
    for sentence in result.sentences:
        typer.echo(sentence)
    if out is not None:
        note(f"Peers, runs and result.json: {out}; see them with: oneway runs {out}")


@contextmanager
def _page(
    listen: str | None, token_file: Path | None, open_browser: bool, *, aside: bool
) -> Iterator[CommandQueue]:
    """Serve the page of a lab while the block runs, in a process that does not slow it down."""
    from oneway.web.server_process import server_process

    with dashboard_extra():
        from oneway.dashboard.lab.page import serve_lab
        from oneway.lab.api import serve_api
    what = "the page of the lab"
    with page_place(listen, token_file, what) as place, serve_api() as lab:
        page = (place.listener, place.host, place.token, lab.url, lab.token)
        with server_process(serve_lab, *page, what=what, ended=_say_that_the_page_has_ended):
            place.announce(open_browser, aside=aside)
            yield lab.queue


def _say_that_the_page_has_ended() -> None:
    note("The page has ended; the lab goes on. Ctrl-C ends it.")


@contextmanager
def _page_stays(queue: CommandQueue | None) -> Iterator[None]:
    """Leave the page as it is after a lab that was finished there, also if it failed."""
    from oneway.web.interrupts import wait_for_signal

    code = 0
    try:
        yield
    except OnewayError as error:
        if queue is None or not queue.finished_by_command:
            raise
        complain(error.for_shell)
        code = 2
    if queue is not None and queue.finished_by_command:
        note("The page stays until Ctrl-C.")
        wait_for_signal()
    if code:
        raise typer.Exit(code)
