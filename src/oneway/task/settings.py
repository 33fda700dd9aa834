"""Run settings: data, dealing, graph, seed and engine, around the keys of a task.

A settings file may hold the keys of a task as well; a task file is a settings file. Flags of the
command line override both, and the defaults below fill what is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Meta

from oneway.errors import ConfigError, TaskError
from oneway.files.toml import parse_toml, read_text
from oneway.files.validation import checked, convert, nearest_of
from oneway.models import MODELS, LabelKind
from oneway.registry import code_names, require_allowed
from oneway.tables.encoder import Encoder
from oneway.tables.inference import parse_categories
from oneway.task.keys import key, one_of
from oneway.task.learning import MODEL_FOR, Learning
from oneway.task.privacy import PRIVACY_KEYS, Privacy, parse_privacy, with_changes
from oneway.task.task import Task, task_keys

AUTO = "auto"
"""The model that suits the label: logistic, softmax or ridge."""
COLUMN_KEYS = ("columns", "exclude", "category", "numeric")
"""Settings about the columns of a file."""

Count = Annotated[int, Meta(ge=1)]


def known_tables() -> tuple[str, ...]:
    """Return the names of the data sets that are tables."""
    from oneway.datasets import names_of

    return names_of("table")


def known_graphs() -> tuple[str, ...]:
    """Return the names of the graph generators and of the known trust networks."""
    from oneway.datasets import names_of
    from oneway.topology import GRAPHS

    return (*GRAPHS, *names_of("graph"))


@dataclass(frozen=True, kw_only=True)
class Settings(Learning):
    """Everything that determines one simulation; a lab takes the same.

    Raises:
        ConfigError: A value breaks its rule.
    """

    data: Annotated[
        str,
        key(
            "a file (.csv, .parquet, .libsvm, .npy), a folder of images or a data set",
            "NAME",
            "Data",
            known_tables,
        ),
    ] = "flights"
    label: Annotated[str | None, key("what to predict, a column of a file", "COLUMN", "Data")] = (
        None
    )
    model: Annotated[
        str,
        one_of(
            MODELS,
            "what is learned (a PyTorch module as torch:package.module:function, by default on the "
            "data set digits)",
            also=(AUTO,),
        ),
    ] = AUTO
    columns: Annotated[
        tuple[str, ...],
        key("learn from these columns only, as COLUMN,COLUMN", "NAMES", "Data", flag="features"),
    ] = ()
    exclude: Annotated[
        tuple[str, ...], key("learn from all columns but these", "NAMES", "Data")
    ] = ()
    category: Annotated[
        tuple[str, ...],
        key("this column is a category, as COLUMN or COLUMN=A,B,C", "COLUMN", "Data"),
    ] = ()
    numeric: Annotated[
        tuple[str, ...], key("these columns are numbers, as COLUMN,COLUMN", "NAMES", "Data")
    ] = ()
    owner: Annotated[
        str | None,
        key("every value of this column is a node and owns its rows", "COLUMN", "Data"),
    ] = None
    adversarial: Annotated[
        float, key("share of the rows dealt by cluster, not at random: 0..1", "SHARE", "Data")
    ] = 0.0
    resample: Annotated[Count | None, key("draw this many rows with replacement", "N", "Data")] = (
        None
    )
    classes_per_node: Annotated[
        Count | None, key("every node sees rows of only so many classes", "N", "Data")
    ] = None
    rounds: Annotated[Count | None, key("only the first rounds", "N", "Data")] = None
    nodes: Annotated[
        Count | None, key("number of nodes; 20 (a lab: 8), or as graph or owners say", "N", "Graph")
    ] = None
    graph: Annotated[str, key("an edge list or a known graph", "NAME", "Graph", known_graphs)] = (
        "random"
    )
    max_receivers: Annotated[
        Count | None, key("random graph: every node sends to 1 up to this many", "N", "Graph")
    ] = None
    density: Annotated[float, key("Erdos-Renyi graph: probability of an edge", "P", "Graph")] = 0.1
    largest_component: Annotated[
        bool, key("keep only the largest strong component", "", "Graph")
    ] = False
    seed: Annotated[
        int, key("of the graph, the dealing and all else at random", "N", "Run", ge=0)
    ] = 0
    engine: Annotated[
        Literal["auto", "reference", "fast"], key("which engine runs the rounds", "NAME", "Run")
    ] = "auto"
    task: Task | None = None

    @property
    def label_kind(self) -> LabelKind:
        """Which labels the model learns from; with the model `auto`, by the number of classes."""
        return self.kind_for(len(self.task.classes) if self.task else 0)

    def model_label_kind(self) -> LabelKind | None:
        """Return which labels the model learns from; None if the labels choose the model."""
        return None if self.model == AUTO else super().model_label_kind()

    @property
    def _possible_models(self) -> tuple[str, ...]:
        return tuple(MODEL_FOR.values()) if self.model == AUTO else (self.model,)

    @property
    def choices(self) -> dict[str, Any]:
        """The settings about the columns of a file, as `load` takes them."""
        choices = {
            "features": self.columns,
            "exclude": self.exclude,
            "category": parse_categories(self.category),
            "numeric": self.numeric,
            "owner": self.owner,
        }
        return {name: value for name, value in choices.items() if value}

    def with_model_for(self, kind: LabelKind) -> Settings:
        """Return the settings with the model for a kind of label, unless they name one."""
        return replace(self, model=MODEL_FOR[kind]) if self.model == AUTO else self

    @property
    def encoder(self) -> Encoder | None:
        """How the task encodes a table, for the model of the settings; None without a task."""
        task = self.task
        if task is None:
            return None
        return Encoder(task.features, task.label, self.label_kind, task.classes, self.model)


SETTINGS = tuple(field.name for field in fields(Settings) if field.name != "task")
_TASK = tuple(field.name for field in fields(Task))
_HINTS = get_type_hints(Settings, include_extras=True)
PRIVACY_HINTS = get_type_hints(Privacy, include_extras=True)
_ONLY_IN_FILES = ("mixes", "density", "band")
"""Settings without a flag, for the TOML file of `--config`."""


def flag_names(leave_out: tuple[str, ...] = ()) -> list[str]:
    """Return the settings that the command line has a flag for."""
    names = [*SETTINGS, *PRIVACY_KEYS] if "privacy" not in leave_out else SETTINGS
    return [name for name in names if name not in (*leave_out, *_ONLY_IN_FILES)]


def read_settings(
    paths: Path | tuple[Path | None, ...] | None,
    overrides: Mapping[str, Any],
    allow: Collection[str] = (),
) -> Settings:
    """Return settings from TOML files (if any), later ones and then `overrides` on top.

    Args:
        paths: A settings file or a task file, or several of them.
        overrides: Flags of the command line, by key.
        allow: Names of code, `package.module:function`, that the files may name.

    Raises:
        ConfigError: If a file cannot be read or names code that is not allowed, or a setting is
            unknown or has a wrong value.
    """
    values: dict[str, Any] = {}
    for path in paths if isinstance(paths, tuple) else (paths,):
        if path is not None:
            values |= _read(path, overrides, allow)
    given = dict(overrides)
    changed = ("privacy", *PRIVACY_KEYS)
    for name, value in given.items():
        if name in PRIVACY_KEYS:
            checked(name, value, PRIVACY_HINTS[name])
        elif name not in SETTINGS:
            raise ConfigError(f"{name!r} is not a setting; {nearest_of(name, SETTINGS)}")
        elif name != "privacy":
            checked(name, value, _HINTS[name])
    privacy = with_changes(
        values.pop("privacy", Privacy()),
        {name: given.pop(name) for name in changed if name in given},
    )
    chosen = values | given
    model = chosen.get("model", AUTO)
    if model in MODELS and MODELS[model].usual_data:
        chosen.setdefault("data", MODELS[model].usual_data)
    return Settings(**chosen, privacy=privacy)


def _read(path: Path, overrides: Mapping[str, Any], allow: Collection[str]) -> dict[str, Any]:
    text = read_text(path, ConfigError, "check the path")
    table = parse_toml(text, str(path), ConfigError)
    is_task = "features" in table
    known = (*SETTINGS, *_TASK) if is_task else SETTINGS
    for name in table:
        if name not in known:
            raise ConfigError(f"{name!r} in {path} is not a setting; {nearest_of(name, known)}")
    require_allowed(code_names(table.get("options")), str(path), allow)
    special: dict[str, Any] = {}
    # Without what is overridden: a flag may correct a wrong value in the file.
    plain = {name: value for name, value in table.items() if name not in overrides}
    if is_task:
        keys = {name: it for name, it in task_keys(text, str(path), allow).items() if name in _TASK}
        needed = ("model", "label", "features")
        keys = {name: it for name, it in keys.items() if name in plain or name in needed}
        special["task"] = convert(keys, Task, str(path), TaskError)
    if "privacy" in plain:
        special["privacy"] = parse_privacy(plain.pop("privacy"), str(path))
    plain = {name: value for name, value in plain.items() if name in SETTINGS}
    return special | {
        name: checked(f"{name} in {path}", value, _HINTS[name]) for name, value in plain.items()
    }
