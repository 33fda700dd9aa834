"""`oneway tune`: learning rates x methods x seeds; a table, a chart, and the best as a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from oneway.cli.options import Allow, On, option
from oneway.cli.out_path import Force, check_out_file, require_writable
from oneway.cli.output import (
    AsJson,
    note,
    on_interrupt,
    print_json,
)
from oneway.cli.settings_flags import read_given, with_flags
from oneway.display.terminal_table import TerminalTable, print_table
from oneway.errors import ConfigError
from oneway.files.output_folder import mark
from oneway.sentences import shown

if TYPE_CHECKING:
    from oneway.simulator.sweep import SweepResult

LEFT_OUT = ("learning_rate", "method", "schedule")


@with_flags(leave_out=LEFT_OUT)
def tune(
    given: Mapping[str, Any],
    rates: Annotated[
        str | None,
        option("LIST", "Learning rates to try, with commas.", "auto,0.003,0.01,0.03,0.1,0.3,1"),
    ] = None,
    methods: Annotated[str, option("LIST", "Methods to try, with commas.")] = "relay",
    seeds: Annotated[
        int, option("N", "Number of seeds of graph, dealing and noise, from --seed on.", min=1)
    ] = 3,
    jobs: Annotated[
        int | None, option("N", "Number of runs at a time.", "one for each core", min=1)
    ] = None,
    on: On = "local",
    resume: Annotated[
        str | None,
        option("FOLDER", "Store finished runs there, and do not repeat the runs it has.", "none"),
    ] = None,
    config: Annotated[Path | None, option("FILE", "TOML file with settings. Flags win.")] = None,
    task: Annotated[
        Path | None, option("FILE", "The task.toml of peers: features, label, model.")
    ] = None,
    out: Annotated[
        Path | None, option("FILE", "Write the best as a task there, for simulate, lab and peers.")
    ] = None,
    chart: Annotated[Path | None, option("FILE", "Draw loss against rate there, a PNG.")] = None,
    allow: Allow = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find the learning rate and method with the smallest loss, by trying all of them.

    Trying rates on data that peers learn from afterwards is not part of what privacy promises.
    Interrupted, it goes on where it stopped if it is called again with the same --resume.
    """
    from oneway.display.charts import as_png
    from oneway.simulator.sweep import sweep_settings
    from oneway.task.task import TITLE

    if out is not None:
        check_out_file(out, TITLE.encode(), force=force)
    if chart is not None:
        check_out_file(chart, b"PNG", force=force, flag="--chart")
    grid, names = _rates(rates), _listed(methods)
    told = {"method": names[0], "learning_rate": "auto", "schedule": "constant"}
    settings = read_given({**given, **told}, task, config, allow=allow)
    numbers = range(settings.seed, settings.seed + seeds)
    interrupted = "Interrupted: nothing was written."
    folder = None
    if resume is not None:
        if not resume:  # an unset variable would be the current folder
            raise ConfigError("--resume is ''; name a folder")
        folder = Path(resume)
        require_writable(folder, "--resume")
        if not folder.exists():
            folder.mkdir(parents=True)
            mark(folder, "tune", ["*.json"])
        interrupted = f"Interrupted: what was finished is kept in {resume}; call again to go on."
    with on_interrupt(interrupted):
        result = sweep_settings(
            settings, grid, methods=names, seeds=numbers, jobs=jobs, on=on, folder=folder,
            progress=None,
        )  # fmt: skip
    best = result.best
    if out is not None:
        out.write_text(_toml(result, seeds), encoding="utf-8")
    if chart is not None:
        chart.write_bytes(as_png(result.plot()))
    if as_json:
        print_json(
            {
                "best": {
                    "method": best.method,
                    "learning_rate": best.learning_rate,
                    "average_loss": best.average_loss,
                    "standard_error": best.standard_error,
                    "at_edge": result.at_edge,
                },
                "trials": [asdict(trial) for trial in result.trials],
            }
        )
        return
    print_table(_table(result))
    for path, what in ((out, "The best as a task"), (chart, "Chart")):
        if path is not None:
            note(f"{what}: {path}")


def _toml(result: SweepResult, seeds: int) -> str:
    best = result.best
    comment = (
        f"# The best of {len(result.trials)} runs over {seeds} seeds: average loss "
        f"{best.average_loss:.4f}.\n"
    )
    return comment + result.best_task.to_toml()


def _rates(text: str | None) -> tuple[float | str, ...]:
    from oneway.methods import AUTO
    from oneway.simulator.sweep import RATES

    if text is None:
        return (AUTO, *RATES)
    rates: list[float | str] = []
    for part in _listed(text):
        try:
            rates.append(part if part == AUTO else float(part))
        except ValueError:
            raise ConfigError(
                f"a learning rate in --rates is {shown(part)}; it must be a number or {AUTO}, as "
                "in auto,0.01,0.1"
            ) from None
    return tuple(rates)


def _listed(text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        raise ConfigError(f"a list is {shown(text)}; name at least one, several with commas")
    return parts


def _table(result: SweepResult) -> TerminalTable:
    from oneway.methods.base import label_of
    from oneway.metrics.measure_rows import loss_number

    edge = "* the smallest or largest rate tried: a better one may lie beyond"
    numbers = ("rate", "loss", "standard error", "accuracy")
    shown_table = TerminalTable(
        ("method", *numbers),
        right=numbers,
        title=f"{len(result.trials)} runs, smallest loss first",
        below=edge if result.at_edge else "",
        drop=("accuracy", "standard error"),
    )
    for place, it in enumerate(result.ranked):
        starred = "*" if place == 0 and result.at_edge else ""
        shown_table.add_row(
            label_of(it.method).title,
            f"{it.learning_rate}{starred}",
            loss_number(it.average_loss),
            "-" if it.standard_error is None else f"{it.standard_error:.4f}",
            "-" if it.accuracy is None else f"{it.accuracy:.2%}",
            style="bold" if place == 0 else "",
        )
    return shown_table
