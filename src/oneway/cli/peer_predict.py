"""`oneway peer predict`: ask a peer's model, whether the peer runs or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from oneway.cli.output import AsJson, print_json
from oneway.cli.peer_home import HomeFolder, open_home
from oneway.errors import DataError, StoreError

if TYPE_CHECKING:
    from oneway.peer.home.home import Home

_EXAMPLE = "Example: oneway peer predict Temperature=21 Light=430 CO2=750"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict", epilog=_EXAMPLE)(predict)


def predict(
    values: Annotated[
        list[str], typer.Argument(metavar="FEATURE=VALUE ...", help="One sample, unscaled.")
    ],
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Predict the label of one sample with the model that is on the disk."""
    prediction, probabilities = predict_on_disk(open_home(home), dict(map(_pair, values)))
    if as_json:
        print_json({"prediction": prediction, "probabilities": probabilities})
    elif probabilities is None:
        typer.echo(prediction)
    else:
        typer.echo(f"{prediction}  (probability {probabilities[str(prediction)]:.3f})")


def predict_on_disk(
    mine: Home, sample: Mapping[str, str]
) -> tuple[str | float, dict[str, float] | None]:
    """The label expected for a sample, and how probable each class is where the model says that.

    Raises:
        DataError: If the sample lacks a feature or has one that is no number.
        StoreError: If there is no model, or it is not one for the task.
        TaskError: If the task cannot be read.
    """
    from oneway.peer.learner import Learner
    from oneway.peer.store.store import read_snapshot

    task = mine.task()
    if not mine.store_path.exists():
        raise StoreError(
            f"{mine.config().name} has never run, so it has no model yet (there is no "
            f"{mine.store_path}); let it learn: oneway peer run --data FILE"
        )
    state = read_snapshot(mine.store_path).state
    if state.dim != task.dim:
        raise StoreError(
            f"the model in {mine.store_path} has {state.dim} parameters, and the task needs "
            f"{task.dim}; put the task.toml back that it was started with"
        )
    if state.estimate is None or not state.is_sound(task.radius, 0.0):
        raise StoreError(
            f"{mine.config().name} has no model at the moment; let it learn: oneway peer run"
        )
    learner = Learner(task)
    prediction = learner.predict(state.estimate, sample)
    says = task.says_probabilities
    return prediction, learner.probabilities(state.estimate, sample) if says else None


def _pair(text: str) -> tuple[str, str]:
    """A feature and its value.

    Raises:
        DataError: If there is no = between them.
    """
    # The last one: a name may have a = in it, a number has none.
    name, sign, value = text.rpartition("=")
    if not sign:
        from oneway.sentences import shown

        raise DataError(f"{shown(text)} is not FEATURE=VALUE, for example Temperature=21.5")
    return name, value
