"""NumPy archive of a fitted model: arrays without pickles, names and facts as text."""

from __future__ import annotations

from io import BytesIO

import numpy as np

from oneway.export.fitted import FittedModel
from oneway.export.json_format import columns, to_json
from oneway.models import HasCoefficients


def to_npz(fitted: FittedModel) -> bytes:
    """Return an archive for `numpy.load`, which needs no `allow_pickle`.

    `parameters` are those of the model; `coefficients[score, column]` and `intercepts[score]`,
    where the model has some, are in the units of the data, for the `columns` in this order.
    `classes` are the labels, `facts` is what the JSON format says.
    """
    arrays = {
        "parameters": fitted.params,
        "columns": np.array(columns(fitted), dtype=np.str_),
        "classes": np.array(fitted.encoder.classes, dtype=np.str_),
        "facts": np.array(to_json(fitted).decode()),
    }
    if isinstance(fitted.model, HasCoefficients):
        arrays["coefficients"], arrays["intercepts"] = fitted.in_data_units()
    file = BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()
