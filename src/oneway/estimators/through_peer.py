"""Rows of an array or a frame, put to a running peer one by one, and its answers as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.estimators.frame_rows import samples_of
from oneway.peer.peer import Peer
from oneway.tables.cells import label_key


def learn_rows(peer: Peer, rows: Any, labels: Any) -> None:
    """Learn from every row through a peer, in order.

    Raises:
        DataError: A sample cannot be used; those before it are learned.
    """
    for sample, label in zip(
        samples_of(rows, peer.task.encoder.names), _items(labels), strict=True
    ):
        peer.learn_one(sample, label)


def classes_of(peer: Peer, labels: Any) -> NDArray[Any]:
    """The task's classes in its order, as values of the labels given, where these have them.

    A task calls classes by text, as data files spell them; who gives the numbers 0 and 1 wants
    numbers back.
    """
    given = {label_key(label): label for label in _items(labels)}
    names = peer.task.classes
    found = [given.get(label_key(name), name) for name in names]
    kinds = {type(label) for label in found}
    if len(kinds) == 1:
        return np.array(found)
    kind = type(next(iter(given.values()), ""))
    try:
        return np.array([kind(name) for name in names])
    except (TypeError, ValueError):
        return np.array(names)


def predicted_classes(peer: Peer, rows: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """The class expected for every row."""
    model = peer.model()
    places = [
        model.classes.index(model.predict_one(it))
        for it in samples_of(rows, peer.task.encoder.names)
    ]
    return classes[np.array(places, np.intp)]


def predicted_numbers(peer: Peer, rows: Any) -> NDArray[np.float64]:
    """The number expected for every row."""
    return np.array(
        [float(it) for it in peer.model().predict_many(samples_of(rows, peer.task.encoder.names))]
    )


def probabilities(peer: Peer, rows: Any) -> NDArray[np.float64]:
    """How probable every class is, `[row, class]`, in the task's order."""
    model = peer.model()
    shares = [
        list(model.predict_proba_one(it).values())
        for it in samples_of(rows, peer.task.encoder.names)
    ]
    return np.array(shares).reshape(-1, len(model.classes))


def _items(values: Any) -> list[Any]:
    items: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    return items
