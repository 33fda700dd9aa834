"""Self-contained HTML pages from templates; `base.html` here is what they have in common."""

from __future__ import annotations

import math
from typing import Any

import jinja2


def render(package: str, template: str, **values: Any) -> str:
    """A page as text: no script, nothing loaded from elsewhere; a missing value is an error.

    Args:
        package: The package whose folder has the template.
        template: File name.
        **values: What the template shows.
    """
    folders = [jinja2.PackageLoader(name, "") for name in dict.fromkeys((package, __package__))]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(folders),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(template).render(**values)


def loss_text(loss: float) -> str:
    """A loss in a cell of a table: infinite where a run diverged.

    >>> loss_text(0.51234), loss_text(123456.0), loss_text(float("inf"))
    ('0.5123', '1.2e+05', 'diverged')
    """
    if not math.isfinite(loss):
        return "diverged"
    return f"{loss:.4f}" if loss < 100 else f"{loss:.1e}"
