"""Assembly of arrays: from an array source to one encoded table, a block at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError
from oneway.models import LabelKind
from oneway.records import Origin
from oneway.tables.array_source import LABEL, ArraySource
from oneway.tables.encoder import Encoder
from oneway.tables.from_arrays import standardised
from oneway.tables.inference import ALL, ColumnNote, described
from oneway.tables.label_profile import LabelProfile
from oneway.tables.labels import LabelValue, encode_labels
from oneway.tables.scaling import row_after
from oneway.tables.source import Wish
from oneway.tables.table import Table


def assemble_arrays(
    source: ArraySource, file: BinaryIO, wish: Wish, name: str, origin: Origin
) -> Table:
    """Write the samples of a source to a file, flat in float32, and collect the rest.

    One mean and one scale for all cells are found in a pass of their own, so that a row has the
    very numbers that a peer makes of it.

    Returns:
        The table called `name` without its features, which are in the file.

    Raises:
        DataError: If a cell is not finite, the labels do not suit, or columns are spoken of.
    """
    column = wish.label or LABEL
    if wish.encoder is not None:
        source.check_encoder(wish.encoder)
        encoder, labels, meaning = wish.encoder, *_as_told(source, wish.encoder)
        column = encoder.label
    else:
        if replace(wish.choices, owner=None) != ALL:
            raise DataError(
                f"{source.path} holds arrays, which are one feature each; leave out what is said "
                "about columns"
            )
        kind = wish.kind or label_kind(source)
        labels, meaning = encode_labels(source.labels, kind, column)
        feature = source.feature()
        if wish.standardise:
            feature = standardised(feature, source.blocks(), f"{source.path.name}: ")
        encoder = Encoder((feature,), column, "number")
    for first, block in source.blocks():
        place = row_after(first, f"{source.path.name}: ")
        file.write(encoder.arrays(block, place=place).tobytes())
    [feature] = encoder.features
    return Table(
        features=np.empty((0, encoder.width), dtype=np.float32),
        labels=labels,
        feature_names=encoder.outputs,
        name=name,
        columns={},
        means=encoder.scaling.means,
        scales=encoder.scaling.scales,
        label_values=meaning,
        origin={
            **origin,
            "label": column,
            "task": wish.encoder.kind if wish.encoder else kind,
            "rows": len(source),
            "features": encoder.width,
            "shape": list(source.shape),
        },
        encoding=encoder.features,
        notes=(
            ColumnNote(column, "what is predicted", 0),
            ColumnNote(feature.name, described(feature), 0),
        ),
    )


def label_kind(source: ArraySource) -> LabelKind:
    """What the labels of a source look like."""
    profile = LabelProfile(str(source.path), LABEL)
    profile.add(source.labels.tolist())
    return profile.kind


def _as_told(
    source: ArraySource, encoder: Encoder
) -> tuple[NDArray[np.float32], tuple[LabelValue, ...]]:
    distinct, codes = np.unique(source.labels, return_inverse=True)
    known = np.array([encoder.label_value(label) for label in distinct.tolist()], np.float32)
    return known[codes], encoder.classes
