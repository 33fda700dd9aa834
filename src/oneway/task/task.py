"""Task: what everybody learns together, from what, and how; the shared task.toml.

All peers of a network have the same task. Its fingerprint goes into every message, so that a model
of other features, or of the same ones scaled otherwise, can never be mixed in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

from oneway.errors import ConfigError, TaskError
from oneway.files.paths import as_path
from oneway.files.toml import parse_toml, read_text, refuse_unknown, toml_lines
from oneway.files.typed_values import comments_of
from oneway.methods import Method
from oneway.models import MODELS, HasProbabilities, LabelKind, Model, typical_sample
from oneway.protocol.fixed_point import LARGEST, ONE
from oneway.protocol.layout import Layout
from oneway.sentences import shown
from oneway.tables.encoder import Encoder, Feature, check_column
from oneway.tables.table import Table
from oneway.task.feature_entries import parse_features, said, written
from oneway.task.keys import key, one_of
from oneway.task.learning import Learning, without_former_names, without_site_options
from oneway.task.privacy import NONE, Privacy, parse_privacy
from oneway.task.start import start_options

__all__ = ["Feature", "Task"]

_HEADER = """\
# The task: the same file for all peers of a network. Those with another one are refused.
"""
_UNSAID = {
    "method": "ops",
    "transforms": [],
    "options": {},
    "privacy": NONE,
    "samples_per_push": 1,
    "mixes": 1,
}
"""What peers did before a task could say it. A task that says just this has the fingerprint it had
in an older release, so that its peers go on with what they hold."""

_MODEL_FOR = {"binary": "logistic", "classes": "softmax", "number": "ridge"}

MOST_AT_ONCE = 2.0
"""What a peer has under way to another at most: whoever takes something in takes all of it."""

MOST_MASS = 256.0
"""What a peer may hold at most: a hub of a large network has some dozens of units."""

_FEATURES = """\

# What is predicted from; the order matters. A number is learned as (value - center) / scale, a
# category (values = [...]) as one column per value and one for all others, kind = "boolean" as -1
# or +1, kind = "time" as hour, weekday and season, or as those of its parts = [...] only, an array
# (shape = [1, 28, 28]) as its cells, scaled alike. function = "package.module:function" is what
# makes numbers of the cell, installed at every site; hash says which version of it. An empty cell
# is 0; gaps = true flags it.
[features]"""

_PRIVACY = """\

