"""Task: what a network learns, from which columns, and how; the shared task.toml.

All peers of a network have the same task. Its fingerprint goes into every message, so that a model
of other features, or of the same ones scaled otherwise, can never be mixed in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

from oneway.errors import ConfigError, TaskError
from oneway.files.toml import parse_toml, read_text, toml_lines
from oneway.files.validation import comments_of, convert
from oneway.methods import Method
from oneway.models import MODELS, LabelKind, Model, typical_sample
from oneway.protocol.fixed_point import LARGEST, ONE
from oneway.protocol.layout import Layout
from oneway.registry import code_names, require_allowed
from oneway.sentences import shown
from oneway.tables.cells import label_text
from oneway.tables.encoder import Encoder
from oneway.tables.features import Feature, as_json, check_column, make_feature
from oneway.tables.table import Table
from oneway.task.keys import key, one_of
from oneway.task.learning import MODEL_FOR, Learning, start_options
from oneway.task.privacy import Privacy, parse_privacy

TITLE = "# The task: the same file for all peers of a network."
"""What a task.toml has near its beginning."""
_HEADER = f"{TITLE} Those with another one are refused.\n"

MOST_AT_ONCE = 2.0
"""The most mass under way to one receiver, which takes in all of it."""

MOST_MASS = 256.0
"""The most mass that a peer may hold: a hub of a large network has some dozens of units."""

_FEATURES = """\

# The columns to predict from; the order matters. A number is learned as (value - center) / scale, a
# category (values = [...]) as one column per value and one for all others, kind = "boolean" as -1
# or +1, kind = "time" as hour, weekday and season, or as those of its parts = [...] only, an array
# (shape = [1, 28, 28]) as its cells, scaled alike. A missing value is 0, and
# missing_indicator = true adds a column that flags it.
[features]"""

_PRIVACY = """\

