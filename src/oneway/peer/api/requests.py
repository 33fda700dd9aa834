"""What an application asks of the local API: the bodies of its requests as samples."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from oneway.errors import DataError, WireError
from oneway.sentences import nearest, shown

_UNLABELLED = '{"x": {feature: value, ...}}'
_LABELLED = '{"x": {feature: value, ...}, "y": label}'


def parse_body(body: bytes) -> Mapping[str, object]:
    """Return the JSON object that a body holds.

    Raises:
        WireError: If it is not JSON.
        DataError: If it is JSON of another kind.
    """
    try:
        value = msgspec.json.decode(body)
    except RecursionError:
        raise WireError("the body is nested too deeply; a sample is flat") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise WireError(f"the body is not JSON: {error}; send {_UNLABELLED}") from None
    if not isinstance(value, dict):
        raise DataError(f"the body is {shown(value)}; it must be an object, such as {_UNLABELLED}")
    return value


def parse_samples(body: Mapping[str, object]) -> list[object] | None:
    """Return the samples of a body that has several; None if it is one sample itself.

    Raises:
        DataError: If they are not a list, or there is something beside them.
    """
    if "samples" not in body:
        return None
    samples = body["samples"]
    if not isinstance(samples, list):
        raise DataError(f"samples is {shown(samples)}; it must be a list of {_UNLABELLED}")
    _refuse_unknown(body, ("samples",))
    return samples


def parse_sample(sample: object, *, needs_label: bool) -> tuple[Mapping[str, object], object]:
    """Return the features and the label of a sample; None for a label that is not needed.

    Raises:
        DataError: If it is not a sample: a part is missing, or there is one too many.
    """
    shape = _LABELLED if needs_label else _UNLABELLED
    if not isinstance(sample, dict):
        raise DataError(f"the sample is {shown(sample)}; it must be an object such as {shape}")
    if not needs_label and "y" in sample:
        raise DataError("the sample has a label y, which a prediction does not use; remove it")
    _refuse_unknown(sample, ("x", "y") if needs_label else ("x",))
    for part in ("x", "y") if needs_label else ("x",):
        if part not in sample:
            raise DataError(f"the sample has no {part}; it must be an object such as {shape}")
    x = sample["x"]
    if not isinstance(x, dict):
        raise DataError(f"x is {shown(x)}; it must be an object of features, as in {shape}")
    return x, sample.get("y")


def _refuse_unknown(table: Mapping[str, object], known: tuple[str, ...]) -> None:
    for name in table:
        if name not in known:
            raise DataError(
                f"{shown(name)} is not known here{nearest(name, known)}; there is "
                f"{' and '.join(known)}"
            )
