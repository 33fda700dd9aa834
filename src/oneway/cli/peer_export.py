"""`oneway peer export`: the model of a peer as a file, for use elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oneway.cli.options import argument, option, switch
from oneway.cli.out_path import Force, check_out_file
from oneway.cli.output import AsJson, note, print_facts, print_json
from oneway.cli.peer_home import HomeFolder, open_home
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.export import FittedModel, PersonalModel
    from oneway.export.formats import Format
    from oneway.peer.home.home import Home

MOMENTARY = "The shared estimate of this moment, not the average of the last ones."
RAW = (
    "A personal model is made of this peer's raw samples, without noise: whoever gets the file can "
    "learn about them, and epsilon does not cover it."
)


def export(
    folder: Annotated[
        Path | None, argument("FOLDER", "The peer's folder.", "as --home says")
    ] = None,
    format: Annotated[  # noqa: A002
        str, option("NAME", "json, onnx or state-dict.", "as --out ends, or json")
    ] = "",
    out: Annotated[
        Path | None, option("FILE", "Where to write it.", "the peer's name, in this folder")
    ] = None,
    model: Annotated[
        str,
        option("NAME", "shared, which epsilon covers, or personal, made of raw samples."),
    ] = "shared",
    momentary: Annotated[bool, switch("--momentary", MOMENTARY)] = False,
    yes: Annotated[bool, switch("--yes", "Write a personal model without asking.")] = False,
    force: Force = False,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write the model of a peer into a file, whether the peer runs or not.

    It takes rows in the units of the data. json is for people and FittedModel.load, onnx for
    onnxruntime; state-dict has the weights of a PyTorch module, for samples that are scaled
    already. Of the shared model the settled one is written, the average of the last estimates: that
    of a moment jumps. The personal model predicts what this peer predicts; it is made of raw
    samples, so a terminal asks first, and a script needs --yes.
    """
    from oneway.export.formats import format_of
    from oneway.peer.offline import is_shared, stored_model

    mine = open_home(folder or home)
    chosen = format_of(out, format)
    target = out or Path(f"{mine.config().name}{chosen.suffix}")
    check_out_file(target, chosen.known_by, force=force)
    taken: FittedModel | PersonalModel
    if is_shared(model):
        taken = stored_model(mine, momentary=momentary)
    else:
        taken = _personal(mine, momentary=momentary)
        _confirm(yes=yes)
    taken.save(target, chosen.name, force=force)
    if as_json:
        print_json({"file": str(target), "format": chosen.name, "model": model, **taken.origin})
        return
    print_facts(f"{target} is written.", _facts(taken, chosen))
    note(chosen.about)
    if not is_shared(model):
        note(RAW)


def _personal(home: Home, *, momentary: bool) -> PersonalModel:
    """The personal model of a peer.

    Raises:
        ConfigError: It has none, or there is no such form of it.
    """
    from oneway.export import PersonalModel
    from oneway.peer.offline import stored_personal

    if momentary:
        raise ConfigError(
            "--momentary is about the shared model; a personal one is always that of this moment"
        )
    found = stored_personal(home)
    if isinstance(found, PersonalModel):
        return found
    raise ConfigError(
        f"{home.config().name} has no personal model: what it learns with, {found.model.name}, has "
        "no personal predictions, or nothing is shared; export the shared one: --model shared"
    )


def _confirm(*, yes: bool) -> None:
    """Ask before a file of raw samples is written.

    Raises:
        ConfigError: Nobody can be asked.
        typer.Abort: The answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{RAW} To write it nevertheless, add --yes")
    typer.confirm(f"{RAW} Write it?", abort=True, err=True)


def _facts(model: FittedModel | PersonalModel, chosen: Format) -> dict[str, str]:
    origin = model.origin
    return {
        "format": chosen.name,
        "model": f"{model.model.name}, {model.encoder.label} from {len(model.encoder.names)} "
        f"columns, {origin['estimate']}",
        "learned from": f"{origin['samples']:,} samples of {origin['peer']}, and what others sent",
        "privacy": origin["privacy"],
    }
