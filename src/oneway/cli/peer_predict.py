"""`oneway peer predict`: ask a peer's model, whether the peer runs or not."""

from __future__ import annotations

from typing import Annotated

import typer

from oneway.cli.options import argument
from oneway.cli.output import AsJson, print_json
from oneway.cli.peer_home import HomeFolder, open_home
from oneway.errors import DataError
from oneway.sentences import shown


def predict(
    values: Annotated[list[str], argument("FEATURE=VALUE ...", "One sample, unscaled.")],
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Predict the label of one sample with the model that is on the disk."""
    from oneway.peer.offline import predict_on_disk

    prediction, probabilities = predict_on_disk(open_home(home), dict(map(_pair, values)))
    if as_json:
        print_json({"prediction": prediction, "probabilities": probabilities})
    elif probabilities is None:
        typer.echo(prediction)
    else:
        typer.echo(f"{prediction}  (probability {probabilities[str(prediction)]:.3f})")


def _pair(text: str) -> tuple[str, str]:
    """A feature and its value, before and after the last =: a name may have one, a number not."""
    name, sign, value = text.rpartition("=")
    if not sign:
        raise DataError(f"{shown(text)} is not FEATURE=VALUE, for example Temperature=21.5")
    return name, value
