"""Formats of exported models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oneway.errors import ConfigError
from oneway.export.fitted import FittedModel
from oneway.export.json_format import to_json
from oneway.export.personal import PersonalModel
from oneway.files.atomic import write_atomically
from oneway.sentences import listed, nearest, shown


@dataclass(frozen=True)
class Format:
    """How a model is written.

    Attributes:
        name: As on the command line.
        suffix: How its files end.
        write: Returns the content of the file; a `ConfigError` if the model has no such form.
        known_by: What its files have near their beginning.
        about: How to use the file, as sentences.
    """

    name: str
    suffix: str
    known_by: bytes
    write: Callable[[FittedModel | PersonalModel], bytes]
    about: str


def save(
    fitted: FittedModel | PersonalModel,
    path: Path | str,
    format: str = "",  # noqa: A002
    *,
    force: bool = False,
) -> Path:
    """Write a model into a file, whole or not at all.

    Args:
        fitted: The model.
        path: The file.
        format: A name in `FORMATS`; by default the one that suits the file's ending.
        force: Whether to replace an existing file.

    Raises:
        ConfigError: The format is unknown, the model has no such form, or the file exists or
            cannot be written.
        MissingExtraError: The format needs a package that is not installed.
    """
    target = Path(path)
    chosen = format_of(target, format)
    if target.is_dir():
        raise ConfigError(f"{target} is a folder; name a file in it")
    if not force and (target.exists() or target.is_symlink()):
        raise ConfigError(
            f"{target} exists and is not overwritten; give another name, or force=True to replace "
            "it"
        )
    content = chosen.write(fitted)
    try:
        write_atomically(target, content)
    except OSError as error:
        raise ConfigError(
            f"cannot write {target}: {error.strerror}; choose another file",
        ) from error
    return target


def format_of(path: Path | None, name: str = "") -> Format:
    """Return the format with a name; without one, by the ending of a file; without that, JSON.

    Raises:
        ConfigError: There is none.
    """
    if name in FORMATS:
        return FORMATS[name]
    if name:
        raise ConfigError(
            f"format is {shown(name)}; it must be one of {listed(FORMATS)}{nearest(name, FORMATS)}"
        )
    if path is None:
        return FORMATS["json"]
    for known in FORMATS.values():
        if path.suffix.lower() == known.suffix:
            return known
    endings = ", ".join(f"{known.suffix} for {name}" for name, known in FORMATS.items())
    raise ConfigError(
        f"{path} has an ending of no known format; there are {endings}",
        remedy="name one of them as format",
        flag_remedy="name one of them with --format",
    )


def _onnx(fitted: FittedModel | PersonalModel) -> bytes:
    from oneway.export.onnx_format import to_onnx

    return to_onnx(fitted)


def _state_dict(fitted: FittedModel | PersonalModel) -> bytes:
    from oneway.export.module_formats import to_state_dict

    return to_state_dict(fitted)


FORMATS = {
    it.name: it
    for it in (
        Format(
            "json",
            ".json",
            b'"oneway ',
            to_json,
            "Coefficients in the units of the data, or a network's parameters; features, classes, "
            "origin. FittedModel.load reads it, and PersonalModel.load what is personal.",
        ),
        Format(
            "onnx",
            ".onnx",
            b"oneway",
            _onnx,
            "For onnxruntime and others: one input per column, [rows, 1], or [rows, ...] in the "
            "shape of an array; outputs label and probabilities.",
        ),
        Format(
            "state-dict",
            ".pt",
            b"PK",
            _state_dict,
            "For module.load_state_dict(torch.load(..., weights_only=True)). The module takes "
            "samples as the task scales them; json has the scaling, and onnx applies it.",
        ),
    )
}
"""The formats by name."""
