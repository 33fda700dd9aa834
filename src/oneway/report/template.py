"""Pages from the templates in this folder."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import jinja2


def render(template: str, **values: Any) -> str:
    """A page as text: no script, nothing loaded from elsewhere; a missing value is an error."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    source = (files("oneway.report") / template).read_text(encoding="utf-8")
    return environment.from_string(source).render(**values)
