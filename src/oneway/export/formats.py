"""Formats of exported models."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from oneway.errors import ConfigError
from oneway.export.fitted import Predictor
from oneway.sentences import listed, nearest, shown


@dataclass(frozen=True)
class Format:
    """How a model is written.

    Attributes:
        name: As on the command line.
        suffix: How its files end.
        known_by: What its files have near their beginning.
        writer: The function that returns the content of a file, as "module:function".
        about: How to use the file, as sentences.
    """

    name: str
    suffix: str
    known_by: bytes
    writer: str
    about: str

    def write(self, exported: Predictor) -> bytes:
        """Return the content of a file.

        Raises:
            ConfigError: The model has no such form.
            MissingExtraError: The format needs a package that is not installed.
        """
        module, _, function = self.writer.partition(":")
        content: bytes = getattr(import_module(f"oneway.export.{module}"), function)(exported)
        return content


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


_ALL = (
    Format(
        "json",
        ".json",
        b'"oneway ',
        "json_format:to_json",
        "Coefficients in the units of the data, or a network's parameters; features, classes, "
        "origin. FittedModel.load reads it, and PersonalModel.load what is personal.",
    ),
    Format(
        "onnx",
        ".onnx",
        b"oneway",
        "onnx_format:to_onnx",
        "For onnxruntime and others: one input per column, [rows, 1], or [rows, ...] in the "
        "shape of an array; outputs label and probabilities.",
    ),
    Format(
        "state-dict",
        ".pt",
        b"PK",
        "module_formats:to_state_dict",
        "For module.load_state_dict(torch.load(..., weights_only=True)). The module takes "
        "samples as the task scales them; json has the scaling, and onnx applies it.",
    ),
)
FORMATS = {it.name: it for it in _ALL}
"""The formats by name."""
