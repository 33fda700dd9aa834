"""Every script, test and document that a document names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"\b(?:benchmarks|studies|tests|docs|src)/[\w/.-]+\.(?:py|md|png|ipynb)\b")


def test_every_file_that_a_document_names_exists():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    named = {(page.name, name) for page in pages for name in NAMED.findall(page.read_text("utf-8"))}
    assert len(named) > 20
    missing = {it for it in named if not (ROOT / it[1]).exists()}
    assert missing == {("CHANGELOG.md", "studies/NAME.py")}  # of any study
