"""LIBSVM files (`label index:value ...`, absent entries are 0), block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import polars as pl

from oneway.errors import DataError
from oneway.models import LabelKind
from oneway.sentences import shown
from oneway.tables.features import Feature
from oneway.tables.inference import Choices
from oneway.tables.label_profile import LabelProfile
from oneway.tables.lines import line_blocks
from oneway.tables.source import Block, Chosen, Plan, Source, Wish

DENSE_NUMBERS_AT_A_TIME = 8 * 2**20
LABEL = "label"


def open_file(path: Path, wish: Wish, names: Sequence[str] | None = None) -> Source:
    """Open a LIBSVM file as a dense table, as `open_source` says; its label needs no name.

    Without the features' `names`, the file is read once more to find the largest index, and they
    are "feature 1", "feature 2" and so on. All of them are numbers.
    """
    if wish.label is not None:
        raise DataError(
            f"label={wish.label!r} does not apply to {path.name}: a LIBSVM file has its label "
            "first in every line; leave label out"
        )
    if names is None:
        names = [f"feature {index + 1}" for index in range(_largest_index(path))]
    encoder = wish.encoder
    if encoder is None:
        wish.choices.check([*names, LABEL], LABEL, path.name)
        chosen = [
            name for name in wish.choices.features or names if name not in wish.choices.exclude
        ]
        features = tuple(map(Feature, chosen))
    else:
        features = encoder.features
        Choices(features=encoder.names).check([*names, LABEL], LABEL, path.name)
    for feature in features:
        if feature.kind != "number" or feature.name in wish.choices.category:
            raise DataError(
                f"feature {shown(feature.name)} is to be no number, and a LIBSVM file such as "
                f"{path.name} holds only numbers; give the data as CSV"
            )
    plan = Plan(
        Chosen(LABEL, tuple(feature.name for feature in features), (), ()),
        features,
        wish.kind or (encoder.kind if encoder else _label_kind(path)),
    )
    chosen_names = plan.chosen.features
    picked = [list(names).index(name) for name in chosen_names]

    def blocks() -> Iterator[Block]:
        from sklearn.datasets import load_svmlight_file

        for block in line_blocks(path, quoted=False):
            try:
                sparse, labels = load_svmlight_file(
                    BytesIO(block), n_features=len(names), zero_based=False
                )
            except ValueError as error:
                raise _malformed(path, str(error)) from None
            step = max(1, DENSE_NUMBERS_AT_A_TIME // len(names))
            for start in range(0, len(labels), step):
                dense = sparse[start : start + step].toarray()
                part = pl.Series(LABEL, labels[start : start + step])
                yield Block(numbers=dense[:, picked], labels=part, columns={})

    return Source(path, plan, blocks)


def _label_kind(path: Path) -> LabelKind:
    """What the labels of the first block look like."""
    labels = LabelProfile(path.name, LABEL)
    for block in line_blocks(path, quoted=False):
        found = [line.split(None, 1)[0].decode() for line in block.splitlines() if line.strip()]
        labels.add(found)
        break
    return labels.kind if len(labels.distinct) > 1 else "binary"


def _largest_index(path: Path) -> int:
    largest = 0
    for block in line_blocks(path, quoted=False):
        for line in block.splitlines():
            # Indices ascend within a line, so the last one is the largest.
            before_value = line.partition(b"#")[0].rpartition(b":")[0]
            if before_value:
                try:
                    largest = max(largest, int(before_value.rpartition(b" ")[2]))
                except ValueError:
                    raise _malformed(path, repr(line[:60].decode("utf-8", "replace"))) from None
    if largest == 0:
        raise _malformed(path, "no index:value in it")
    return largest


def _malformed(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} is not in LIBSVM format ({reason}); every line must be `label index:value ...` "
        "with indices that ascend from 1"
    )
