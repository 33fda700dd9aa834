"""`oneway peer export`: the model of a peer as a file, for whoever wants to use it elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from oneway.cli.options import argument, option, switch
from oneway.cli.out_path import Force, check_out_file
from oneway.cli.output import AsJson, note, print_facts, print_json
from oneway.cli.peer_home import HomeFolder, open_home
from oneway.cli.peer_predict import MOMENTARY

if TYPE_CHECKING:
    from oneway.export import FittedModel
    from oneway.export.formats import Format

_TOKEN = "What the peer's own --token-file holds, if its local API needs a token."


def export(
    folder: Annotated[
        Path | None, argument("FOLDER", "The peer's folder.", "as --home says")
    ] = None,
    format: Annotated[  # noqa: A002
        str, option("NAME", "json, npz, sklearn, onnx or state-dict.", "as --out ends, or json")
    ] = "",
    out: Annotated[
        Path | None, option("FILE", "Where to write it.", "the peer's name, in this folder")
    ] = None,
    momentary: Annotated[bool, switch("--momentary", MOMENTARY)] = False,
    force: Force = False,
    api_token_file: Annotated[Path | None, option("FILE", _TOKEN)] = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write the model of a peer into a file, whether the peer runs or not.

    It takes rows in the units of the data. json is to be read, npz is for NumPy; sklearn is a
    pickle, which is code to whoever loads it; onnx is for onnxruntime; state-dict has the weights
    of a PyTorch module, for samples that are scaled already. The settled model is written, the
    average of the last estimates, since that of a moment jumps.
    """
    from oneway.export.formats import save
    from oneway.peer.model_source import model_of
    from oneway.web.endpoint import read_token

    mine = open_home(folder or home)
    chosen = _format(format, out)
    target = out or Path(f"{mine.config().name}{chosen.suffix}")
    check_out_file(target, force=force)
    model = model_of(mine, momentary=momentary, api_token=read_token(api_token_file))
    save(model, target, chosen.name, force=force)
    if as_json:
        print_json({"file": str(target), "format": chosen.name, **model.origin})
        return
    print_facts(f"{target} is written.", _told(model, chosen))
    note(chosen.about)


def _format(name: str, out: Path | None) -> Format:
    from oneway.export.formats import FORMATS, format_of

    if name:
        return FORMATS[name]
    return FORMATS["json"] if out is None else format_of(out)


def _told(model: FittedModel, chosen: Format) -> dict[str, str]:
    origin = model.origin
    return {
        "format": chosen.name,
        "model": f"{model.model.name}, {model.encoder.label} from {len(model.encoder.names)} "
        f"columns, {origin['estimate']}",
        "learned from": f"{origin['samples']:,} samples of {origin['peer']}, and what others sent",
        "privacy": origin["privacy"],
    }
