"""Real peers learn any label from a table with columns of all kinds."""

from __future__ import annotations

import pytest
from command_line import call as oneway
from mixed_tables import MODELS, says_what_became_of_columns, write_table

from oneway.task.task import Task


@pytest.mark.parametrize("label", ["three", "number"])
def test_real_peers_learn_any_label_from_a_real_table(tmp_path, label):
    path = write_table(tmp_path / "mine.csv", label)
    flags = ("--owner", "site", "--nodes", 3, "--samples", 15, "--rate", 0, "--json")
    out = tmp_path / "lab"
    result = oneway("lab", "--data", path, "--label", "y", *flags, "--out", out)
    assert result.code == 0, result.err
    assert says_what_became_of_columns(result.err)
    assert Task.read(out / "task.toml").model == MODELS[label]
    given = ("dose=high", "smoker=yes", "visit=2026-03-01 07:30", "age=80")
    answer = oneway("peer", "predict", *given, "--home", out / "north")
    assert answer.code == 0, answer.err
    missing = oneway("peer", "predict", "dose=high", "--home", out / "north")
    assert missing.code == 2
    assert all(f"'{name}'" in missing.err for name in ("age", "smoker", "visit"))
