"""Views of a table: its HTML in a notebook."""

from __future__ import annotations

import numpy as np

from oneway.display.html import MOST_ROWS, Html, card, facts, grid
from oneway.sentences import listed
from oneway.tables.cells import label_text
from oneway.tables.features import SCALED, Feature, format_shape
from oneway.tables.table import Table
from oneway.tables.times import PARTS

_COUNTED = 5_000_000
"""Labels of a longer table are not counted: they may have to be read from a disk."""


def table_html(table: Table) -> Html:
    """What is predicted, from what, and whose rows they are."""
    encoder = table.encoder
    about = {
        "rows": f"{len(table):,}",
        "label": f"{encoder.label}: {_labels(table)}",
        "features": f"{len(encoder.features):,} columns"
        + (f", {encoder.width:,} to the model" if encoder.width != len(encoder.features) else ""),
    }
    others = [name for name in table.columns if name not in encoder.names]
    if others:
        about["other columns"] = f"{listed(others, MOST_ROWS)} (for deal_by)"
    rows = [
        (feature.name, feature.kind, _meaning(feature), f"{_gaps(table, feature.name):,}")
        for feature in encoder.features[:MOST_ROWS]
    ]
    shown = grid(("column", "used as", "how", "gaps"), rows, total=len(encoder.features))
    return card("Table", facts(about), shown, quiet=table.name)


def _meaning(feature: Feature) -> str:
    """What a cell becomes, in a few words."""
    if feature.kind in SCALED:
        shape = f"{format_shape(feature.shape)}, " if feature.shape else ""
        return f"{shape}center {feature.center:.4g}, scale {feature.scale:.4g}"
    if feature.kind == "category":
        return listed(feature.values, 5)
    return ", ".join(feature.parts or PARTS) if feature.kind == "time" else "false or true"


def _gaps(table: Table, name: str) -> int:
    if name in table.gaps:
        return len(table.gaps[name])
    column = table.columns.get(name)
    return 0 if column is None else int(np.count_nonzero(column.codes < 0))


def _labels(table: Table) -> str:
    if not table.label_values:
        return f"a number from {table.labels.min():.4g} to {table.labels.max():.4g}"
    values = [label_text(value) for value in table.label_values]
    if len(table) > _COUNTED:
        return listed(values, MOST_ROWS)
    codes = (table.labels + 1) / 2 if len(values) == 2 else table.labels
    shares = np.bincount(codes.astype(np.intp), minlength=len(values)) / len(table)
    both = (f"{value} ({share:.1%})" for value, share in zip(values, shares, strict=True))
    return listed(both, MOST_ROWS)
