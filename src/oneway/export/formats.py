"""Formats of exported models: one entry each, found by the command line and by `save`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oneway.errors import ConfigError
from oneway.export.fitted import FittedModel
from oneway.export.json_format import to_json
from oneway.files.atomic import write_atomically
from oneway.registry import Registry


@dataclass(frozen=True)
class Format:
    """How a model is written.

    Attributes:
        name: As on the command line.
        suffix: How its files end.
        write: The content of the file; a `ConfigError` if the model cannot be written so.
        about: What whoever gets the file should know, as sentences.
    """

    name: str
    suffix: str
    write: Callable[[FittedModel], bytes]
    about: str


FORMATS: Registry[Format] = Registry("format")
"""The formats by name."""


def save(
    fitted: FittedModel,
    path: Path | str,
    format: str = "",  # noqa: A002
    *,
    force: bool = False,
) -> Path:
    """Write a model into a file, whole or not at all.

    Args:
        fitted: The model.
        path: The file.
        format: A name of `FORMATS`; by default that whose files end as this one does.
        force: Whether a file that is there is replaced.

    Raises:
        ConfigError: The format is unknown, the model cannot be written so, there is a file
            already, or it cannot be written.
        MissingExtraError: The format needs a package that is not installed.
    """
    target = Path(path)
    chosen = FORMATS[format] if format else format_of(target)
    _refuse_existing(target, force=force)
    content = chosen.write(fitted)
    try:
        write_atomically(target, content)
    except OSError as error:
        raise ConfigError(
            f"cannot write {target}: {error.strerror}; choose another file",
        ) from error
    return target


def _refuse_existing(path: Path, *, force: bool) -> None:
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name a file in it")
    if not force and (path.exists() or path.is_symlink()):
        raise ConfigError(
            f"{path} exists and is not overwritten; give another name, or force=True to replace it"
        )


def format_of(path: Path) -> Format:
    """Return the format whose files end as this one does.

    Raises:
        ConfigError: There is none.
    """
    for known in FORMATS.values():
        if path.suffix.lower() == known.suffix:
            return known
    endings = ", ".join(f"{known.suffix} for {name}" for name, known in FORMATS.items())
    raise ConfigError(
        f"{path} does not say by its ending what format it has; there are {endings}",
        remedy="name one of them as format",
        flag_remedy="name one of them with --format",
    )


def _npz(fitted: FittedModel) -> bytes:
    from oneway.export.npz_format import to_npz

    return to_npz(fitted)


def _sklearn(fitted: FittedModel) -> bytes:
    from oneway.export.sklearn_format import to_pickle

    return to_pickle(fitted)


def _onnx(fitted: FittedModel) -> bytes:
    from oneway.export.onnx_format import to_onnx

    return to_onnx(fitted)


def _state_dict(fitted: FittedModel) -> bytes:
    from oneway.export.module_formats import to_state_dict

    return to_state_dict(fitted)


for _entry in (
    Format(
        "json",
        ".json",
        to_json,
        "Text to read: coefficients in the units of the data, or a network's parameters; features, "
        "classes, origin.",
    ),
    Format(
        "npz",
        ".npz",
        _npz,
        "Arrays for numpy.load: parameters, and coefficients, intercepts, names if it is linear; "
        "facts as JSON.",
    ),
    Format(
        "sklearn",
        ".pkl",
        _sklearn,
        "To load it: pip install oneway scikit-learn, then pickle.load. A pickle is code: whoever "
        "loads one runs what it says, so load only what you trust.",
    ),
    Format(
        "onnx",
        ".onnx",
        _onnx,
        "For onnxruntime and others: one input per column, [rows, 1], or [rows, ...] in the shape "
        "of an array; outputs label and probabilities.",
    ),
    Format(
        "state-dict",
        ".pt",
        _state_dict,
        "For module.load_state_dict(torch.load(..., weights_only=True)). The module takes samples "
        "as the task scales them; json and onnx say how, or do it.",
    ),
):
    FORMATS.register(_entry)
