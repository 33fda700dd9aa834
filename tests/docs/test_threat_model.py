"""Every promise of the threat model has a test beside it, and that test exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODEL = (ROOT / "docs" / "threat-model.md").read_text()


def test_every_test_that_is_named_exists():
    defined = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    named = set(re.findall(r"`(test_\w+)`", MODEL))
    assert len(named) > 60
    assert named <= defined, sorted(named - defined)


def test_every_promise_in_a_table_names_a_test():
    rows = [line for line in MODEL.splitlines() if line.startswith("| ") and "| test |" not in line]
    assert len(rows) > 30
    assert [row for row in rows if not re.search(r"`test_\w+`[^`]*\|$", row)] == []
