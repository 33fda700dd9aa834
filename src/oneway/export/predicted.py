"""Predictions for a file of rows: CSV, or JSON lines, in; the same rows with predictions out."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from oneway.errors import DataError
from oneway.export.fitted import Predictor
from oneway.sentences import shown
from oneway.tables.cells import label_text
from oneway.tables.encoder import ClassName
from oneway.tables.rows import BadRow, Row, RowReader

_CHUNK = 2**20


@dataclass(frozen=True)
class PredictedRow:
    """A row of a file and its prediction.

    Attributes:
        line: Where it stands in the file, from 1.
        values: Its cells, by column; none if the row cannot be parsed.
        prediction: The predicted label; None if there is none.
        probabilities: By class; empty if the model has none.
        problem: Why there is no prediction; empty if there is one.
    """

    line: int
    values: Mapping[str, object]
    prediction: ClassName | float | None = None
    probabilities: Mapping[str, float] | None = None
    problem: str = ""


def predict_rows(model: Predictor, path: Path) -> Iterator[PredictedRow]:
    """Yield the rows of a file with their predictions; a bad row does not stop the others.

    Raises:
        DataError: The file cannot be read, or lacks a column that the model needs.
    """
    reader = RowReader(str(path), model.encoder.names)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                for row in reader.feed(chunk):
                    yield _predicted(model, row)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None
    for row in reader.finish():
        yield _predicted(model, row)


def write_rows(model: Predictor, rows: Iterator[PredictedRow], file: TextIO) -> list[PredictedRow]:
    """Write rows and predictions as CSV; return the rows that have no prediction.

    The predicted label is in a column `predicted LABEL`, the probability of each class in
    `probability CLASS`. A row that cannot be parsed is left out.

    Raises:
        DataError: There are no rows, or a column has the name of such a column.
    """
    predicted = f"predicted {model.encoder.label}"
    chances = {label_text(name): f"probability {label_text(name)}" for name in model.classes}
    added = [predicted, *(chances.values() if model.says_probabilities else ())]
    writer, problems = None, []
    for row in rows:
        if row.problem:
            problems.append(row)
        if not row.values:
            continue
        if writer is None:
            if twice := next((name for name in added if name in row.values), None):
                raise DataError(
                    f"the rows have a column {shown(twice)}, which predictions need; rename it"
                )
            writer = csv.DictWriter(file, [*row.values, *added], "", "ignore", lineterminator="\n")
            writer.writeheader()
        shares = {chances[name]: share for name, share in (row.probabilities or {}).items()}
        label = "" if row.prediction is None else label_text(row.prediction)
        writer.writerow({**row.values, predicted: label, **shares})
    if writer is None:
        raise DataError("the file holds no rows to predict; give one with a header and rows")
    return problems


def _predicted(model: Predictor, row: Row | BadRow) -> PredictedRow:
    if isinstance(row, BadRow):
        return PredictedRow(row.line, {}, problem=row.reason)
    try:
        prediction = model.predict_one(row.values)
        shares = model.predict_proba_one(row.values) if model.says_probabilities else {}
    except DataError as error:
        return PredictedRow(row.line, row.values, problem=str(error))
    by_name = {label_text(name): share for name, share in shares.items()}
    return PredictedRow(row.line, row.values, prediction, by_name)
