"""Predictions for a file of rows: CSV, or JSON lines, in; the same rows with predictions out."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from oneway.errors import DataError
from oneway.export.fitted import Predictor
from oneway.sentences import shown
from oneway.tables.cells import label_text
from oneway.tables.rows import BadRow, Row, RowReader

_CHUNK = 2**20


def predict_rows(model: Predictor, path: Path) -> Iterator[tuple[Row | BadRow, dict[str, Any]]]:
    """Yield the rows of a file, each with its `answer`, or with an `error` that names its line.

    Raises:
        DataError: The file cannot be read, or lacks a column that the model needs.
    """
    reader = RowReader(str(path), model.encoder.names)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                for row in reader.feed(chunk):
                    yield row, _answer(model, row)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None
    for row in reader.finish():
        yield row, _answer(model, row)


def write_rows(
    model: Predictor, rows: Iterable[tuple[Row | BadRow, dict[str, Any]]], file: TextIO
) -> list[str]:
    """Write rows and predictions as CSV; return why some rows have none.

    The predicted label is in a column `predicted LABEL`, the probability of each class in
    `probability CLASS`. A row that cannot be parsed is left out.

    Raises:
        DataError: There are no rows, or a column has the name of such a column.
    """
    predicted = f"predicted {model.encoder.label}"
    classes = map(label_text, model.classes if model.says_probabilities else ())
    chances = {name: f"probability {name}" for name in classes}
    writer, problems = None, []
    for row, answer in rows:
        if "error" in answer:
            problems.append(answer["error"])
        if isinstance(row, BadRow):
            continue
        if writer is None:
            added = [predicted, *chances.values()]
            if twice := next((name for name in added if name in row.values), None):
                raise DataError(
                    f"the rows have a column {shown(twice)}, which predictions need; rename it"
                )
            columns = [*row.values, *added]
            writer = csv.DictWriter(file, columns, "", "ignore", lineterminator="\n")
            writer.writeheader()
        cells = dict(row.values)
        if "prediction" in answer:
            cells[predicted] = label_text(answer["prediction"])
        shares = answer.get("probabilities", {})
        writer.writerow(cells | {chances[name]: share for name, share in shares.items()})
    if writer is None:
        raise DataError("the file holds no rows to predict; give one with a header and rows")
    return problems


def _answer(model: Predictor, row: Row | BadRow) -> dict[str, Any]:
    if isinstance(row, BadRow):
        return {"error": f"line {row.line}: {row.reason}"}
    try:
        return model.answer(row.values)
    except DataError as error:
        return {"error": f"line {row.line}: {error}"}