# The differential privacy of every sample; a peer may demand more in its peer.toml. To disable it,
# write privacy = "none" above [features].
[privacy]"""


@dataclass(frozen=True)
class Task(Learning):
    """What a network learns, from which columns, and how; the same for all of its peers.

    Raises:
        TaskError: If one of them breaks its rule.
    """

    model: Annotated[str, one_of(MODELS, "what is learned")] = field()
    label: Annotated[str, key("the column to predict, in every peer's data")]
    features: Annotated[tuple[Feature, ...], key("the columns to predict from, a table")]
    classes: Annotated[
        tuple[str, ...],
        key("the labels as they stand in the data; of two, the first means -1, the second +1"),
    ] = ()
    radius: Annotated[
        float, key("the largest absolute parameter believed of another peer", ge=1e-9)
    ] = field(default=1000.0, kw_only=True)
    mass_cap: Annotated[float, key("the most mass that one push may carry", ge=1, le=MOST_MASS)] = (
        field(default=16.0, kw_only=True)
    )
    rows: Annotated[
        int, key("how many rows the scales are of, for --merge; no part of the task", ge=0)
    ] = field(default=0, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        check_column("label", self.label)
        self._check_features()
        try:
            super().__post_init__()
        except ConfigError as error:
            raise TaskError(str(error)) from None
        if not self.learning_rate:
            raise TaskError("learning_rate is 0; it must be a number above 0")
        self._check_options()
        if self.radius * self.mass_cap > LARGEST / ONE:
            raise TaskError(
                f"radius {self.radius:g} times mass_cap {self.mass_cap:g} is more than "
                f"{LARGEST / ONE:,.0f}, the largest number that peers can send; scale the "
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
        for feature in self.features:
            if not isinstance(feature, Feature):
                raise TaskError(
                    f"a feature is {shown(feature)}; it must be a feature, as Number('Light')"
                )
        if not self.features:
            raise TaskError("the task has no features; list at least one under [features]")
        counts = Counter(feature.name for feature in self.features)
        twice, count = counts.most_common(1)[0]
        if count > 1:
            raise TaskError(f"feature {shown(twice)} is listed twice; remove one of the two")
        if self.label in counts:
            raise TaskError(
                f"{shown(self.label)} is both the label and a feature; remove it from [features]"
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
    def parse(cls, text: str, where: str = "task.toml", *, allow: Collection[str] = ()) -> Task:
        """Return the task that a TOML text describes.

        Args:
            text: TOML.
            where: What errors call it.
            allow: Names of code, `package.module:function`, that the task may name.

        Raises:
            TaskError: If it is not TOML, a key is missing, unknown or breaks its rule, or it names
                code that is not allowed; no code is imported before that check.
        """
        return convert(task_keys(text, where, allow=allow), cls, where, TaskError)

    @classmethod
    def of(cls, table: Table, **learning: Any) -> Task:
        """Return the task of a table: its columns with their scaling, its label and classes.

        Args:
            table: The table.
            learning: Model, method, privacy and the other keys of a task; without a model, the
                kind of label decides.

        Raises:
            TaskError: If one of them breaks its rule.
        """
        encoder = table.encoder
        model = learning.pop("model", None) or MODEL_FOR[encoder.kind]
        options = learning.get("options", {}).get(model, {})
        kind = MODELS[model].kind_of_labels(options) or encoder.kind
        classes = encoder.classes if kind != "number" else ()
        task = cls(model, encoder.label, encoder.features, classes, **learning)
        task = replace(task, options=start_options(task, len(classes), table.labels))
        return task.sealed()

    @classmethod
    def read(cls, path: Path | str, *, allow: Collection[str] = ()) -> Task:
        """Return the task in a file; `allow` as for `parse`.

        Raises:
            TaskError: If it cannot be read, or does not describe a task.
        """
        remedy = "get the task.toml that the other peers have, or derive one from your data"
        return cls.parse(read_text(Path(path), TaskError, remedy), str(path), allow=allow)

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
        lines += toml_lines({feature.pop("name"): _entry(feature) for feature in features}, {})
        if isinstance(privacy, dict):
            lines += [_PRIVACY, *toml_lines(privacy, comments_of(Privacy))]
        for name, parameters in options.items():
            lines += ["", f"[options.{name}]", *toml_lines(parameters, {})]
        comment = fill(about, 98, initial_indent="# ", subsequent_indent="# ")
        return "\n".join([*([comment] if about else []), *lines, ""])

    def fields(self) -> dict[str, Any]:
        """Return all keys of the task but `rows`, in terms JSON can hold."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values |= {"privacy": self.privacy.as_json(), "options": deepcopy(self.options)}
        del values["rows"]
        values["features"] = [as_json(feature) for feature in self.features]
        return values | {name: list(values[name]) for name in ("classes", "transforms")}

    @cached_property
    def fingerprint(self) -> bytes:
        """16 bytes that two tasks share only if they are the same, order of features included."""
        text = json.dumps(self.fields(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return blake2b(text.encode(), digest_size=16, person=b"oneway task").digest()

    # Its parts.

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder from raw cells to the inputs of the model."""
        return Encoder(self.features, self.label, self.label_kind, self.classes, self.model)

    @property
    def label_kind(self) -> LabelKind:
        """Which labels the model learns from."""
        return self.kind_for(len(self.classes))

    def sealed(self) -> Task:
        """Return the task with what its sites must have in common: a module's hash and shape.

        Raises:
            TaskError: If its model cannot be made here, or cannot be named in a task.
        """
        try:
            model = self.build_model().for_samples(self.encoder.shape)
            options = model.task_options()
            model.dim(self.encoder.width)  # refuses a model that does not fit the samples
        except ConfigError as error:
            raise TaskError(str(error)) from None
        own = {**self.options.get(self.model, {}), **options}
        return replace(self, options={**self.options, self.model: own}) if options else self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that every sample must have: label, features, and the group if it counts."""
        group = self.privacy.group if self.privacy.unit == "group" else ""
        return tuple(filter(None, (self.label, *self.encoder.names, group)))

    @property
    def code_names(self) -> list[str]:
        """The functions, `package.module:function`, that a site imports and calls for this task."""
        return code_names(self.options)

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
        """Whether the model predicts classes, not numbers."""
        return self.build_model().classifies

    @property
    def says_probabilities(self) -> bool:
        """Whether the model predicts probabilities of classes."""
        return self.build_model().says_probabilities

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

    @cached_property
    def _model(self) -> Model:
        # Once: a module takes longer to make than to learn from a sample.
        return self.model_for(len(self.classes))

    @cached_property
    def longest_step(self) -> float:
        """The longest step that an honest peer takes; infinite if its length is not limited."""
        return self.build_method().longest_step

    def build_method(self, dim: int | None = None) -> Method:
        """Return the method, for the model of the task unless the size of another is given."""
        num_features = self.encoder.width  # first: it checks the classes
        method = super().build_method(self.dim if dim is None else dim)
        return method.suited(*typical_sample(self.build_model(), num_features))


_COMMENTS = comments_of(Task)


def task_keys(text: str, where: str, allow: Collection[str] = ()) -> dict[str, Any]:
    """Return the keys of a task.toml: features as `Feature`s, classes as text.

    Args:
        text: TOML.
        where: What errors call it.
        allow: Names of code that it may name.

    Raises:
        TaskError: If it is not TOML, it names code that is not allowed, or features or classes are
            malformed.
    """
    table = parse_toml(text, where, TaskError)
    require_allowed(code_names(table.get("options")), where, allow, TaskError)
    if "features" in table:
        table["features"] = _parse_features(table["features"], where)
    if "privacy" in table:
        table["privacy"] = parse_privacy(table["privacy"], where, TaskError)
    if "classes" in table:
        classes = table["classes"]
        if not isinstance(classes, list):
            raise TaskError(
                f'{where}: classes is {shown(classes)}; it must be a list, as ["0", "1"]'
            )
        # As data files spell them: classes = [0, 1] means ["0", "1"].
        numbers = (bool, int, float)
        table["classes"] = tuple(
            label_text(name) if isinstance(name, numbers) else name for name in classes
        )
    return table


def _parse_features(value: object, where: str) -> tuple[Feature, ...]:
    """Return the features that a task.toml lists.

    Raises:
        TaskError: Names the feature that is malformed.
    """
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(_parse_feature(name, {}, where) for name in value)
    if not isinstance(value, dict):
        raise TaskError(
            f"{where}: features is {shown(value)}; it must be a table such as [features], with one "
            "line per column: Light = { center = 119.5, scale = 194.8 }, or a list of columns"
        )
    return tuple(_parse_feature(name, entry, where) for name, entry in value.items())


def _parse_feature(name: str, entry: object, where: str) -> Feature:
    if not isinstance(entry, dict):
        above = f"; the setting {name} belongs above [features]" if name in _COMMENTS else ""
        raise TaskError(
            f"{where}: feature {shown(name)} is {shown(entry)}; it must be a table such as "
            f"{{ center = 119.5, scale = 194.8 }} or {{}}{above}"
        )
    return make_feature(name, entry, f"{where}: ")


def _entry(feature: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a feature in a task.toml, without a kind that its keys imply."""
    implied = "category" if "values" in feature else "array" if "shape" in feature else "number"
    if feature["kind"] == implied:
        del feature["kind"]
    return feature
