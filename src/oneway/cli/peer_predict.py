"""`oneway peer predict`: ask a peer's model, whether the peer runs or not."""

from __future__ import annotations

from typing import Annotated

import typer

from oneway.cli.options import argument, switch
from oneway.cli.output import AsJson, print_json
from oneway.cli.peer_home import HomeFolder, open_home
from oneway.errors import DataError
from oneway.sentences import shown

MOMENTARY = "By the estimate of this moment, not by the average of the last ones."


def predict(
    values: Annotated[list[str], argument("FEATURE=VALUE ...", "One sample, unscaled.")],
    momentary: Annotated[bool, switch("--momentary", MOMENTARY)] = False,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Predict the label of one sample with the settled model that is on the disk."""
    from oneway.peer.offline import stored_model
    from oneway.tables.cells import label_text

    mine, sample = open_home(home), dict(map(_pair, values))
    model = stored_model(mine, momentary=momentary)
    prediction = model.predict_one(sample)
    probabilities = None
    if model.says_probabilities:
        shares = model.predict_proba_one(sample).items()
        probabilities = {label_text(name): share for name, share in shares}
    if as_json:
        print_json({"prediction": prediction, "probabilities": probabilities})
    elif probabilities is None:
        typer.echo(label_text(prediction))
    else:
        said = label_text(prediction)
        typer.echo(f"{said}  (probability {probabilities[said]:.3f})")


def _pair(text: str) -> tuple[str, str]:
    """A feature and its value, before and after the last =: a name may have one, a number not."""
    name, sign, value = text.rpartition("=")
    if not sign:
        raise DataError(f"{shown(text)} is not FEATURE=VALUE, for example Temperature=21.5")
    return name, value
