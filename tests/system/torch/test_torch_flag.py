"""`--model torch:package.module:function` names a module on the command line."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the extra torch is not installed")

MODULE = """
from torch import nn

def small(features=3, outputs=1) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 4), nn.Tanh(), nn.Linear(4, outputs))
"""


@pytest.fixture
def rows(tmp_path, monkeypatch):
    (tmp_path / "nets_of_a_user.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    lines = ["a,b,c,y"]
    lines += [
        f"{i % 7},{i % 5},{i * i % 11},{'yes' if i % 7 > i % 5 else 'no'}" for i in range(120)
    ]
    (tmp_path / "rows.csv").write_text("\n".join([*lines, ""]))
    return tmp_path / "rows.csv"


def test_simulate_and_peer_task_take_it(rows, oneway):
    flags = ("--label", "y", "--model", "torch:nets_of_a_user:small")
    found = oneway("simulate", "--data", str(rows), *flags, "--nodes", "4", "--json")
    assert found.code == 0, found.err
    assert found.json["config"]["model"]["loss"] == "logistic"
    task = oneway("peer", "task", rows, *flags)
    assert 'module = "nets_of_a_user:small"' in task.out
    assert "hash = " in task.out
