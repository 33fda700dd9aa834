"""`oneway peer predict`: ask a peer's model, whether the peer runs or not."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oneway.cli.options import argument, option
from oneway.cli.out_path import Force, check_out_file, write_out_file
from oneway.cli.output import AsJson, note, print_json
from oneway.cli.peer_home import HomeFolder, open_home
from oneway.errors import ConfigError, DataError
from oneway.sentences import shown

if TYPE_CHECKING:
    from oneway.export.fitted import Predictor
    from oneway.tables.features import Feature


def predict(
    values: Annotated[
        list[str],
        argument(
            "FEATURE=VALUE ... | FILE.csv",
            "One sample, unscaled; an array as an image, a .npy file, or its numbers. Or a file of "
            "rows.",
        ),
    ],
    out: Annotated[
        Path | None, option("FILE", "Where to write the rows with their predictions.", "stdout")
    ] = None,
    white: Annotated[
        float | None,
        option("X", "What a white pixel is in the data.", "the usual value for its scale", min=0),
    ] = None,
    model: Annotated[
        str, option("NAME", "personal, this peer's own, or shared, the network's.")
    ] = "personal",
    force: Force = False,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Predict the label of one sample, or of all rows of a file, with the model on the disk.

    Of a file all columns are written, then `predicted LABEL` and the probability of each class. A
    row without a prediction is named on stderr; the others are not affected.
    """
    from oneway.peer.offline import is_shared, stored_model, stored_personal
    from oneway.tables.arrays import is_sample_file
    from oneway.tables.cells import label_text

    mine = open_home(home)
    if len(values) == 1 and _is_rows_file(values[0]):
        if out is not None:
            check_out_file(out, b"predicted ", force=force)
        model_of_rows = stored_model(mine) if is_shared(model) else stored_personal(mine)
        _predict_file(model_of_rows, Path(values[0]), out, force=force, as_json=as_json)
        return
    if out is not None:
        raise ConfigError(f"--out is {out}, and there is one sample; give a file of rows: rows.csv")
    for text in values:
        if "=" not in text and not is_sample_file(text):
            raise DataError(f"{shown(text)} is not FEATURE=VALUE, for example Temperature=21.5")
    answering = stored_model(mine) if is_shared(model) else stored_personal(mine)
    sample: dict[str, object] = {}
    for text in values:
        name, value = _pair(text, answering.encoder.features, white)
        if name in sample:
            raise DataError(f"{shown(name)} is given twice; predict one sample at a time")
        sample[name] = value
    answer = answering.answer(sample)
    predicted = label_text(answer["prediction"])
    if as_json:
        print_json(answer)
    elif "probabilities" in answer:
        typer.echo(f"{predicted}  (probability {answer['probabilities'][predicted]:.3f})")
    else:
        typer.echo(predicted)


def _is_rows_file(text: str) -> bool:
    return "=" not in text and Path(text).suffix.lower() in (".csv", ".tsv", ".jsonl")


def _predict_file(
    model: Predictor, path: Path, out: Path | None, *, force: bool, as_json: bool
) -> None:
    from oneway.export.predicted import predict_rows, write_rows

    rows = predict_rows(model, path)
    if as_json:
        print_json({"results": [answer for _, answer in rows]})
        return
    text = StringIO()
    problems = write_rows(model, rows, text)
    if out is None:
        typer.echo(text.getvalue(), nl=False)
    else:
        write_out_file(out, text.getvalue(), force=force)
        note(f"{out} is written.")
    if problems:
        more = f" ({len(problems):,} rows in all)" if len(problems) > 1 else ""
        note(f"no prediction{more}: {problems[0]}")


def _pair(text: str, features: Sequence[Feature], white: float | None) -> tuple[str, object]:
    """A feature and its value, before and after the last =: a name may have one, a number not.

    Where a feature is an array its value may be a file, and a file alone is the only array's.
    """
    from oneway.tables.arrays import is_sample_file, read_sample, white_of
    from oneway.tables.features import Array

    arrays = [feature for feature in features if isinstance(feature, Array)]
    for feature in arrays if is_sample_file(text) else ():
        given = text.removeprefix(f"{feature.name}=")
        if given != text or len(arrays) == 1:
            path = Path(given)
            array = read_sample(path, feature, white)
            if white is None and path.suffix.lower() != ".npy":
                note(f"{path}: white is taken for {white_of(feature):g}; if not, say --white.")
            return feature.name, array
    name, sign, value = text.rpartition("=")
    if not sign:
        raise DataError(
            f"{shown(text)} is a file, and the task has {len(arrays)} features that are arrays; "
            "say which one it is, as FEATURE=FILE"
        )
    return name, value
