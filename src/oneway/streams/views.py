"""Views of a stream: its HTML in a notebook."""

from __future__ import annotations

import numpy as np

from oneway.display.html import MOST_ROWS, Html, card, facts, grid
from oneway.streams.stream import Stream

_COUNTED = 20_000_000
"""Of a stream with more places for samples only the first nodes' are counted."""


def stream_html(stream: Stream) -> Html:
    """Who sees how much, and how much the labels of the first nodes differ."""
    about = {
        "nodes": f"{stream.num_nodes:,}",
        "rounds": f"{stream.num_rounds:,}",
        "features": f"{stream.dim:,}",
    }
    if stream.rows.size <= _COUNTED:
        counts = (stream.rows >= 0).sum(axis=0)
        about["samples"] = f"{stream.num_samples:,}"
        about["of a node"] = (
            f"{counts.min():,} to {counts.max():,} samples, median {int(np.median(counts)):,}"
        )
    if stream.adversarial_share:
        about["dealt by cluster"] = f"{stream.adversarial_share:.1%} of the samples"
    shown = grid(
        ("node", "samples", "mean label", "spread"),
        (_node(stream, node) for node in range(min(MOST_ROWS, stream.num_nodes))),
        total=stream.num_nodes,
    )
    how = str(stream.origin.get("deal", stream.origin.get("kind", "")))
    return card("Stream", facts(about), shown, quiet=how)


def _node(stream: Stream, node: int) -> tuple[str, ...]:
    rows = stream.rows[:, node]
    labels = stream.labels[rows[rows >= 0]]
    name = stream.node_names[node] if stream.node_names else str(node)
    if not labels.size:
        return name, "0", "-", "-"
    return name, f"{labels.size:,}", f"{labels.mean():.3g}", f"{labels.std():.3g}"
