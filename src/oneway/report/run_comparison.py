"""Runs side by side: one value with a table, a chart, a frame, and a view for notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from oneway import metrics
from oneway.display.frames import as_frame
from oneway.display.html import Html, card, grid, sentence
from oneway.errors import ConfigError, needs_extra
from oneway.methods.base import label_of
from oneway.records import Matrix, Vector
from oneway.report.pages import loss_text
from oneway.sentences import shown
from oneway.simulator import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Group = tuple[Run, ...]
"""Runs that differ in their seeds only."""

_POINTS = 400
_BY_SEED = ("seed", "checksum")
"""What may differ between runs of a group."""
_COLOURS = ("#2b8cc4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#8c6bb1", "#7f7f7f")
_OTHER_DATA = "They did not all learn from the same samples: their losses do not compare."


@dataclass(frozen=True, eq=False, repr=False)
class RunComparison:
    """Several runs, or groups of them that differ in their seeds only.

    Attributes:
        groups: By name, in the order given.
    """

    groups: Mapping[str, Group]

    @property
    def ranked(self) -> dict[str, Group]:
        """The groups, smallest average loss first."""
        return dict(sorted(self.groups.items(), key=lambda item: _mean_loss(item[1])))

    @property
    def best(self) -> str:
        """The name of the group with the smallest average loss."""
        return next(iter(self.ranked))

    @cached_property
    def comparable(self) -> bool:
        """Whether all groups learned from the same streams, seed by seed."""
        streams = {
            tuple(json.dumps(run.record.config.get("stream"), sort_keys=True) for run in group)
            for group in self.groups.values()
        }
        return len(streams) == 1

    def rows(self) -> list[dict[str, Any]]:
        """The table, a row for each group, the smallest loss first; means over seeds.

        `standard_error` is that of the average loss, None with one seed.
        """
        return [
            {
                "name": name,
                "method": group[0].record.method,
                "runs": len(group),
                "average_loss": _mean_loss(group),
                "standard_error": _standard_error(group),
                "accuracy": _mean([run.accuracy for run in group]),
                "disagreement": float(np.mean([run.disagreement[-1] for run in group])),
                "rounds": min(run.record.num_rounds for run in group),
                "seconds": float(sum(run.record.seconds for run in group)),
            }
            for name, group in self.ranked.items()
        ]

    def to_frame(self) -> Any:
        """The table of `rows` as a polars data frame."""
        rows = self.rows()
        return as_frame({name: [row[name] for row in rows] for name in rows[0]})

    def plot(self, ax: Axes | None = None) -> Figure:
        """Running average losses, with a band of one standard deviation over seeds.

        Args:
            ax: Where to draw; None for a new figure. No window is opened.
        """
        with needs_extra("a plot", "lab"):
            from oneway.display.charts import Curve, loss_chart
        curves = []
        for name, group in self.groups.items():
            losses = _loss_curves(group)
            at = metrics.evenly_spread(losses.shape[1], _POINTS)
            dashes = label_of(group[0].record.method).dashes
            curves.append(Curve(name, at + 1, losses[:, at], self._colours[name], dashes))
        return loss_chart(curves, ax=ax)

    @cached_property
    def _colours(self) -> dict[str, str]:
        """That of its method for every group, but one of several for those of the same method."""
        methods = [group[0].record.method for group in self.groups.values()]
        several = cycle(_COLOURS)
        return {
            name: label_of(method).color if methods.count(method) == 1 else next(several)
            for name, method in zip(self.groups, methods, strict=True)
        }

    def __repr__(self) -> str:
        lines = [f"{row['name']}: {_loss_and_error(row)}" for row in self.rows()]
        return "\n".join([f"<RunComparison: {len(lines)}, smallest average loss first>", *lines])

    def _repr_html_(self) -> str:
        rows = (
            (
                row["name"],
                _loss_and_error(row),
                "-" if row["accuracy"] is None else f"{row['accuracy']:.2%}",
                f"{row['disagreement']:.3g}",
                f"{row['runs']}",
                f"{row['seconds']:.2f} s",
            )
            for row in self.rows()
        )
        columns = ("run", "average loss", "accuracy", "disagreement", "seeds", "took")
        doubt = Html("") if self.comparable else sentence(_OTHER_DATA)
        return card("Comparison", grid(columns, rows), doubt)


def compare(runs: Iterable[Run] | Mapping[str, Run | Sequence[Run]]) -> RunComparison:
    """Put runs side by side, the smallest average loss first.

    Runs in a list that differ in their seeds only become one, with a standard error; each is named
    by its method, and by its learning rate where several runs have the same method. In a mapping
    the names are yours, and a value may be several runs.

    Raises:
        ConfigError: If there is nothing to compare, or something that is no run.
    """
    if isinstance(runs, Mapping):
        groups = {
            str(name): (value,) if isinstance(value, Run) else tuple(value)
            for name, value in runs.items()
        }
    else:
        groups = _named(list(runs))
    for group in groups.values():
        for run in group:
            _require_run(run)
    if not groups or not all(groups.values()):
        raise ConfigError("there are no runs to compare; give at least one")
    for name, group in groups.items():
        if not all(run.record.num_rounds for run in group):
            raise ConfigError(
                f"the run {name!r} was interrupted before its first round; leave it out"
            )
    return RunComparison(groups)


def _named(runs: list[Run]) -> dict[str, Group]:
    """Runs by their method, those that differ in their seeds only together."""
    gathered: dict[str, list[Run]] = {}
    for run in runs:
        _require_run(run)
        gathered.setdefault(json.dumps(_without_seeds(run.record.config)), []).append(run)
    groups = [tuple(group) for group in gathered.values()]
    methods = [group[0].record.method for group in groups]
    names: dict[str, Group] = {}
    for group, method in zip(groups, methods, strict=True):
        title = label_of(method).title
        if methods.count(method) > 1:
            title += f" ({group[0].record.config.get('learning_rate')})"
        number = sum(name == title or name.startswith(f"{title} #") for name in names) + 1
        names[title if number == 1 else f"{title} #{number}"] = group
    return names


def _require_run(value: object) -> None:
    if not isinstance(value, Run):
        raise ConfigError(
            f"compare got {shown(value)}, which is no run; give what simulate returns"
        )


def _without_seeds(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_seeds(it) for key, it in value.items() if key not in _BY_SEED}
    return value


def _loss_curves(group: Group) -> Matrix:
    """`curves[seed, round]` as far as all seeds go."""
    shortest = min(run.record.num_rounds for run in group)
    return np.stack([run.loss_curve[:shortest] for run in group])


def _mean_loss(group: Group) -> float:
    return float(np.mean([run.average_loss for run in group]))


def _standard_error(group: Group) -> float | None:
    if len(group) < 2:
        return None
    losses: Vector = np.array([run.average_loss for run in group])
    return float(losses.std(ddof=1) / np.sqrt(len(losses)))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _loss_and_error(row: Mapping[str, Any]) -> str:
    error = row["standard_error"]
    return loss_text(row["average_loss"]) + ("" if error is None else f" ± {error:.4f}")
