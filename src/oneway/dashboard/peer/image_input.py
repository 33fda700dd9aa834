"""Image input: an image from a file, or drawn, as the numbers of an array feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.validation_element import ValidationElement
from nicegui.events import GenericEventArguments

from oneway.dashboard.components.numbers import number_problem
from oneway.tables.features import Feature
from oneway.tables.sample_files import white_of


class ImageInput(Element, component="image_input.js"):
    """A canvas to draw on, and a file to choose; tells pixels from 0 to 1, channel by channel."""

    def __init__(
        self, shape: tuple[int, ...], label: str, on_pixels: Callable[[list[float]], None]
    ) -> None:
        """Make an empty one for images of a shape (channels, rows, columns)."""
        super().__init__()
        sizes = zip(("channels", "rows", "columns"), shape, strict=True)
        self._props.update({**dict(sizes), "label": label})

        def heard(event: GenericEventArguments) -> None:
            on_pixels([float(value) for value in event.args])

        self.on("pixels", heard)


def is_image(feature: Feature) -> bool:
    """Whether a feature is an array that can be shown: one channel or three, rows and columns."""
    return feature.kind == "array" and len(feature.shape) == 3 and feature.shape[0] in (1, 3)


def array_field(
    feature: Feature, problem: Callable[[str | None], str | None]
) -> ValidationElement[Any]:
    """Make a field for the numbers of an array; of an image, with a canvas that fills it in."""
    size = " x ".join(map(str, feature.shape))
    with ui.element("div").classes("ow-array"):
        if not is_image(feature):
            return _numbers(feature, size, problem)

        def fill_in(pixels: list[float]) -> None:
            if not white.validate():
                return
            most = float(white.value)
            numbers.value = "[" + ", ".join(f"{most * pixel:.5g}" for pixel in pixels) + "]"

        ImageInput(feature.shape, feature.name, fill_in)
        white = ui.input("White is", value=f"{white_of(feature):g}", validation=number_problem)
        white.props("dense outlined inputmode=decimal autocomplete=off hide-bottom-space")
        white.tooltip("The value of a white pixel in the data; black is 0.")
        numbers = _numbers(feature, size, problem)
    return numbers


def _numbers(
    feature: Feature, size: str, problem: Callable[[str | None], str | None]
) -> ValidationElement[Any]:
    text = ui.textarea(f"{feature.name}, {size} numbers", validation=problem)
    text.props("dense outlined rows=3 autocomplete=off spellcheck=false").classes("w-full")
    return text
