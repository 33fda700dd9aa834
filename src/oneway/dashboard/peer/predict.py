"""A form that predicts on a sample: one field for each feature, the answer with probabilities."""

from __future__ import annotations

from nicegui import ui

from oneway.dashboard.components.frame import card, empty
from oneway.dashboard.peer.acting import asked
from oneway.dashboard.peer.fields import SampleFields, sample_fields
from oneway.dashboard.peer.source import PeerLook, PeerSource, PredictForm, Prediction

_MOST_CLASSES = 10
"""The most probable classes are shown, no more than so many."""


class PredictCard:
    """The form; `show` makes it anew when the task is another."""

    def __init__(self, source: PeerSource) -> None:
        """Make it without fields.

        Args:
            source: Whom to ask.
        """
        self._source = source
        self._form: PredictForm | None = None
        self._fields: SampleFields | None = None
        with card("Predict"):
            self._empty = empty("The task cannot be read, so there is nothing to fill in.")
            self._about = ui.label("").classes("ow-soft")
            self._place = ui.element("div")
            with ui.row().classes("items-center gap-3"):
                self._button = ui.button("Predict", on_click=self._predict).props("no-caps")
                self._problem = ui.label("").classes("ow-bad").props("role=alert")
            self._answer = ui.element("div").props("role=status aria-live=polite")

    def show(self, look: PeerLook) -> None:
        """Make the fields, unless they are there already."""
        self._empty.set_visibility(look.form is None)
        self._button.set_visibility(look.form is not None)
        if look.form == self._form or look.form is None:
            return
        self._form = look.form
        self._about.text = (
            f"What does the model expect {look.form.label} to be? Values are in the units of the "
            "data; each field begins with its average, or with what is most frequent."
        )
        self._place.clear()
        self._answer.clear()
        with self._place:
            self._fields = sample_fields(look.form.fields, self._predict)

    async def _predict(self) -> None:
        self._problem.text = ""
        self._answer.clear()
        sample = None if self._fields is None else self._fields.sample()
        if sample is None:
            self._problem.text = "Mend what is marked first."
            return
        found = await asked(lambda: self._source.predict(sample), self._complain)
        if found is not None:
            self._answer.clear()  # somebody may have pressed the button twice
            with self._answer:
                self._say(found)

    def _complain(self, sentence: str) -> None:
        self._problem.text = sentence

    def _say(self, found: Prediction) -> None:
        label = self._form.label if self._form is not None else ""
        ui.label(f"{label}: {found.label}").classes("ow-answer").props("data-answer")
        probable = sorted(found.probabilities.items(), key=lambda item: -item[1])
        for name, share in probable[:_MOST_CLASSES]:
            with ui.element("div").classes("ow-probability"):
                ui.label(name).classes("name")
                with ui.element("div").classes("bar"):
                    ui.element("div").style(f"width: {share:.2%}")
                ui.label(f"{share:.1%}").classes("share")
        if len(probable) > _MOST_CLASSES:
            ui.label(f"and {len(probable) - _MOST_CLASSES} less probable ones").classes("ow-soft")
        ui.label(
            "By the model of the running peer." if found.is_live else "By the model on the disk."
        ).classes("ow-soft")