# What is promised about every sample, whatever others do with what is sent; a peer may ask for
# more in its peer.toml. For no promise at all: privacy = "none", above [features].
[privacy]"""


@dataclass(frozen=True)
class Task(Learning):
    """What is learned, from what, and how fast; the same for all peers of a network.

    Raises:
        TaskError: If one of them breaks its rule.
    """

    model: Annotated[str, one_of(MODELS, "what is learned")] = field()
    label: Annotated[str, key("what is predicted: a column of every peer's data")]
    features: Annotated[tuple[Feature, ...], key("what is predicted from, a table of columns")]
    classes: Annotated[
        tuple[str, ...],
        key("the labels as they stand in the data; of two, the first means -1, the second +1"),
    ] = ()
    radius: Annotated[
        float, key("the largest absolute parameter believed of another peer", gt=0)
    ] = field(default=1000.0, kw_only=True)
    mass_cap: Annotated[float, key("the most mass that one push may carry", ge=1)] = field(
        default=16.0, kw_only=True
    )
    rows: Annotated[
        int, key("how many rows the scales are of, for --merge; no part of the task", ge=0)
    ] = field(default=0, kw_only=True, compare=False)

    site: dict[str, Any] = field(default_factory=dict, kw_only=True, compare=False)
    """Options of the model that every site says for itself (`Model.site_options`); not in the file,
    and no part of the task."""

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except ConfigError as error:
            raise TaskError(str(error)) from None
        options, own = without_site_options(self.model, self.options)
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "site", own | self.site)
        if not self.learning_rate:
            raise TaskError("learning_rate is 0; it must be a number above 0")
        check_column("label", self.label)
        self._check_features()
        _ = self.encoder  # checks the classes
        self._check_options()
        if self.radius * self.mass_cap > LARGEST / ONE:
            raise TaskError(
                f"radius {self.radius:g} times mass_cap {self.mass_cap:g} is more than "
                f"{LARGEST / ONE:,.0f}, the largest number that peers can hand over; scale the "
                "features, or the label, so that a smaller radius is enough"
            )

    @property
    def mass_at_once(self) -> float:
        """The most mass that a peer has under way to one receiver."""
        return min(self.mass_cap, MOST_AT_ONCE)

    @property
    def mass_limit(self) -> float:
        """The most mass that a peer may hold: with any two models in the radius, numbers fit."""
        return min(MOST_MASS, LARGEST / ONE / (2 * self.radius))

    @property
    def impossible_mass(self) -> float:
        """More than a peer can come to hold, what it takes back included."""
        return 2.0 * self.mass_limit

    def _check_features(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        if not self.features:
            raise TaskError("the task has no features; list at least one under [features]")
        counts = Counter(feature.name for feature in self.features)
        twice, count = counts.most_common(1)[0]
        if count > 1:
            raise TaskError(f"feature {shown(twice)} is listed twice; remove one of the two")
        if self.label in counts:
            raise TaskError(
                f"{shown(self.label)} is both the label and a feature; what is to be predicted "
                "cannot be known beforehand: remove it from [features]"
            )

    def _check_options(self) -> None:
        given = ((f"{name}.{it}", own[it]) for name, own in self.options.items() for it in own)
        for option, value in given:
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                raise TaskError(
                    f"option {option} is {shown(value)}, which a task file cannot hold; give text, "
                    'numbers or lists: a function by its name, as "package.module:function"'
                ) from None

    # The file.

    @classmethod
    def parse(
        cls, text: str, where: str = "task.toml", note: Callable[[str], None] = lambda _: None
    ) -> Task:
        """Return the task that a TOML text describes.

        Args:
            text: TOML.
            where: What errors call it.
            note: Told a sentence for every option that is no part of a task any more.

        Raises:
            TaskError: If it is not TOML, or a key is missing, unknown or breaks its rule.
        """
        table = task_keys(text, where)
        for name in ("model", "label", "features"):
            if name not in table:
                raise TaskError(f"{where} has no {name}; add it: {_COMMENTS[name]}")
        try:
            task = cls(**table)
        except ConfigError as error:
            raise TaskError(f"{where}: {error}") from None
        for name, value in task.site.items():
            note(
                f"{name} = {shown(value)} under [options.{task.model}] in {where} is not followed: "
                f"it is every site's own matter; say it in peer.toml, under [{task.model}]"
            )
        return replace(task, site={})

    @classmethod
    def of(cls, table: Table, **learning: Any) -> Task:
        """Return the task that a table is for: its columns with their scaling, its label.

        Args:
            table: Its classes are the task's.
            learning: Model, method, privacy and all else that a task has; without a model, that
                for the kind of label.

        Raises:
            TaskError: If one of them breaks its rule.
        """
        encoder = table.encoder
        model = learning.pop("model", None) or _MODEL_FOR[encoder.kind]
        options = learning.get("options", {}).get(model, {})
        kind = MODELS[model].kind_of_labels(options) or encoder.kind
        classes = encoder.classes if kind != "number" else ()
        task = cls(model, encoder.label, encoder.features, classes, **learning)
        task = replace(task, options=start_options(task, len(classes), table.labels))
        return task.sealed()

    @classmethod
    def read(cls, path: Path | str, note: Callable[[str], None] = lambda _: None) -> Task:
        """Return the task in a file; `note` as for `parse`.

        Raises:
            TaskError: If it cannot be read, or does not describe a task.
        """
        remedy = "get the task.toml that the other peers have, or derive one from your data"
        known = as_path(path, "the task to read", TaskError, "a table has the task Task.of(table)")
        return cls.parse(read_text(known, TaskError, remedy), str(path), note)

    def to_toml(self, about: str = "") -> str:
        """Return the text of a task.toml that reads back as this task; `about` is a comment."""
        values = self.fields() | ({"rows": self.rows} if self.rows else {})
        features, options = values.pop("features"), values.pop("options")
        privacy = values["privacy"]
        if isinstance(privacy, dict):
            del values["privacy"]
        order = ("label", "classes", "model", "method")
        plain = {name: values[name] for name in dict.fromkeys((*order, *values))}
        given = {name: value for name, value in plain.items() if value not in ([], {})}
        lines = [_HEADER, *toml_lines(given, _COMMENTS), _FEATURES]
        lines += toml_lines({feature.pop("name"): written(feature) for feature in features}, {})
        if isinstance(privacy, dict):
            lines += [_PRIVACY, *toml_lines(privacy, comments_of(Privacy))]
        for name, parameters in options.items():
            lines += ["", f"[options.{name}]", *toml_lines(parameters, {})]
        comment = fill(about, 98, initial_indent="# ", subsequent_indent="# ")
        return "\n".join([*([comment] if about else []), *lines, ""])

    def fields(self) -> dict[str, Any]:
        """Return all that matters about the task in terms JSON can hold."""
        values = asdict(self) | {"privacy": self.privacy.said()}
        del values["rows"], values["site"]
        values["features"] = [said(feature) for feature in values["features"]]
        return values | {name: list(values[name]) for name in ("classes", "transforms")}

    @cached_property
    def fingerprint(self) -> bytes:
        """16 bytes that two tasks share only if they are the same, order of features included."""
        values = self.fields()
        # What an older release cannot say does not tell tasks apart as long as it is not said.
        for name, unsaid in _UNSAID.items():
            if values[name] == unsaid:
                del values[name]
        text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return blake2b(text.encode(), digest_size=16, person=b"oneway task").digest()

    # What it stands for.

    @cached_property
    def encoder(self) -> Encoder:
        """From raw cells to the numbers of the model, and back."""
        return Encoder(self.features, self.label, self.label_kind, self.classes, self.model)

    @property
    def label_kind(self) -> LabelKind:
        """Which labels the model learns from."""
        return self.kind_for(len(self.classes))

    def sealed(self) -> Task:
        """Return the task with all that its sites must have alike: hash and shape for a module.

        Raises:
            TaskError: If its model cannot be made here, or cannot be named in a task.
        """
        try:
            model = self.build_model().shaped(self.encoder.shape)
            said = model.task_options()
            model.dim(self.encoder.width)  # what does not fit the samples is refused here, too
        except ConfigError as error:
            raise TaskError(str(error)) from None
        own = {**self.options.get(self.model, {}), **said}
        return replace(self, options={**self.options, self.model: own}) if said else self

    @property
    def columns(self) -> tuple[str, ...]:
        """What every sample must have: the label, the features, and whose it is if that counts."""
        group = self.privacy.group if self.privacy.unit == "group" else ""
        return tuple(filter(None, (self.label, *self.encoder.names, group)))

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return self.build_model().dim(self.encoder.width)

    @cached_property
    def layout(self) -> Layout:
        """Where the segments of the method lie in what peers hold and hand over."""
        return Layout.of(self.build_method().payload, self.dim)

    @property
    def classifies(self) -> bool:
        """Whether classes are predicted, so that a prediction is right or wrong; or numbers."""
        return self.build_model().classifies

    @property
    def says_probabilities(self) -> bool:
        """Whether the model says how probable a class is."""
        return isinstance(self.build_model(), HasProbabilities)

    def require_without_server(self) -> None:
        """Check that peers can run the method: they exchange along one-way trust.

        Raises:
            TaskError: The method averages over everybody.
        """
        if self.build_method().exchange == "average":
            raise TaskError(
                f"method {self.method} averages over everybody, which needs a server; peers "
                "exchange along one-way trust: choose another method in the task, for example relay"
            )

    def build_model(self) -> Model:
        """Return the model to learn."""
        return self._model

    def _options(self, name: str) -> dict[str, Any]:
        return super()._options(name) | (self.site if name == self.model else {})

    @cached_property
    def _model(self) -> Model:
        # Once: a module takes longer to make than to learn from a sample.
        return self.model_for(len(self.classes))

    def build_method(self, dim: int | None = None) -> Method:
        """Return the method, for the model of the task unless the size of another is given."""
        method = super().build_method(self.dim if dim is None else dim)
        num_features = self.encoder.width  # first: it checks the classes
        return method.suited(*typical_sample(self.build_model(), num_features))


_COMMENTS = comments_of(Task)


def task_keys(text: str, where: str, others: Iterable[str] = ()) -> dict[str, Any]:
    """Return what a task.toml says by key: features as `Feature`s, classes as text.

    Args:
        text: TOML.
        where: What errors call it.
        others: Keys that it may have besides those of a task.

    Raises:
        TaskError: If it is not TOML, a key is unknown, or features or classes are malformed.
    """
    table, _ = without_former_names(parse_toml(text, where, TaskError), where)
    refuse_unknown(table, [*_COMMENTS, *others], where, TaskError)
    if "features" in table:
        table["features"] = parse_features(table["features"], where, _COMMENTS)
    if "privacy" in table:
        table["privacy"] = parse_privacy(table["privacy"], where, TaskError)
    if "classes" in table:
        classes = table["classes"]
        if not isinstance(classes, list):
            raise TaskError(
                f'{where}: classes is {shown(classes)}; it must be a list, as ["0", "1"]'
            )
        table["classes"] = tuple(_label_text(name) for name in classes)
    return table


def _label_text(name: object) -> object:
    """Return a label as text, as data files spell it: classes = [0, 1] means ["0", "1"]."""
    if isinstance(name, bool):
        return "true" if name else "false"
    return repr(name) if isinstance(name, int | float) else name
