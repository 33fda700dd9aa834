"""The labels of a classifier: what the data calls them, and what the model does."""

from __future__ import annotations

import math

from oneway.errors import DataError, TaskError
from oneway.sentences import listed, shown
from oneway.tables.numbers import as_number

_LONGEST_CLASS = 200


class ClassLabels:
    """Raw labels to codes and back: -1 and +1 for two classes, 0, 1, 2, ... for softmax.

    Raises:
        TaskError: If the classes do not suit the model, or two of them mean the same.
    """

    def __init__(self, label: str, classes: tuple[str, ...], model: str) -> None:
        for name in classes:
            _check_class(name)
        _check_count(classes, model)
        first, apart = (0, 1) if model == "softmax" else (-1, 2)
        self._label = label
        self._names = {float(first + apart * place): name for place, name in enumerate(classes)}
        self._codes: dict[str | float, float] = {}
        for code, name in self._names.items():
            if self._codes.setdefault(label_key(name), code) != code:
                raise TaskError(
                    f"the class {shown(name)} is listed twice (1, 1.0 and true are the same "
                    "label); remove one of the two"
                )

    def code_of(self, raw: object) -> float:
        """Return what the model calls a label.

        Raises:
            DataError: If it is not one of the classes.
        """
        code = self._codes.get(label_key(raw))
        if code is None:
            known = listed((shown(name) for name in self._names.values()), 10)
            raise DataError(
                f"label {shown(self._label)} is {shown(raw)}; it must be one of {known}, "
                "the task's classes"
            )
        return code

    def name_of(self, value: float) -> str:
        """Return what the data calls a label of the model.

        Raises:
            DataError: If the model has no such label.
        """
        name = self._names.get(float(value))
        if name is None:
            codes = listed((f"{code:g}" for code in self._names), 10)
            raise DataError(f"{value!r} is not a label that the model knows; there are {codes}")
        return name


def label_key(raw: object) -> str | float:
    """Return what makes two labels the same: their number if they have one, else their text.

    >>> label_key("1.0") == label_key(1) == label_key(True), label_key(" yes ")
    (True, 'yes')
    """
    number = as_number(raw)
    if number is not None and math.isfinite(number):
        return number
    return raw.strip() if isinstance(raw, str) else ""


def _check_class(name: object) -> None:
    try:
        text = isinstance(name, str) and name.strip() == name and name.encode()
        if text and len(text) <= _LONGEST_CLASS:
            return
    except UnicodeEncodeError:
        pass
    raise TaskError(
        f"a class is {shown(name)}; it must be text as in the data, not empty and without spaces "
        'around it, for example classes = ["0", "1"]'
    )


def _check_count(classes: tuple[str, ...], model: str) -> None:
    count = len(classes)
    if model == "ridge" and count:
        raise TaskError(
            f"model ridge predicts a number, but {count} classes are given; remove classes, or "
            "choose logistic or softmax"
        )
    if model in ("logistic", "hinge") and count != 2:
        remedy = "choose softmax for more" if count > 2 else 'for example classes = ["0", "1"]'
        raise TaskError(
            f"model {model} tells two classes apart, but {count} are given; classes lists the two "
            f"labels, {remedy}"
        )
    if model == "softmax" and count < 2:
        raise TaskError(
            f"model softmax tells classes apart, but {count} are given; classes lists at least two "
            'labels, for example classes = ["a", "b", "c"]'
        )
